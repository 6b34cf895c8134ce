/**
 * Shows the command palette, which finds clients, users and actions by a part of their name, commands by their id,
 * pages, operations, and objects that were opened before. It lists only what exists.
 */
import { signal } from '@preact/signals';
import { useLocation } from 'preact-iso';
import { useEffect, useState } from 'preact/hooks';
import * as gql from '../../../generated/console.ts';
import { paused } from '../api/live-state.ts';
import { errorOf, isAbort, request } from '../api/request.ts';
import { callHref, clientHref, nodesHref, pagePath, segments, userHref } from '../base.ts';
import { openInvoke } from '../invoke/open.tsx';
import { signOut } from '../session.ts';
import { Dialog, TextField } from '../ui/dialogs.tsx';
import { useKeys } from '../ui/keys.ts';
import { CommandMark, ConnectionMark } from '../ui/values.tsx';
import { givenId, isCommandId, shortId } from '../ui/text-format.ts';
import { isAdmin } from './facts.tsx';
import { shownPages } from './pages.tsx';
import { useRecord, recents, type PaletteTarget } from './recents.ts';

const isOpen = signal(false);
export const openPalette = (): void => void (isOpen.value = true);

export function Palette() {
  useKeys({ 'Ctrl K': openPalette });
  useRecord();
  return isOpen.value ? <PaletteDialog /> : null;
}

function PaletteDialog() {
  const { route } = useLocation();
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState(0);
  const [isGoing, setGoing] = useState(false);
  const asked = text.trim();
  const commands = useFound(asked, lookForCommands, isLongEnough(asked));
  const names = useFound(asked, lookForNames, asked !== '' && !isCommandId(asked));
  const isLooking = commands.isLooking || names.isLooking;
  const known = asked === '' ? recents() : named([...ACTS(), ...pages()], asked);
  const targets: readonly PaletteTarget[] = [...commands.found, ...names.found, ...known].slice(0, SHOWN);
  const close = (): void => void (isOpen.value = false);
  const go = (target: PaletteTarget | undefined): void => {
    if (!target) return;
    close();
    if ('run' in target) target.run();
    else route(target.href);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    setChosen((was) => (was + step + targets.length) % Math.max(1, targets.length));
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    if (targets.length === 0 && isLooking) setGoing(true);
    go(targets[chosen]);
  };
  // Enter was pressed before the search ended. If the search has a single match, it is opened; several matches are
  // listed.
  useEffect(() => {
    if (!isGoing || isLooking) return;
    setGoing(false);
    if (targets.length === 1) go(targets[0]);
  }, [isGoing, isLooking]);
  const why = commands.why || names.why;
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
            <li key={`${target.kind} ${'href' in target ? target.href : target.text}`}>
              <a
                href={'href' in target ? target.href : '#'}
                aria-current={at === chosen ? 'true' : undefined}
                onClick={(event) => {
                  if ('href' in target) return close();
                  event.preventDefault();
                  go(target);
                }}
              >
                <span class="quiet">{target.kind}</span> {target.text} {target.mark}
              </a>
            </li>
          ))}
        </ul>
        <p class="quiet" role="status">
          {isLooking ? 'Looking…' : targets.length === 0 && asked !== '' && (why || 'Nothing has this in its name.')}
        </p>
      </form>
    </Dialog>
  );
}

const LABEL = 'A part of the name of a client, user, action, page or act; or a command id or a trace id';
const LABEL_OF_USER = 'A part of the name of a client, action, page or act; or a command id or a trace id';

const SHOWN = 14;

const pages = (): readonly PaletteTarget[] =>
  shownPages().map(({ path, name }) => ({ kind: 'Page', text: name, href: pagePath(path) }));

const ACTS = (): readonly PaletteTarget[] => [
  { kind: 'Act', text: 'Invoke an action', run: () => openInvoke({}) },
  {
    kind: 'Act',
    text: paused.value ? 'Go on live' : 'Pause live updates',
    run: () => void (paused.value = !paused.value),
  },
  { kind: 'Act', text: 'Confirm a device', href: pagePath('devices') },
  { kind: 'Act', text: 'Revoke tokens', href: pagePath('revocations') },
  ...(isAdmin.value ? [{ kind: 'Act', text: 'Drain a node', href: nodesHref() } as const] : []),
  { kind: 'Act', text: 'Sign out', run: signOut },
];

const named = (targets: readonly PaletteTarget[], text: string): readonly PaletteTarget[] =>
  targets.filter((target) => target.text.toLowerCase().includes(text.toLowerCase()));

// Searches the relay for names that contain a text, and for commands by an id or a trace.

type Result = {
  readonly found: readonly PaletteTarget[];
  /** The text to show if nothing was found: how far the search went, or why it failed. */
  readonly why: string;
};

