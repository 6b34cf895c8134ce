import { CallboardError } from '../../../core/errors.ts';
import type { Command } from '../../../core/delivery/command.ts';
import type { WaitFor, Waiter } from '../../../core/delivery/waiter.ts';
import type { PendingWait } from '../../../core/delivery/waiters.ts';
import { decodeCommand } from '../commands/record.ts';
import { listOf } from '../replies.ts';
import type { Store } from '../store/store.ts';
import type { ReadCommand, Reply } from '../types.ts';

const WAITS_FOR = ['admitted', 'acknowledged', 'completed'] as const satisfies readonly WaitFor[];

/** Where a wait stands among all: when it came, in which order, on which command, under which id. Sorts as text. */
export type Place = string;

/** A row as it is kept beside its command. */
type Stored = {
  readonly rpcId: string;
  readonly callerNodeId: string;
  readonly waitFor: WaitFor;
  readonly createdAt: string;
  readonly timesOutAt: string;
};

/** The fields of a row's text: `waiters_text` of waiters/lib-waiters.lua writes them. */
const FIELDS = 6;
const HASH_CHARS = 22;

/** The reads of what is kept of a live command: its waiters, its state and what was asked for. */
export function readOf(store: Store, partition: number, client: string, commandId: string): ReadCommand {
  const key = store.key(partition, 'client', client);
  return ['HMGET', key, `w${commandId}`, `s${commandId}`, `a${commandId}`];
}

/** The waits at places of one partition beside their commands, in one round trip; null for those that are no more. */
export async function readPlaces(
  store: Store,
  partition: number,
  places: readonly Place[],
): Promise<readonly (PendingWait | null)[]> {
  const replies = await store.read(
    places.map((place) => {
      const { client, commandId } = parsePlace(place);
      return readOf(store, partition, client, commandId);
    }),
  );
  return places.map((place, i) => {
    const { rpcId } = parsePlace(place);
    return decodeWaits(replies[i]).find(({ waiter }) => waiter.rpcId === rpcId) ?? null;
  });
}

/** All waits of one command, oldest first, of what `readOf` read. */
export function decodeWaits(reply: Reply | undefined): readonly PendingWait[] {
  const [rows, state, asked] = listOf(reply);
  if (typeof rows !== 'string' || typeof state !== 'string' || typeof asked !== 'string') return [];
  const command = decodeCommand(state + asked);
  return storedIn(rows).map((row) => ({ waiter: waiterOf(row, command), command }));
}

/** The first waiter in a text of rows. */
export function decodeWaiter(rows: string, command: Command): Waiter {
  const [row] = storedIn(rows);
  if (!row) throw new CallboardError('internal', 'The row of a waiter is cut short.');
  return waiterOf(row, command);
}

function waiterOf({ rpcId, callerNodeId, waitFor, createdAt, timesOutAt }: Stored, command: Command): Waiter {
  const { userId, clientId, commandId, action } = command;
  const stamps = { createdAt: Number(createdAt), timesOutAt: Number(timesOutAt) };
  return { userId, clientId, commandId, action, rpcId, callerNodeId, waitFor, ...stamps };
}

export function texts(reply: Reply | undefined): readonly string[] {
  return listOf(reply).map(String);
}

function storedIn(rows: string): readonly Stored[] {
  const fields = rows.split('\0');
  const found: Stored[] = [];
  for (let at = 0; at + FIELDS < fields.length; at += FIELDS) {
    const [rpcId = '', callerNodeId = '', waitFor = '', createdAt = '', timesOutAt = ''] = fields.slice(
      at,
      at + FIELDS,
    );
    found.push({ rpcId, callerNodeId, waitFor: waitForOf(waitFor), createdAt, timesOutAt });
  }
  return found;
}

function waitForOf(text: string): WaitFor {
  const found = WAITS_FOR.find((known) => known === text);
  if (found === undefined) throw new CallboardError('internal', `A waiter cannot wait for "${text}".`);
  return found;
}

/** `<time>:<order>:<client's hash><command>\x01<rpc id>`. */
function parsePlace(place: Place): { readonly client: string; readonly commandId: string; readonly rpcId: string } {
  const named = place.slice(place.indexOf(':', place.indexOf(':') + 1) + 1);
  const end = named.indexOf('\x01');
  return { ...commandOf(named.slice(0, end)), rpcId: named.slice(end + 1) };
}

/** The client's hash and the id of a command, of the text that names it in an index. */
export function commandOf(name: string): { readonly client: string; readonly commandId: string } {
  return { client: name.slice(0, HASH_CHARS), commandId: name.slice(HASH_CHARS) };
}
