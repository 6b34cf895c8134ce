/** Emits live alerts while callers wait for longer than a bound. */
import { readScope } from '../auth/principal.ts';
import type { PendingRpc, PendingRpcAlert, Rpc, Requester } from '../core.ts';
import type { Deps } from '../deps.ts';
import { OLDER_THAN_MS, RECONCILE_MS } from '../limits.ts';
import { createFeed, type Subscription } from '../live.ts';
import { within } from '../range.ts';

/**
 * Checks the oldest waiter once a second and emits an alert each time its age reaches the bound or falls below it. The
 * first alert is the current state. Several crossings between two checks count as one.
 */
export function pendingAlerts(
  deps: Deps,
  rooms: Pick<Rpc, 'pending' | 'count'>,
  request: { requester: Requester; olderThanMs: number; userId: string | null },
): Subscription<PendingRpcAlert> {
  const bound = within('older_than_ms', request.olderThanMs, OLDER_THAN_MS);
  const userId = readScope(request.requester, request.userId);
  let over: boolean | null = null;
  let looking = false;
  const check = async (): Promise<void> => {
    const oldest = (await rooms.pending(request.requester, { userId }, { first: 1 })).nodes[0] ?? null;
    const isOver = oldest !== null && oldest.ageMs >= bound;
    if (isOver === over) return;
    over = isOver;
    const { count } = await rooms.count(request.requester, { userId, minAgeMs: bound });
    feed.push(alert(deps, { over, oldest, count }));
  };
  const turn = (): void => {
    if (looking) return;
    looking = true;
    check().then(
      () => (looking = false),
      (error: unknown) => feed.fail(error),
    );
  };
  const cancel = deps.clock.every(RECONCILE_MS, turn);
  const feed = createFeed<PendingRpcAlert>(cancel);
  turn();
  return feed.subscription;
}

function alert({ clock }: Deps, seen: { over: boolean; oldest: PendingRpc | null; count: number }): PendingRpcAlert {
  return { ...seen, oldestAgeMs: seen.oldest?.ageMs ?? 0, at: clock.now() };
}
