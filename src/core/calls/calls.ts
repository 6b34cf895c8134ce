/** Puts together the API of calls. */
import type { Rpc } from '../core.ts';
import type { NodeQuestions } from '../delivery/node-questions.ts';
import type { CommandKey } from '../ids.ts';
import { promised } from '../maybe-promise.ts';
import { pendingAlerts } from './alerts.ts';
import { awaitCommand, cancelCommand } from './handle.ts';
import { invoke } from './invoke.ts';
import type { InvokeParts } from './layers.ts';
import { createPending } from './pending.ts';
import { preflight } from './preflight.ts';
import { createWaits } from './waits.ts';

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
