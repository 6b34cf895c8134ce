/** Core's ReconnectStore over Redis: counts how often clients reconnected in the last hour. */
import { compareReconnects, type ReconnectStore } from '../../core/connections/connection.ts';
import { RECONNECT_CLIENTS, RECONNECT_SLOTS } from '../../core/limits.ts';
import type { RedisParts } from './parts.ts';
import { partitionsOf, scattered } from './store.ts';
import { listOf, numbersOf } from './types.ts';

/** The most clients that one act counts. Redis answers no other request while an act runs. */
const READ_BATCH = 100;
/** The most clients of each slot that one act reads. */
const LEADERS = 200;

/** Creates Core's ReconnectStore over Redis. Each client is counted in its user's partition. */
export function createRedisReconnects({ store }: Pick<RedisParts, 'store'>): ReconnectStore {
  return {
    async note({ userId, clientId }, again) {
      const args = [userId, clientId, again ? '1' : null, RECONNECT_CLIENTS];
      await store.act(store.partitionOfUser(userId), 'reconnects-note', args);
    },
    counts: (clients) =>
      scattered(store, clients, {
        most: READ_BATCH,
        async ask(partition, some) {
          const args = some.flatMap(({ userId, clientId }) => [userId, clientId]);
          return listOf(await store.act(partition, 'reconnects-counts', args)).map(Number);
        },
      }),
    async top(first) {
      const found = await Promise.all(
        partitionsOf(store).map(async (partition) => {
          const counts = new Map<string, number>();
          let complete = true;
          // One call for each slot, one after the other, so that Redis answers others in between.
          for (let slot = 1; slot <= RECONNECT_SLOTS; slot++) {
            const args = [LEADERS, RECONNECT_CLIENTS, slot];
            const [all, ...flat] = listOf(await store.act(partition, 'reconnects-top', args));
            if (all !== '1') complete = false;
            for (const [name, reconnects] of numbersOf(flat)) counts.set(name, reconnects);
          }
          const rows = [...counts].map(([name, reconnects]) => {
            const [userId = '', clientId = ''] = name.split('\0');
            return { userId, clientId, reconnects };
          });
          return { rows, complete };
        }),
      );
      const rows = found.flatMap((one) => one.rows).sort(compareReconnects);
      return { rows: rows.slice(0, first), complete: found.every(({ complete }) => complete) };
    },
  };
}
