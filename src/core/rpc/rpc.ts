import type { Rpc } from '../core.ts';
import type { CommandKey } from '../ids.ts';
import { promised } from '../maybe-promise.ts';
import { pendingAlerts } from './alerts.ts';
import { awaitCommand, cancelCommand } from './handle.ts';
import { invoke, type InvokeParts } from './invoke.ts';
import { createPending } from './pending.ts';

/** The API of calls: invoke, await, cancel, and observation of pending waits. */
export function createRpc(parts: InvokeParts): Rpc {
  const pending = createPending(parts.deps);
  return {
    ...pending,
    invoke: (requester, request) => promised(() => invoke(parts, requester, request)),
    await: (requester, request) => awaitCommand(parts, requester, request),
    cancel: (requester, key: CommandKey, reason) => cancelCommand(parts, { requester, key, reason }),
    alerts: (requester, olderThanMs, userId) => pendingAlerts(parts.deps, pending, { requester, olderThanMs, userId }),
  };
}
