import { requireScope, type Caller } from '../auth/principal.ts';
import { isLive, type Connection } from '../connections/connection.ts';
import type { Invocation, InvokeRequest, Requester } from '../core.ts';
import { isTerminal, type Command, type CommandCaller } from '../delivery/command.ts';
import type { AdmitResult } from '../delivery/commands.ts';
import { satisfied } from '../delivery/waiter.ts';
import { CallboardError, notFound } from '../errors.ts';
import type { PayloadStorage } from '../history/payload-storage.ts';
import type { StoredPayload } from '../history/message.ts';
import { canonicalUser, type CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import { thenDo, orElse, type MaybePromise } from '../maybe-promise.ts';
import { holderOf } from '../shares/holders.ts';
import { isShareRefusal } from '../shares/shares.ts';
import type { Expected } from './correlator.ts';
import { endedInvocation } from './ended.ts';
import { refused, refusedAdmission, refusedShare } from './refusals.ts';
import { checkInvoke, type CheckedInvoke } from './request.ts';
import { waitForReply, type CallerSide, type WaitParts } from './wait.ts';

export type InvokeParts = WaitParts & { readonly keeper: PayloadStorage; readonly isDraining: () => boolean };

/**
 * Admits a command and waits for the stage that the caller requested. Checks run in this order: authentication and
 * scope, ownership of the client, input, policy, target, capacity. A refused invocation leaves no record.
 */
export function invoke(parts: InvokeParts, requester: Requester, request: InvokeRequest): MaybePromise<Invocation> {
  const caller = requireScope(requester, 'invoke');
  const userId = canonicalUser(request.userId);
  if (caller.kind === 'user' && caller.userId !== userId) notFound();
  const checked = checkInvoke(parts.deps.crypto, request);
  return invokeChecked(parts, { caller, userId, checked, wait: request });
}

export type CheckedCall = {
  /** The principal that the policy is evaluated for. */
  readonly caller: Caller;
  /** Who is recorded as the command's caller; by default the principal. */
  readonly recordedAs?: CommandCaller;
  readonly userId: string;
  readonly checked: CheckedInvoke;
  readonly wait: CallerSide;
};

/** As `invoke`, after ownership and input have been checked: policy, target and capacity are left. */
export function invokeChecked(
  parts: InvokeParts,
  { caller, recordedAs = callerOf(caller), userId, checked, wait }: CheckedCall,
): MaybePromise<Invocation> {
  const { deps } = parts;
  const commandId = checked.commandId ?? deps.crypto.randomId();
  const key = { userId, clientId: checked.clientId, commandId };
  return thenDo(preflight(parts, { caller, key, checked }), (refusal) => {
    if (!refusal) return admit(parts, { caller, recordedAs, key, checked, wait });
    deps.metrics.count('commands_refused', refusal.code);
    return { ...refusal, commandId: checked.commandId };
  });
}

type Asked = { readonly caller: Caller; readonly key: CommandKey; readonly checked: CheckedInvoke };
type Refusal = Extract<Invocation, { kind: 'refused' }>;

/**
 * The checks that come before admission. A known command id passes the checks of the target, because its outcome is
 * replayed.
 */
function preflight(parts: InvokeParts, asked: Asked): MaybePromise<Refusal | null> {
  const { deps } = parts;
  const { caller, key, checked } = asked;
  return thenDo(deps.backend.connections.get([key]), ([connection = null]) => {
    const live = isLive(connection, deps.clock.now()) ? connection : null;
    const { action } = checked;
    const verdict = deps.policy.decide(caller, { userId: key.userId, clientType: live?.clientType ?? null, action });
    if (!verdict.allowed)
      return refused('policy_denied', 'policy', `The policy rule "${verdict.rule}" denies this invocation.`);
    const refusal = refuseTarget(parts, checked, live);
    if (!refusal || checked.commandId === null) return refusal;
    return thenDo(deps.backend.commands.get([key]), ([known]) =>
      known ? null : thenDo(deps.backend.commands.mark(key), (mark) => (mark ? null : refusal)),
    );
  });
}

function refuseTarget({ isDraining }: InvokeParts, checked: CheckedInvoke, live: Connection | null): Refusal | null {
  if (isDraining()) return refused('draining', 'relay', 'This node admits no new commands.', { retryAfterMs: 1000 });
  const another = checked.namedInstanceId !== null && checked.namedInstanceId !== live?.instanceId;
  if (!live || another || live.actions.some(({ name }) => name === checked.action)) return null;
  return refused('action_not_advertised', 'target', 'The client does not advertise this action.');
}

type Admission = {
  readonly caller: Caller;
  readonly recordedAs: CommandCaller;
  readonly key: CommandKey;
  readonly checked: CheckedInvoke;
  readonly wait: CallerSide;
};

function admit(parts: InvokeParts, admission: Admission): MaybePromise<Invocation> {
  const { deps, correlator } = parts;
  const { caller, checked } = admission;
  const holdings = deps.shares.of(holderOf(caller));
  const shortage = holdings.refusal('waits', 1);
  if (shortage) {
    deps.metrics.count('commands_refused', shortage);
    return refusedShare(shortage, 'waits', checked.commandId);
  }
  const rpcId = deps.crypto.randomId();
  const expected = correlator.expect(rpcId, holdings);
  return thenDo(keepParams(parts, admission, rpcId), (kept) =>
    'kind' in kept ? kept : admitKept(parts, { ...admission, kept, rpcId, expected }),
  );
}

function admitKept(parts: InvokeParts, admitting: Admitting): MaybePromise<Invocation> {
  const { deps, correlator } = parts;
  const { key, recordedAs, checked, kept, rpcId } = admitting;
  const { id: scopeId, limit: scopeLimit } = deps.policy.scopeOf(key.userId);
  const waiter = { rpcId, callerNodeId: deps.nodeId, waitFor: checked.waitFor, withinMs: null };
  const chosenId = checked.commandId !== null;
  const request = { ...checked, ...key, caller: recordedAs, chosenId, kept, scopeId, scopeLimit, waiter };
  const admitted = orElse(
    () => deps.backend.commands.admit(request),
    (error) => {
      correlator.forget(rpcId);
      if (!(error instanceof CallboardError) || error.code !== 'store_full') throw error;
      return { kind: 'refused', code: error.code, share: null } as const;
    },
  );
  return thenDo(admitted, (result) => answer(parts, admitting, result));
}

type Admitting = Admission & { readonly kept: StoredPayload; readonly rpcId: string; readonly expected: Expected };

function answer(parts: InvokeParts, asked: Admitting, result: AdmitResult): MaybePromise<Invocation> {
  const { deps, correlator } = parts;
  const { key, checked, kept, rpcId, expected, wait } = asked;
  if (result.kind !== 'admitted') parts.keeper.discard(kept);
  if (result.kind === 'refused') {
    correlator.forget(rpcId);
    deps.metrics.count('commands_refused', result.code);
    return refusedAdmission(result, checked.commandId);
  }
  if (result.kind === 'ended') {
    correlator.forget(rpcId);
    return endedInvocation(key, result.mark);
  }
  if (result.kind === 'admitted') deps.metrics.count('commands_admitted');
  parts.acts.hint(key);
  const { command } = result;
  if (satisfied(checked.waitFor, command)) {
    correlator.forget(rpcId);
    return invocation(command, rpcId, result.kind === 'attached' ? result.result : null);
  }
  const { signal, onAdmitted, onStage } = wait;
  const side = { signal, onAdmitted, onStage };
  return waitForReply(parts, { expected, rpcId, command, waitFor: checked.waitFor, withinMs: null, ...side });
}

/** Runs before admission, so that no command is admitted whose params history could not keep. */
function keepParams(
  { keeper, deps, correlator }: InvokeParts,
  { key: { userId }, checked }: Admission,
  rpcId: string,
): MaybePromise<StoredPayload | Refusal> {
  return orElse(
    () => keeper.keep(checked.params, userId),
    (error) => {
      correlator.forget(rpcId);
      if (!(error instanceof CallboardError) || !isShareRefusal(error.code)) throw error;
      deps.log.warn({ err: error }, 'the params of an invocation were not stored');
      deps.metrics.count('commands_refused', error.code);
      const { commandId } = checked;
      const more = { commandId, retryAfterMs: 1000, share: 'spilled_bytes' } as const;
      return refused(error.code, 'capacity', error.message, more);
    },
  );
}

function callerOf(caller: Caller): CommandCaller {
  return { kind: caller.kind, name: caller.kind === 'admin' ? caller.name : caller.userId };
}

export function invocation(command: Command, rpcId: string | null, result: JsonText | null): Invocation {
  return { kind: isTerminal(command) ? 'outcome' : 'pending', command, rpcId, result };
}
