/** Lets a caller wait for a command that an earlier call admitted. */
import { requireScope, type Requester } from '../auth/principal.ts';
import { isTerminal } from '../commands/command.ts';
import { seenKey } from '../commands/lookup.ts';
import { fail } from '../errors.ts';
import { within, type CommandKey } from '../ids.ts';
import { AWAIT_WITHIN_MS } from '../limits.ts';
import { holderOf } from '../shares/holder.ts';
import { SHARE_MESSAGE } from '../shares/share-bounds.ts';
import { withCallSpan } from './call-spans.ts';
import { endedInvocation, invocation, type AwaitRequest, type Invocation } from './call.ts';
import { callerOf } from './recorded-caller.ts';
import { Wait, type WaitDeps } from './wait.ts';

export async function awaitCommand(
  parts: WaitDeps,
  requester: Requester,
  request: AwaitRequest,
): Promise<Invocation | null> {
  const { deps } = parts;
  const key = await seenKey(deps, requester, request);
  const withinMs = within('within_ms', request.withinMs, AWAIT_WITHIN_MS);
  if (!key) return null;
  if (withinMs === 0) return readCommand(parts, key);
  const asked = { ...request, ...key, action: null };
  return withCallSpan<Invocation | null>(deps, asked, () => waitAgain(parts, requester, request, { key, withinMs }));
}

async function waitAgain(
  parts: WaitDeps,
  requester: Requester,
  request: AwaitRequest,
  { key, withinMs }: { readonly key: CommandKey; readonly withinMs: number },
): Promise<Invocation | null> {
  const { deps } = parts;
  const waitFor = request.waitFor ?? 'completed';
  const holdings = deps.shares.of(holderOf(requester));
  const shortage = holdings.refusal('waits', 1);
  if (shortage) fail(shortage, SHARE_MESSAGE[shortage], { share: 'waits', retryAfterMs: 1000 });
  const recordedAs = callerOf(requireScope(requester, 'invoke'), request.callerLabel);
  const wait = new Wait(parts, { waitFor, withinMs, holdings, recordedAs, caller: request });
  let attached;
  try {
    const { rpcId } = wait;
    const waiter = { rpcId, caller: recordedAs, callerNodeId: deps.nodeId, waitFor, withinMs };
    attached = await deps.backend.waiters.attach(key, waiter);
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

async function readCommand({ deps }: WaitDeps, key: CommandKey): Promise<Invocation | null> {
  const { commands } = deps.backend;
  const [command] = await commands.get([key]);
  if (command) return invocation(command, null, isTerminal(command) ? await commands.result(key) : null);
  const mark = await commands.mark(key);
  return mark && endedInvocation(key, mark);
}