const NOTHING: Result = { found: [], why: '' };

/** How long the text must stay unchanged before the relay is asked, in milliseconds. */
const REST_MS = 250;

type Looker = (text: string, signal: AbortSignal) => Promise<Result>;

function useFound(text: string, look: Looker, isWanted: boolean): Result & { readonly isLooking: boolean } {
  const [result, setResult] = useState<Result & { readonly of: string }>({ ...NOTHING, of: '' });
  useEffect(() => {
    if (!isWanted) return undefined;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      look(text, stop.signal).then(
        (found) => setResult({ ...found, of: text }),
        (error: unknown) => {
          if (!isAbort(error)) setResult({ found: [], why: errorOf(error).message, of: text });
        },
      );
    }, REST_MS);
    return () => (clearTimeout(timer), stop.abort());
  }, [text, isWanted]);
  if (!isWanted) return { ...NOTHING, isLooking: false };
  return result.of === text ? { ...result, isLooking: false } : { ...NOTHING, isLooking: true };
}

/** The maximum number of clients that are searched, and of actions that are listed. */
const CLIENTS = 6;
const ACTIONS = 5;

/**
 * Searches for clients, users and actions. For `user/client`, searches for the second part among the clients of that
 * user.
 */
async function lookForNames(text: string, signal: AbortSignal): Promise<Result> {
  const [last = '', user] = text
    .split('/')
    .map((part) => part.trim())
    .reverse();
  if (last === '') return NOTHING;
  const userId = user === undefined || user === '' ? null : user;
  const [clients, others] = await Promise.all([
    request(gql.ClientNamesDocument, { userId, text: last, first: CLIENTS }, signal),
    userId === null ? lookForOthers(last, signal) : [],
  ]);
  const found = clients.connections.nodes.map((row) => ({
    kind: 'Client' as const,
    href: clientHref(row),
    text: `${row.userId} / ${row.clientId}`,
    mark: <ConnectionMark status={row.status} recorded={false} />,
  }));
  return { found: [...found, ...others], why: '' };
}

async function lookForOthers(text: string, signal: AbortSignal): Promise<readonly PaletteTarget[]> {
  if (!isAdmin.value) {
    const { connections } = await request(gql.SearchOfUserDocument, {}, signal);
    const names = connections.nodes.flatMap(({ actionNames }) => actionNames);
    return actionTargets(names.filter((name) => name.toLowerCase().includes(text.toLowerCase())));
  }
  const { users, actions } = await request(gql.SearchOfAdminDocument, { text }, signal);
  return [
    ...users.nodes.map(({ userId }) => ({ kind: 'User' as const, href: userHref(userId), text: userId })),
    ...actionTargets(actions.items.map(({ action }) => action.name)),
  ];
}

function actionTargets(names: readonly string[]): readonly PaletteTarget[] {
  return [...new Set(names)]
    .slice(0, ACTIONS)
    .map((name) => ({ kind: 'Action' as const, href: pagePath(`actions/${segments(name)}`), text: name }));
}

/** The minimum length of a text that is searched as an id. Tables show that many characters of the end of an id. */
const LEAST_CHARS = 8;
/** The maximum number of pages of commands that are read. A page may be empty although a later one has a match. */
const PAGES = 20;

const idIn = (text: string): string => givenId(text.split('/').at(-1) ?? '');
const isLongEnough = (text: string): boolean => idIn(text).length >= LEAST_CHARS && !/\s/.test(text);

/** Searches for commands whose id equals the text or ends with it, or whose trace id equals the text. */
async function lookForCommands(text: string, signal: AbortSignal): Promise<Result> {
  const idOrTrace = idIn(text);
  let after: string | null = null;
  for (let page = 0; page < PAGES; page++) {
    const answer: gql.FindCommandsQuery = await request(gql.FindCommandsDocument, { idOrTrace, after }, signal);
    const { nodes, pageInfo } = answer.findCommands;
    if (nodes.length > 0) return { found: nodes.map(commandTarget), why: '' };
    if (!pageInfo.hasNextPage || pageInfo.endCursor === null) return { found: [], why: isCommandId(text) ? NONE : '' };
    after = pageInfo.endCursor;
  }
  return { found: [], why: UNFINISHED };
}

function commandTarget(row: gql.FindCommandsQuery['findCommands']['nodes'][number]): PaletteTarget {
  const text = `${row.action} on ${row.userId} / ${row.clientId}, ${shortId(row.commandId)}`;
  return { kind: 'Call', href: callHref(row), text, mark: <CommandMark {...row} /> };
}

const NONE =
  'No command with a record has this id or trace. A record is kept for an hour after the end; older commands are in the history of their user.';
const UNFINISHED =
  'None of the newest commands has this id or trace. There are older ones that were not read: look in the history of its user.';
