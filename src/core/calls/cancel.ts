/** Lets a caller cancel a command that was admitted. */
import type { RecordedAct } from '../audit/audit.ts';
import { subjectOf, type Principal, type Requester } from '../auth/principal.ts';
import { isCallOf, isTerminal } from '../commands/command.ts';
import { seenKey } from '../commands/lookup.ts';
import { checkReason } from '../commands/operator-actions.ts';
import type { CommandKey } from '../ids.ts';
import type { CancelReceipt } from './call.ts';
import type { WaitDeps } from './wait.ts';

type CancelRequest = { readonly reason: string | null; readonly requestId: string | null };

export async function cancelCommand(
  parts: WaitDeps,
  requester: Requester,
  given: CommandKey,
  { reason, requestId }: CancelRequest,
): Promise<CancelReceipt | null> {
  const key = await seenKey(parts.deps, requester, given);
  if (!key || !requester) return null;
  checkReason(reason);
  const act = await recordCancel(parts, requester, key, { reason, requestId });
  const result = await parts.recorder.settle(key, { kind: 'cancel', reason, by: nameOf(requester) });
  await act?.end(CANCEL_STATES[result.kind]);
  const { commandId } = key;
  if (result.kind === 'unknown') {
    const mark = await parts.deps.backend.commands.mark(key);
    return mark && { state: 'too_late', commandId, outcome: mark.outcome, command: null };
  }
  const { command } = result;
  return { state: CANCEL_STATES[result.kind], commandId, outcome: command.outcome, command };
}

const CANCEL_STATES = {
  settled: 'cancelled',
  requested: 'requested',
  unchanged: 'too_late',
  unknown: 'too_late',
} as const;

/**
 * Writes an audit row if an administrator is about to cancel a live command of another caller. Returns null if no row
 * is needed.
 */
async function recordCancel(
  { deps }: WaitDeps,
  requester: Principal,
  key: CommandKey,
  request: CancelRequest,
): Promise<RecordedAct | null> {
  if (requester.kind !== 'admin') return null;
  const [command] = await deps.backend.commands.get([key]);
  if (!command || isTerminal(command) || isCallOf(command, requester)) return null;
  return deps.audit.record(requester, { action: 'cancel', subject: key, ...request });
}

function nameOf(requester: Principal): string {
  return requester.kind === 'admin' ? 'an administrator' : subjectOf(requester);
}
