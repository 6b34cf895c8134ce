import { requireScope, type CallingPrincipal } from '../auth/principal.ts';
import { isLive, type Connection } from '../connections/connection.ts';
import type { Invocation, InvokeRequest, Requester } from '../core.ts';
import type { CommandCaller } from '../delivery/command.ts';
import type { AdmitRequest, AdmitResult } from '../delivery/commands.ts';
import { satisfied } from '../delivery/waiter.ts';
import type { Deps } from '../deps.ts';
import { CallboardError, notFound } from '../errors.ts';
import type { PayloadStorage } from '../history/payload-storage.ts';
import type { StoredPayload } from '../history/message.ts';
import { canonicalUser, type CommandKey } from '../ids.ts';
import { thenDo, orElse, type MaybePromise } from '../maybe-promise.ts';
import { holderOf } from '../shares/holders.ts';
import { isShareRefusal } from '../shares/shares.ts';
import { endedInvocation } from './ended.ts';
import { invocation } from './invocation.ts';
import { refused, refusedAdmission, refusedShare } from './refusals.ts';
import { checkInvoke, type CheckedInvoke } from './request.ts';
import { Wait, type CallerSide, type WaitParts } from './wait.ts';

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
  readonly caller: CallingPrincipal;
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

type PreflightParts = { readonly caller: CallingPrincipal; readonly key: CommandKey; readonly checked: CheckedInvoke };
type Refusal = Extract<Invocation, { kind: 'refused' }>;

/**
 * The checks that come before admission. A known command id passes the checks of the target, because its outcome is
 * replayed.
 */
function preflight(parts: InvokeParts, { caller, key, checked }: PreflightParts): MaybePromise<Refusal | null> {
  const { deps } = parts;
  return thenDo(deps.backend.connections.get([key]), (found) => {
    const connection = found[0] ?? null;
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
  readonly caller: CallingPrincipal;
  readonly recordedAs: CommandCaller;
  readonly key: CommandKey;
  readonly checked: CheckedInvoke;
  readonly wait: CallerSide;
};

function admit(parts: InvokeParts, admission: Admission): MaybePromise<Invocation> {
  const { deps } = parts;
  const { caller, checked } = admission;
  const holdings = deps.shares.of(holderOf(caller));
  const shortage = holdings.refusal('waits', 1);
  if (shortage) {
    deps.metrics.count('commands_refused', shortage);
    return refusedShare(shortage, 'waits', checked.commandId);
  }
  const wait = new Wait(parts, { waitFor: checked.waitFor, withinMs: null, holdings, caller: admission.wait });
  return thenDo(keepParams(parts, admission, wait), (kept) =>
    'kind' in kept ? kept : admitKept(parts, { admission, kept, wait }),
  );
}

type Admitting = { readonly admission: Admission; readonly kept: StoredPayload; readonly wait: Wait };

function admitKept(parts: InvokeParts, admitting: Admitting): MaybePromise<Invocation> {
  const { wait } = admitting;
  const request = admitRequest(parts.deps, admitting);
  const admitted = orElse(
    () => parts.deps.backend.commands.admit(request),
    (error) => {
      wait.forget();
      if (!(error instanceof CallboardError) || error.code !== 'store_full') throw error;
      return { kind: 'refused', code: error.code, share: null } as const;
    },
  );
  return thenDo(admitted, (result) => answer(parts, admitting, result));
}

/** Every member is named, because spreading objects costs more than the rest of an admission. */
function admitRequest({ policy, nodeId }: Deps, { admission, kept, wait }: Admitting): AdmitRequest {
  const { key, recordedAs, checked } = admission;
  const { id: scopeId, limit: scopeLimit } = policy.scopeOf(key.userId);
  return {
    userId: key.userId,
    clientId: key.clientId,
    commandId: key.commandId,
    chosenId: checked.commandId !== null,
    action: checked.action,
    digest: checked.digest,
    scopeId,
    scopeLimit,
    namedInstanceId: checked.namedInstanceId,
    params: checked.params,
    kept,
    caller: recordedAs,
    traceId: checked.traceId,
    parentSpanId: checked.parentSpanId,
    traceFlags: checked.traceFlags,
    traceState: checked.traceState,
    connectWithinMs: checked.connectWithinMs,
    respondWithinMs: checked.respondWithinMs,
    waiter: { rpcId: wait.rpcId, callerNodeId: nodeId, waitFor: wait.waitFor, withinMs: null },
  };
}

function answer(
  parts: InvokeParts,
  { admission, kept, wait }: Admitting,
  result: AdmitResult,
): MaybePromise<Invocation> {
  const { deps } = parts;
  const { key, checked } = admission;
  if (result.kind !== 'admitted') parts.keeper.discard(kept);
  if (result.kind === 'refused') {
    wait.forget();
    deps.metrics.count('commands_refused', result.code);
    return refusedAdmission(result, checked.commandId);
  }
  if (result.kind === 'ended') {
    wait.forget();
    return endedInvocation(key, result.mark);
  }
  if (result.kind === 'admitted') deps.metrics.count('commands_admitted');
  parts.acts.hint(key);
  const { command } = result;
  if (!satisfied(checked.waitFor, command)) return wait.begin(command);
  wait.forget();
  return invocation(command, wait.rpcId, result.kind === 'attached' ? result.result : null);
}

/** Runs before admission, so that no command is admitted whose params history could not keep. */
function keepParams(
  { keeper, deps }: InvokeParts,
  { key: { userId }, checked }: Admission,
  wait: Wait,
): MaybePromise<StoredPayload | Refusal> {
  return orElse(
    () => keeper.keep(checked.params, userId),
    (error) => {
      wait.forget();
      if (!(error instanceof CallboardError) || !isShareRefusal(error.code)) throw error;
      deps.log.warn({ err: error }, 'the params of an invocation were not stored');
      deps.metrics.count('commands_refused', error.code);
      const { commandId } = checked;
      const more = { commandId, retryAfterMs: 1000, share: 'spilled_bytes' } as const;
      return refused(error.code, 'capacity', error.message, more);
    },
  );
}

const CALLERS = new WeakMap<CallingPrincipal, CommandCaller>();

/** One object for each principal, since ended commands keep it. */
function callerOf(caller: CallingPrincipal): CommandCaller {
  const known = CALLERS.get(caller);
  if (known) return known;
  const made: CommandCaller = { kind: caller.kind, name: caller.kind === 'admin' ? caller.name : caller.userId };
  CALLERS.set(caller, made);
  return made;
}
