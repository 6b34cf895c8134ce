/** Finds values for shell completion: contexts on this machine, and users, clients, calls and actions at a relay. */
import {
  ConnectionActionsDocument,
  GetServerDocument,
  ListConnectionsDocument,
  ListDeliveryCommandsDocument,
} from '../../generated/cli.ts';
import { systemClock } from '../clients/link/platform.ts';
import { isRecord } from '../protocol/json.ts';
import { visibleLine } from '../protocol/visible-text.ts';
import { readContexts } from './contexts-file.ts';
import { openRelay, type OperatorRelay } from './relay.ts';
import type { Io } from './io.ts';

/**
 * The time limit of each request to the relay, in milliseconds. It is short, because a person waits at the keyboard.
 */
const WITHIN_MS = 1_000;
const once = () => ({ repeatable: false, signal: AbortSignal.timeout(WITHIN_MS) });
/** The most users that are read. */
const USERS = 1000;
/** The most clients or calls that are read. */
const ROWS = 200;

/** The words of the line that the shell completes. The last one may be incomplete. */
type Line = { readonly words: readonly string[]; readonly io: Io };

/**
 * Returns values for the argument with this name. The last word of the line may be the beginning of one. Returns none
 * if the argument has no proposals, if a request fails or takes longer than WITHIN_MS, or if the token comes from a
 * command, because the command may ask for a passphrase. Never rejects.
 */
export async function proposals(argument: string, { words, io }: Line): Promise<readonly string[]> {
  const find = Object.hasOwn(FOUND, argument) ? FOUND[argument] : undefined;
  if (argument !== 'name' && !find) return [];
  try {
    if (!find) return Object.keys((await readContexts(io.env)).contexts);
    const relay = openRelay(relayFlags(words), { env: io.env, clock: io.clock ?? systemClock });
    if ((await relay.settings()).runsCommand) return [];
    // A value with hidden characters would be printed with their codes, and the shell would insert these.
    return (await find(relay, words)).filter((value) => visibleLine(value) === value);
  } catch {
    return [];
  }
}

type Find = (relay: OperatorRelay, words: readonly string[]) => Promise<readonly string[]>;

const FOUND: Readonly<Record<string, Find>> = {
  user: usersOf,
  client: async (relay, words) => {
    const rows = await connectionsOf(relay, valueOf('--user-id', words), words.at(-1));
    return [...new Set(rows.map(({ client_id }) => client_id))];
  },
  'user/client': async (relay, words) => {
    const user = userIn(words);
    const rows = await connectionsOf(relay, user, words.at(-1)?.slice(user === undefined ? 0 : user.length + 1));
    return rows.map(({ user_id, client_id }) => `${user_id}/${client_id}`);
  },
  'user/client/command': async (relay, words) => {
    const filter = { user_id: userIn(words), order: 'newest', limit: ROWS } as const;
    const { delivery } = await relay.query(ListDeliveryCommandsDocument, filter, once());
    return delivery.commands.items.map((call) => `${call.user_id}/${call.client_id}/${call.command_id}`);
  },
  action: async (relay, words) => {
    const [user_id = '', client_id = ''] = words.at(-2)?.split('/') ?? [];
    const { connection } = await relay.query(ConnectionActionsDocument, { user_id, client_id }, once());
    return connection?.actions.items.map(({ name }) => name) ?? [];
  },
};

/** Returns the users that an administrator sees, at most USERS. A user sees itself only. */
async function usersOf(relay: OperatorRelay): Promise<readonly string[]> {
  const { viewer } = await relay.query(GetServerDocument, {}, once());
  if (viewer.kind !== 'admin') return viewer.user_id === null ? [] : [viewer.user_id];
  const { items } = await relay.read('/users', { query: { limit: String(USERS) }, ...once() });
  const rows: readonly unknown[] = Array.isArray(items) ? items : [];
  return rows.flatMap((row) => (isRecord(row) && typeof row['user_id'] === 'string' ? [row['user_id']] : []));
}

async function connectionsOf(relay: OperatorRelay, user_id: string | undefined, part: string | undefined) {
  const filter = { user_id, text: part || undefined, limit: ROWS };
  const { connections } = await relay.query(ListConnectionsDocument, filter, once());
  return connections.items;
}

/** Returns the user in the address that the last word begins; undefined while the user itself is being typed. */
function userIn(words: readonly string[]): string | undefined {
  const [user, ...rest] = words.at(-1)?.split('/') ?? [];
  return rest.length > 0 ? user : undefined;
}

/** Returns the flags of the line by which a relay is selected. */
function relayFlags(words: readonly string[]): Readonly<Record<string, string | undefined>> {
  const flag = (name: string): string | undefined => valueOf(name, words);
  return {
    context: flag('--context'),
    url: flag('--url'),
    tokenFile: flag('--token-file'),
    tokenCommand: flag('--token-command'),
  };
}

/** Returns the value of a flag, written `--url x` or `--url=x`. Ignores the last word, because it is incomplete. */
function valueOf(flag: string, words: readonly string[]): string | undefined {
  const complete = words.slice(0, -1);
  const at = complete.findLastIndex((word) => word === flag || word.startsWith(`${flag}=`));
  const word = complete[at];
  return word === flag ? complete[at + 1] : word?.slice(flag.length + 1);
}
