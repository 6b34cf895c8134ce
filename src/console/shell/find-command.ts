/**
 * Finds a command by its id, or by the end of it that tables show. The relay looks commands up by user, client and id; by
 * its id alone, a command is looked for among those with a record, newest first, up to a bound.
 */
import { useEffect, useState } from 'preact/hooks';
import { FindCommandDocument, type DeliveryFilter, type FindCommandQuery } from '../../../generated/console.ts';
import { errorOf, isAbort, request } from '../api/request.ts';

type FoundCommand = FindCommandQuery['delivery']['commands']['nodes'][number];

type Search = {
  /** `off`: the text is no part of an id. `found` may have commands while the search goes on. */
  readonly state: 'off' | 'looking' | 'done';
  readonly found: readonly FoundCommand[];
  /** What to say when nothing was found: how far the search went, or why it failed. */
  readonly why: string;
};

/** The shortest end of an id that is looked for: what tables show of it. */
const LEAST_CHARS = 8;
/** The number of pages that are read, of 1000 commands each. */
const PAGES = 10;
/** The time for which the text must stay unchanged before the relay is asked, in milliseconds. */
const REST_MS = 250;
/** How far the time in an id may be from the time of admission, in milliseconds: clocks of callers differ. */
const CLOCKS_MS = 60_000;

const OFF: Search = { state: 'off', found: [], why: '' };
const WHOLE = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** Returns the text without the ellipsis with which tables begin a short id. */
export const idOf = (text: string): string => text.replace(/^(…|\.\.\.)/, '');

/** Whether a text can only be the id of a command, or its end: an id as the relay makes them. */
export const isCommandOnly = (text: string): boolean => WHOLE.test(idOf(text)) || /^(…|\.\.\.)?[\da-f]{8}$/i.test(text);

/** Looks for the commands whose id is the text, or ends with it. `skip`: the viewer may not list commands. */
export function useCommandSearch(text: string, skip: boolean): Search {
  const wanted = idOf(text);
  const [search, setSearch] = useState<Search & { readonly of: string }>({ ...OFF, of: '' });
  const isOff = skip || wanted.length < LEAST_CHARS || /[\s/]/.test(wanted);
  useEffect(() => {
    if (isOff) return undefined;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      look(wanted, stop.signal).then(
        (result) => setSearch({ ...result, state: 'done', of: wanted }),
        (error: unknown) => {
          if (!isAbort(error)) setSearch({ state: 'done', found: [], why: errorOf(error).message, of: wanted });
        },
      );
    }, REST_MS);
    return () => (clearTimeout(timer), stop.abort());
  }, [wanted, isOff]);
  if (isOff) return OFF;
  return search.of === wanted ? search : { state: 'looking', found: [], why: '' };
}

type Looked = Pick<Search, 'found' | 'why'>;

async function look(wanted: string, signal: AbortSignal): Promise<Looked> {
  // An id that the relay or a client library makes begins with its time, so a whole one is looked for around that time.
  const near = WHOLE.test(wanted) ? await pages(wanted, aroundTimeOf(wanted), signal) : null;
  if (near && near.found.length > 0) return near;
  return pages(wanted, {}, signal);
}

function aroundTimeOf(id: string): DeliveryFilter {
  const at = parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
  const iso = (ms: number): string => new Date(Math.min(Math.max(0, ms), 8e15)).toISOString();
  return { admittedAfter: iso(at - CLOCKS_MS), admittedBefore: iso(at + CLOCKS_MS) };
}

/** Reads pages of commands until one has the id. */
async function pages(wanted: string, filter: DeliveryFilter, signal: AbortSignal): Promise<Looked> {
  let after: string | null = null;
  let seen = 0;
  for (let page = 0; page < PAGES; page++) {
    const answer: FindCommandQuery = await request(FindCommandDocument, { filter, after }, signal);
    const { nodes, pageInfo } = answer.delivery.commands;
    const found = nodes.filter(({ commandId }) => commandId.endsWith(wanted));
    if (found.length > 0) return { found, why: '' };
    seen += nodes.length;
    if (!pageInfo.hasNextPage || pageInfo.endCursor === null)
      return { found: [], why: `No command with a record has this id${seen === 0 ? '' : `, of ${seen}`}. ${OLDER}` };
    after = pageInfo.endCursor;
  }
  return {
    found: [],
    why: `None of the newest ${seen} commands has this id. Write user/client/command id, or look in the history of its user.`,
  };
}

const OLDER = 'A record is kept for an hour after the end; older commands are in the history of their user.';
