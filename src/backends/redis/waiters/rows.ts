import type { Command } from '../../../core/delivery/command.ts';
import type { WaitFor, Waiter } from '../../../core/delivery/waiter.ts';
import type { PendingWait } from '../../../core/delivery/waiters.ts';
import { decodeCommandOr } from '../commands/record.ts';
import { fieldsOf, type Fields } from '../replies.ts';
import type { Store } from '../store/store.ts';
import type { ReadCommand, Reply } from '../types.ts';

/** Where a wait stands among all: when it came, in which order, on which command, under which id. Sorts as text. */
export type Place = string;

type Stored = {
  readonly place: Place;
  readonly callerNodeId: string;
  readonly waitFor: WaitFor;
  readonly createdAt: string;
  readonly timesOutAt: string;
};

/** The waits at places of one partition beside their commands, in one round trip; null for those that are no more. */
export async function readPlaces(
  store: Store,
  partition: number,
  places: readonly Place[],
): Promise<readonly (PendingWait | null)[]> {
  const replies = await store.read(
    places.flatMap((place): ReadCommand[] => {
      const { kh, rpcId } = parsePlace(place);
      return [
        ['HGET', store.key(partition, 'waiters', kh), rpcId],
        ['GET', store.key(partition, 'cmd', kh)],
      ];
    }),
  );
  return places.map((place, i) => {
    const row = replies[2 * i];
    const command = decodeCommandOr(replies[2 * i + 1] ?? null);
    if (typeof row !== 'string' || !command) return null;
    return { waiter: decodeWaiter(parsePlace(place).rpcId, row, command), command };
  });
}

/** All waits of one command, oldest first. */
export function decodeWaits(rows: Fields, record: Fields): readonly PendingWait[] {
  const command = decodeCommandOr(record);
  if (!command) return [];
  return [...fieldsOf(rows)]
    .map(([rpcId, row]) => ({ place: stored(row).place, wait: { waiter: decodeWaiter(rpcId, row, command), command } }))
    .sort((a, b) => (a.place < b.place ? -1 : 1))
    .map(({ wait }) => wait);
}

export function decodeWaiter(rpcId: string, row: string, command: Command): Waiter {
  const { callerNodeId, waitFor, createdAt, timesOutAt } = stored(row);
  const { userId, clientId, commandId, action } = command;
  const stamps = { createdAt: Number(createdAt), timesOutAt: Number(timesOutAt) };
  return { userId, clientId, commandId, action, rpcId, callerNodeId, waitFor, ...stamps };
}

export function texts(reply: Reply | undefined): readonly string[] {
  return Array.isArray(reply) ? (reply as readonly Reply[]).map(String) : [];
}

/** A row's text: `waiters_text` of waiters/lib-waiters.lua writes it. */
function stored(row: string): Stored {
  const [place = '', , , callerNodeId = '', waitFor = '', createdAt = '', timesOutAt = ''] = row.split('\0');
  return { place, callerNodeId, waitFor: waitFor as WaitFor, createdAt, timesOutAt };
}

function parsePlace(place: Place): { readonly kh: string; readonly rpcId: string } {
  const [stamp = '', order = '', kh = ''] = place.split(':', 3);
  return { kh, rpcId: place.slice(stamp.length + order.length + kh.length + 3) };
}
