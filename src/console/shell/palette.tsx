/**
 * Shows the palette, which opens a page by its name, a user or a client by its exact id, and a command by its id. Also
 * shows the list of keys.
 */
import { signal } from '@preact/signals';
import { useLocation } from 'preact-iso';
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { FindCommandDocument, type DeliveryFilter, type FindCommandQuery } from '../../../generated/console.ts';
import { errorOf, isAbort, request } from '../api/request.ts';
import { callHref, clientHref, pagePath, queryPath, userHref } from '../base.ts';
import { Dialog, TextField } from '../ui/dialogs.tsx';
import { keysOn, switchKeys, useKeys } from '../ui/filters.tsx';
import { isAdmin, viewer } from './facts.tsx';
import { CommandMark } from '../ui/values.tsx';
import { shownPages } from './pages.tsx';

const isOpen = signal(false);
export const openPalette = (): void => void (isOpen.value = true);

type Target = { readonly href: string; readonly text: string; readonly mark?: VNode };

export function Palette() {
  useKeys({ 'Ctrl K': openPalette });
  return isOpen.value ? <PaletteDialog /> : null;
}

function PaletteDialog() {
  const { route } = useLocation();
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState(0);
  const asked = text.trim();
  const search = useCommandSearch(asked, !isAdmin.value);
  const commands = search.found.map((row) => ({
    href: callHref(row),
    text: `${row.action} on ${row.userId} / ${row.clientId}, …${row.commandId.slice(-8)}`,
    mark: <CommandMark {...row} />,
  }));
  const targets: readonly Target[] = [...commands, ...targetsOf(asked)];
  const close = (): void => void (isOpen.value = false);
  const go = (target: Target | undefined): void => {
    if (!target) return;
    close();
    route(target.href);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    setChosen((was) => (was + step + targets.length) % Math.max(1, targets.length));
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    go(targets[chosen]);
  };
  return (
    <Dialog title="Go to" onClose={close} class="dialog palette">
      <form onSubmit={submit}>
        <TextField
          label={isAdmin.value ? LABEL : LABEL_OF_USER}
          id="palette-text"
          spellcheck={false}
          value={text}
          onText={(typed) => (setText(typed), setChosen(0))}
          onKeyDown={onKeyDown}
          aria-controls="palette-targets"
        />
        <ul id="palette-targets" class="palette-targets">
          {targets.map((target, at) => (
            <li key={target.href}>
              <a href={target.href} aria-current={at === chosen ? 'true' : undefined} onClick={close}>
                {target.text} {target.mark}
              </a>
            </li>
          ))}
        </ul>
        <p class="quiet" role="status">
          {search.state === 'looking' && 'Looking for a command with this id…'}
          {search.state === 'done' && search.found.length === 0 && search.why}
          {search.state === 'off' && targets.length === 0 && 'Nothing fits. Ids of users and clients are exact.'}
        </p>
      </form>
    </Dialog>
  );
}

const LABEL = 'A page, a user, user/client, or a command id: the whole of it, or its last eight characters';
const LABEL_OF_USER = 'A page, a client, or client/command id';

/** Returns the pages whose name contains the text, and the objects that may have the text as their id. */
function targetsOf(text: string): readonly Target[] {
  const pages = shownPages()
    .filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()))
    .map(({ path, name }) => ({ href: pagePath(path), text: name }));
  return [...(text === '' ? [] : idTargets(text)), ...pages].slice(0, 12);
}

function idTargets(text: string): readonly Target[] {
  if (isAdmin.value && isCommandOnly(text)) return [];
  const own = viewer.value?.userId ?? null;
  const parts = text.split('/').map((part) => part.trim());
  const [first = '', second = '', third = ''] = own === null ? parts : [own, ...parts.filter((part) => part !== own)];
  const client = { userId: first, clientId: second };
  if (third !== '') return [{ href: callHref({ ...client, commandId: third }), text: `Call ${third}` }];
  if (second !== '') return [{ href: clientHref(client), text: `Client ${first} / ${second}` }];
  const user = { href: userHref(first), text: `User ${first}` };
  const clients = { href: queryPath('clients', { user: first }), text: `Clients of ${first}` };
  return isAdmin.value ? [user, clients] : [clients];
}

const KEYS: readonly (readonly [string, string])[] = [
  ['?', 'Show this list'],
  ['Ctrl K', 'Go to a page, a user, a client, or a command by its id'],
  ['/', 'Filter the list'],
  ['j  k', 'Move down and up in the list'],
  ['Enter', 'Open the row'],
  ['i', 'Invoke an action'],
  ['Ctrl Enter', 'Send the call, from anywhere in the form'],
  ['z', 'Choose the span of time that the plots show'],
  ['[  ]', 'Show a shorter or a longer span'],
  ['r', 'Read the page again'],
  ['.', 'Pause live updates, or go on'],
  ['Esc', 'Close what is open'],
];

export function Help() {
  const [isOpen, setOpen] = useState(false);
  useKeys({ '?': () => setOpen(true) });
  if (!isOpen) return null;
  const close = (): void => setOpen(false);
  return (
    <Dialog title="Keyboard" onClose={close}>
      <label class="check">
        <input type="checkbox" checked={keysOn.value} onChange={(event) => switchKeys(event.currentTarget.checked)} />
        <span>Single keys are shortcuts. They are always off while you type.</span>
      </label>
      <table class="tbl tbl-s keys">
        <tbody>
          {KEYS.map(([key, what]) => (
            <KeyRow key={key} name={key} what={what} />
          ))}
          {shownPages().map(({ key, name }) => (
            <KeyRow key={key} name={`g ${key}`} what={name} />
          ))}
        </tbody>
      </table>
      <div class="dialog-acts">
        <button class="btn" type="button" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

function KeyRow({ name, what }: { readonly name: string; readonly what: string }) {
  return (
    <tr>
      <th scope="row">
        <kbd>{name}</kbd>
      </th>
      <td>{what}</td>
    </tr>
  );
}

// Finds a command by its id, or by the end of the id that tables show. The relay needs user, client and id to look a
// command up. By the id alone, this search reads the commands with a record, newest first, up to a bound.

type FoundCommand = FindCommandQuery['delivery']['commands']['nodes'][number];

type Search = {
  /** `off`: the text cannot be an id, or the viewer may not search. `found` is empty unless `done`. */
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
const idOf = (text: string): string => text.replace(/^(…|\.\.\.)/, '');

/** Whether a text can only be the id of a command, or its end: an id as the relay makes them. */
const isCommandOnly = (text: string): boolean => WHOLE.test(idOf(text)) || /^(…|\.\.\.)?[\da-f]{8}$/i.test(text);

/** Looks for the commands whose id is the text, or ends with it. `skip`: the viewer may not list commands. */
function useCommandSearch(text: string, skip: boolean): Search {
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

/** Reads pages of commands, at most PAGES, until one has a command whose id ends with `wanted`. */
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
