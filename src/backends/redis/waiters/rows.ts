/** Reads the waits of callers: their places in the indexes, and the text of a command's waiters. Changes nothing. */
import { CallboardError } from '../../../core/errors.ts';
import type { Command } from '../../../core/delivery/command.ts';
import type { WaitFor, Waiter } from '../../../core/delivery/waiter.ts';
import type { PendingWait } from '../../../core/delivery/waiters.ts';
import { decodeCommand } from '../commands/record.ts';
import { listOf } from '../replies.ts';
import type { Store } from '../store/store.ts';
import type { ReadCommand, Reply } from '../types.ts';

const WAITS_FOR = ['admitted', 'acknowledged', 'completed'] as const satisfies readonly WaitFor[];

/** The entry of a wait in the indexes: when it was registered, its number, and its command. Sorts as text. */
export type Place = string;

/** The row of one waiter in the text of a command's waiters. */
type Stored = {
  readonly rpcId: string;
  readonly callerNodeId: string;
  readonly waitFor: WaitFor;
  readonly createdAt: string;
  readonly timesOutAt: string;
  readonly order: number;
};

/** The number of fields in a row's text, which `waiters_text` of waiters/lib-waiters.lua writes. */
const FIELDS = 6;
const HASH_CHARS = 22;

/** Returns the Redis command that reads the waiters, the state and the request of a live command. */
export function readOf(store: Store, partition: number, client: string, commandId: string): ReadCommand {
  const key = store.key(partition, 'client', client);
  return ['HMGET', key, `w${commandId}`, `s${commandId}`, `a${commandId}`];
}

/** Reads the waits at places of one partition, with their commands, in one round trip; null for waits that are gone. */
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
    const { order } = parsePlace(place);
    return decodeWaits(replies[i], order)[0] ?? null;
  });
}

/**
 * Decodes the waits of one command, oldest first, from the reply to `readOf`. `order`: only the wait with this number.
 */
export function decodeWaits(reply: Reply | undefined, order: number | null = null): readonly PendingWait[] {
  const [rows, state, request] = listOf(reply);
  if (typeof rows !== 'string' || typeof state !== 'string' || typeof request !== 'string') return [];
  const command = decodeCommand(state + request);
  return storedIn(rows)
    .filter((row) => order === null || row.order === order)
    .map((row) => ({ waiter: waiterOf(row, command), command }));
}

/** Decodes the first waiter in a text of rows. */
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
    const [rpcId = '', callerNodeId = '', waitFor = '', createdAt = '', timesOutAt = '', order = ''] = fields.slice(
      at,
      at + FIELDS,
    );
    found.push({ rpcId, callerNodeId, waitFor: waitForOf(waitFor), createdAt, timesOutAt, order: Number(order) });
  }
  return found;
}

function waitForOf(text: string): WaitFor {
  const found = WAITS_FOR.find((known) => known === text);
  if (found === undefined) throw new CallboardError('internal', `A waiter cannot wait for "${text}".`);
  return found;
}

/** Decodes a place: `<time, 13 digits>:<order, 12 digits><client's hash><command>`. */
function parsePlace(place: Place): { readonly client: string; readonly commandId: string; readonly order: number } {
  return { ...commandOf(place.slice(26)), order: Number(place.slice(14, 26)) };
}

/** Returns the hash of the client that a place names. */
export function clientIn(place: Place): string {
  return parsePlace(place).client;
}

/** Splits the name of a command in an index into its client's hash and its id. */
export function commandOf(name: string): { readonly client: string; readonly commandId: string } {
  return { client: name.slice(0, HASH_CHARS), commandId: name.slice(HASH_CHARS) };
}
