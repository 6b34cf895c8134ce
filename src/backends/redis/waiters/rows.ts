/** Reads the commands that callers of this process wait for. Changes nothing. */
import { satisfied } from '../../../core/commands/command.ts';
import type { PendingWait } from '../../../core/commands/stores.ts';
import type { Position } from '../../../core/page.ts';
import { decodeLive, readOfLive } from '../commands/live.ts';
import { scattered, type Store } from '../store.ts';
import type { LocalWait } from './local.ts';

/** The most commands that one pipeline reads. */
const READ_BATCH = 500;

/** A wait and its position in listings. */
export type ListedWait = { readonly row: PendingWait; readonly position: Position };

/**
 * Reads the commands of waits as they are now. Returns one answer for each wait, in order. The answer is null if the
 * wait is not registered yet, or if the command has reached the stage that the caller waits for, because the reply is
 * then on its way.
 */
export function readWaits(store: Store, waits: readonly LocalWait[]): Promise<readonly (ListedWait | null)[]> {
  const asked = waits.map((wait) => ({ userId: wait.key.userId, wait }));
  return scattered(store, asked, {
    most: READ_BATCH,
    async ask(partition, some) {
      const replies = await store.read(some.map(({ wait }) => readOfLive(store, partition, wait.key)));
      return some.map(({ wait }, i) => {
        const command = decodeLive(replies[i]);
        if (!wait.listed || !command) return null;
        const { waiter, position } = wait.listed;
        return satisfied(waiter.waitFor, command) ? null : { row: { waiter, command }, position };
      });
    },
  });
}

/** Reads waits as `readWaits` does, without those that are over. */
export async function readPending(store: Store, waits: readonly LocalWait[]): Promise<readonly ListedWait[]> {
  return (await readWaits(store, waits)).filter((wait) => wait !== null);
}
