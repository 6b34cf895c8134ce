/** The API of calls: invoke, await, cancel, the waits that are pending, and alerts about the oldest of them. */
import { readScope, type Requester } from '../auth/principal.ts';
import type { NodeQuestions } from '../commands/nodes.ts';
import type { Deps } from '../deps.ts';
import { within, type CommandKey } from '../ids.ts';
import { OLDER_THAN_MS, RECONCILE_MS } from '../limits.ts';
import { createFeed, type Subscription } from '../live.ts';
import { promised } from '../maybe-promise.ts';
import type { PendingRpc, PendingRpcAlert, Rpc } from './call.ts';
import { invoke, type InvokeParts } from './invoke.ts';
import { createPending, createWaits } from './pending.ts';
import { preflight } from './preflight.ts';
import { awaitCommand, cancelCommand } from './request.ts';

/** Creates the API of calls: invoke, await, cancel, and observation of pending waits. */
export function createRpc(parts: InvokeParts, questions: NodeQuestions): Rpc {
  const pending = createPending(parts.deps, createWaits(parts.deps, questions));
  return {
    ...pending,
    invoke: (requester, request) => promised(() => invoke(parts, requester, request)),
    preflight: (requester, request) => preflight(parts, requester, request),
    await: (requester, request) => awaitCommand(parts, requester, request),
    cancel: (requester, key: CommandKey, reason, requestId = null) =>
      cancelCommand(parts, { requester, key, reason, requestId }),
    alerts: (requester, olderThanMs, userId) => pendingAlerts(parts.deps, pending, { requester, olderThanMs, userId }),
  };
}

// Emits live alerts while callers wait for longer than a bound.

/**
 * Checks the oldest waiter once a second and emits an alert each time its age reaches the bound or falls below it. The
 * first alert is the current state. Several crossings between two checks count as one.
 */
function pendingAlerts(
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
