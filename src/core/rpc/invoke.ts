import { requireScope, type Caller } from '../auth/principal.ts';
import { isLive } from '../connections/connection.ts';
import type { Invocation, InvokeRequest, Who } from '../core.ts';
import { isTerminal, type Command } from '../delivery/command.ts';
import type { AdmitResult } from '../delivery/commands.ts';
import { satisfied } from '../delivery/waiter.ts';
import { CallboardError, notFound } from '../errors.ts';
import type { Keeper } from '../history/keep.ts';
import type { KeptPayload } from '../history/message.ts';
import { canonicalUser, type CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import { refused, refusedAdmission } from './refusals.ts';
import { checkInvoke, type CheckedInvoke } from './request.ts';
import { expectReply, waitForReply, type CallerSide, type WaitParts } from './wait.ts';

export type InvokeParts = WaitParts & { readonly keeper: Keeper; readonly isDraining: () => boolean };

/**
 * Admits a command and waits for what the caller asked to wait for. Refusals come in this order: who asks, whose client, input, policy,
 * target, capacity; a refused invocation leaves no record.
 */
export async function invoke(parts: InvokeParts, who: Who, request: InvokeRequest): Promise<Invocation> {
  const { deps } = parts;
  const caller = requireScope(who, 'invoke');
  const userId = canonicalUser(request.userId);
  if (caller.kind === 'user' && caller.userId !== userId) notFound();
  const checked = checkInvoke(deps.crypto, request);
  const { signal, onStage } = request;
  return invokeChecked(parts, { caller, userId, checked, wait: { signal, onStage } });
}

export type CheckedCall = {
  /** For whom the policy is asked. */
  readonly caller: Caller;
  readonly userId: string;
  readonly checked: CheckedInvoke;
  readonly wait: CallerSide;
};

/** As `invoke`, once it is known who may ask for what: policy, target and capacity are left. */
export async function invokeChecked(
  parts: InvokeParts,
  { caller, userId, checked, wait }: CheckedCall,
): Promise<Invocation> {
  const { deps } = parts;
  const commandId = checked.commandId ?? deps.crypto.randomId();
  const key = { userId, clientId: checked.clientId, commandId };
  const refusal = await preflight(parts, { caller, key, checked });
  if (refusal) {
    deps.metrics.count('commands_refused', refusal.code);
    return { ...refusal, commandId: checked.commandId };
  }
  return admit(parts, { key, checked, wait });
}

type Asked = { readonly caller: Caller; readonly key: CommandKey; readonly checked: CheckedInvoke };
type Refusal = Extract<Invocation, { kind: 'refused' }>;

/** What can be refused before admission. A command id that is known already passes the target's checks: its outcome is replayed. */
async function preflight({ deps, isDraining }: InvokeParts, { caller, key, checked }: Asked): Promise<Refusal | null> {
  const { connections, commands } = deps.backend;
  const [connection = null] = await connections.get([key]);
  const live = isLive(connection, deps.clock.now()) ? connection : null;
  const verdict = deps.policy.decide(caller, {
    userId: key.userId,
    clientType: live?.clientType ?? null,
    action: checked.action,
  });
  if (!verdict.allowed) return refused('policy_denied', 'policy', `The policy's rule "${verdict.rule}" refuses this.`);
  const known = checked.commandId === null ? null : (await commands.get([key]))[0];
  if (known) return null;
  if (isDraining()) return refused('draining', 'relay', 'This node admits no new commands.', { retryAfterMs: 1000 });
  const another = checked.namedInstanceId !== null && checked.namedInstanceId !== live?.instanceId;
  if (!live || another || live.actions.some(({ name }) => name === checked.action)) return null;
  return refused('action_not_advertised', 'target', 'The client does not advertise this action.');
}

type Admission = {
  readonly key: CommandKey;
  readonly checked: CheckedInvoke;
  readonly wait: CallerSide;
};

async function admit(parts: InvokeParts, { key, checked, wait }: Admission): Promise<Invocation> {
  const { deps } = parts;
  const kept = await keepParams(parts, checked);
  if ('kind' in kept) return kept;
  const { id: scopeId, limit: scopeLimit } = deps.policy.scopeOf(key.userId);
  const rpcId = deps.crypto.randomId();
  const waiter = { rpcId, callerNodeId: deps.nodeId, waitFor: checked.waitFor, withinMs: null };
  const reply = expectReply(parts, rpcId);
  const result = await admitOrForget(parts, { ...checked, ...key, kept, scopeId, scopeLimit, waiter });
  if (result.kind !== 'admitted') parts.keeper.discard(kept);
  if (result.kind === 'refused') {
    parts.correlator.forget(rpcId);
    deps.metrics.count('commands_refused', result.code);
    return refusedAdmission(result.code, checked.commandId);
  }
  if (result.kind === 'admitted') deps.metrics.count('commands_admitted');
  parts.acts.hint(key);
  const { command } = result;
  if (satisfied(checked.waitFor, command)) {
    parts.correlator.forget(rpcId);
    return invocation(command, rpcId, result.kind === 'attached' ? result.result : null);
  }
  return waitForReply(parts, { reply, rpcId, command, waitFor: checked.waitFor, withinMs: null, ...wait });
}

/** Before admission, so that no command is admitted whose history could not be kept. */
async function keepParams({ keeper, deps }: InvokeParts, checked: CheckedInvoke): Promise<KeptPayload | Refusal> {
  try {
    return await keeper.keep(checked.params);
  } catch (error) {
    if (!(error instanceof CallboardError) || error.code !== 'payload_store_full') throw error;
    deps.log.warn({ err: error }, 'the params of an invocation were not stored');
    deps.metrics.count('commands_refused', error.code);
    return refused(error.code, 'capacity', error.message, { commandId: checked.commandId, retryAfterMs: 1000 });
  }
}

async function admitOrForget(
  { deps, correlator }: InvokeParts,
  request: Parameters<typeof deps.backend.commands.admit>[0],
): Promise<AdmitResult> {
  try {
    return await deps.backend.commands.admit(request);
  } catch (error) {
    correlator.forget(request.waiter.rpcId);
    throw error;
  }
}

export function invocation(command: Command, rpcId: string | null, result: JsonText | null): Invocation {
  return { kind: isTerminal(command) ? 'outcome' : 'pending', command, rpcId, result };
}
