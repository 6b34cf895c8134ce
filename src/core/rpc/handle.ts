/** Lets callers await and cancel a command that was admitted. */
import type { RecordedAct } from '../audit/trail.ts';
import { subjectOf, type Principal } from '../auth/principal.ts';
import type { AwaitRequest, CancelReceipt, Invocation, Requester } from '../core.ts';
import { isCallOf, isTerminal } from '../delivery/command.ts';
import { ownKey } from '../delivery/delivery.ts';
import { fail } from '../errors.ts';
import { holderOf } from '../shares/holders.ts';
import { SHARE_MESSAGE } from '../shares/shares.ts';
import { hasAtMost, type CommandKey } from '../ids.ts';
import { AWAIT_WITHIN_MS, MAX_REASON } from '../limits.ts';
import { invalid } from '../errors.ts';
import { withCallSpan } from './call-span.ts';
import { endedInvocation } from './ended.ts';
import { invocation } from './invocation.ts';
import { within } from '../range.ts';
import { Wait, type WaitParts } from './wait.ts';

/**
 * Waits again on a command by its ids, from any node. `withinMs` 0 reads the record and registers no waiter. Null: the
 * command does not exist or belongs to another user.
 */
export async function awaitCommand(
  parts: WaitParts,
  requester: Requester,
  request: AwaitRequest,
): Promise<Invocation | null> {
  const { deps } = parts;
  const key = ownKey(requester, request);
  const withinMs = within('within_ms', request.withinMs, AWAIT_WITHIN_MS);
  if (!key) return null;
  if (withinMs === 0) return readCommand(parts, key);
  const asked = { ...request, ...key, action: null };
  return withCallSpan<Invocation | null>(deps, asked, () => waitAgain(parts, { requester, request, key, withinMs }));
}

type WaitRequest = {
  readonly requester: Requester;
  readonly request: AwaitRequest;
  readonly key: CommandKey;
  readonly withinMs: number;
};

async function waitAgain(
  parts: WaitParts,
  { requester, request, key, withinMs }: WaitRequest,
): Promise<Invocation | null> {
  const { deps } = parts;
  const waitFor = request.waitFor ?? 'completed';
  const holdings = deps.shares.of(holderOf(requester));
  const shortage = holdings.refusal('waits', 1);
  if (shortage) fail(shortage, SHARE_MESSAGE[shortage], { share: 'waits', retryAfterMs: 1000 });
  const wait = new Wait(parts, { waitFor, withinMs, holdings, caller: request });
  const { rpcId } = wait;
  let attached;
  try {
    attached = await deps.backend.waiters.attach(key, { rpcId, callerNodeId: deps.nodeId, waitFor, withinMs });
  } catch (error) {
    wait.forget();
    throw error;
  }
  if (attached.kind === 'waiting') return wait.begin(attached.command);
  wait.forget();
  if (attached.kind === 'full')
    fail('capacity_exceeded', 'The maximum number of callers already wait on this command.', { retryAfterMs: 1000 });
  if (attached.kind === 'ended') return endedInvocation(key, attached.mark);
  return attached.kind === 'satisfied' ? invocation(attached.command, null, attached.result) : null;
}

/** Cancels a command. Null: the command is absent or belongs to another user. */
export async function cancelCommand(
  parts: WaitParts,
  request: { requester: Requester; key: CommandKey; reason: string | null; requestId: string | null },
): Promise<CancelReceipt | null> {
  const { requester, reason } = request;
  const key = ownKey(requester, request.key);
  if (!key || !requester) return null;
  if (reason !== null && !hasAtMost(reason, MAX_REASON)) invalid('reason', `expected at most ${MAX_REASON} characters`);
  const act = await recordCancel(parts, { requester, key, reason, requestId: request.requestId });
  const result = await parts.acts.settle(key, { kind: 'cancel', reason, by: nameOf(requester) });
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
 * Records in the audit that an administrator is about to cancel a live command of another caller. Returns null if there
 * is nothing to record.
 */
async function recordCancel(
  { deps }: WaitParts,
  {
    requester,
    key,
    ...told
  }: { requester: Principal; key: CommandKey; reason: string | null; requestId: string | null },
): Promise<RecordedAct | null> {
  if (requester.kind !== 'admin') return null;
  const [command] = await deps.backend.commands.get([key]);
  if (!command || isTerminal(command) || isCallOf(command, requester)) return null;
  return deps.audit.record(requester, { action: 'cancel', subject: key, ...told });
}

async function readCommand({ deps }: WaitParts, key: CommandKey): Promise<Invocation | null> {
  const { commands } = deps.backend;
  const [command] = await commands.get([key]);
  if (command) return invocation(command, null, isTerminal(command) ? await commands.result(key) : null);
  const mark = await commands.mark(key);
  return mark && endedInvocation(key, mark);
}

function nameOf(requester: Principal): string {
  return requester.kind === 'admin' ? 'an administrator' : subjectOf(requester);
}
