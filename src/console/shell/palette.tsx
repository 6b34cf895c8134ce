/**
 * Shows the palette, which opens a page by its name, a user or a client by its exact id, and a command by its id. Also
 * shows the list of keys.
 */
import { signal } from '@preact/signals';
import { useLocation } from 'preact-iso';
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { FindCommandsDocument, type FindCommandsQuery } from '../../../generated/console.ts';
import { errorOf, isAbort, request } from '../api/request.ts';
import { callHref, clientHref, pagePath, queryPath, userHref } from '../base.ts';
import { Dialog, TextField } from '../ui/dialogs.tsx';
import { keysOn, switchKeys, useKeys } from '../ui/filters.tsx';
import { isAdmin, viewer } from './facts.tsx';
import { CommandMark } from '../ui/values.tsx';
import { givenId, isCommandId, shortId } from '../ui/words.ts';
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
  const [isGoing, setGoing] = useState(false);
  const asked = text.trim();
  const search = useCommandSearch(asked);
  const commands = search.found.map((row) => ({
    href: callHref(row),
    text: `${row.action} on ${row.userId} / ${row.clientId}, ${shortId(row.commandId)}`,
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
    if (targets.length === 0 && search.state === 'looking') setGoing(true);
    go(targets[chosen]);
  };
  // Enter was pressed before the search ended. The only match is then opened; several are listed.
  useEffect(() => {
    if (!isGoing || search.state !== 'done') return;
    setGoing(false);
    if (targets.length === 1) go(targets[0]);
  }, [isGoing, search.state]);
  return (
    <Dialog title="Go to" onClose={close} class="dialog palette">
      <form onSubmit={submit}>
        <TextField
          label={isAdmin.value ? LABEL : LABEL_OF_USER}
          id="palette-text"
          spellcheck={false}
          value={text}
          onText={(typed) => (setText(typed), setChosen(0), setGoing(false))}
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
          {search.state === 'off' && targets.length === 0 && 'Nothing matches. Write ids of users and clients in full.'}
        </p>
      </form>
    </Dialog>
  );
}

const LABEL = 'A page, a user, user/client, a trace id, or a command id: the whole of it, or its last eight characters';
const LABEL_OF_USER = 'A page, a client, a trace id, or a command id: the whole of it, or its last eight characters';

/** Returns the pages whose name contains the text, and the objects that may have the text as their id. */
function targetsOf(text: string): readonly Target[] {
  const pages = shownPages()
    .filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()))
    .map(({ path, name }) => ({ href: pagePath(path), text: name }));
  return [...(text === '' ? [] : idTargets(text)), ...pages].slice(0, 12);
}

function idTargets(text: string): readonly Target[] {
  if (isCommandId(text)) return [];
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

// Finds commands by an id or a trace. A page of the relay may be empty although a later one has a match.

type FoundCommand = FindCommandsQuery['findCommands']['nodes'][number];

type Search = {
  /** `off`: the text cannot be an id. `found` is empty unless `done`. */
  readonly state: 'off' | 'looking' | 'done';
  readonly found: readonly FoundCommand[];
  /** What to say when nothing was found: how far the search went, or why it failed. */
  readonly why: string;
};

/** The shortest text that is looked for: the end of an id that tables show. */
const LEAST_CHARS = 8;
/** The most pages that are read. */
const PAGES = 20;
/** The time for which the text must stay unchanged before the relay is asked, in milliseconds. */
const REST_MS = 250;

const OFF: Search = { state: 'off', found: [], why: '' };

/** Looks for the commands whose id is the text or ends with it, or whose trace id is the text. */
function useCommandSearch(text: string): Search {
  const wanted = givenId(text);
  const [search, setSearch] = useState<Search & { readonly of: string }>({ ...OFF, of: '' });
  const isOff = wanted.length < LEAST_CHARS || /[\s/]/.test(wanted);
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

/** Reads pages, at most PAGES, until one has a command. */
async function look(idOrTrace: string, signal: AbortSignal): Promise<Pick<Search, 'found' | 'why'>> {
  let after: string | null = null;
  for (let page = 0; page < PAGES; page++) {
    const answer: FindCommandsQuery = await request(FindCommandsDocument, { idOrTrace, after }, signal);
    const { nodes, pageInfo } = answer.findCommands;
    if (nodes.length > 0) return { found: nodes, why: '' };
    if (!pageInfo.hasNextPage || pageInfo.endCursor === null) return { found: [], why: NONE };
    after = pageInfo.endCursor;
  }
  return { found: [], why: UNFINISHED };
}

const NONE =
  'No command with a record has this id or trace. A record is kept for an hour after the end; older commands are in the history of their user.';
const UNFINISHED =
  'None of the newest commands has this id or trace. There are older ones that were not read: write user/client/command id, or look in the history of its user.';
