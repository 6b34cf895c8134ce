/** Invokes an action: checks the invocation, admits the command, and waits for its stage. */
import { requireScope, type CallingPrincipal } from '../auth/principal.ts';
import type { Connection } from '../connections/connection.ts';
import type { Invocation, InvokeRequest, Requester } from '../core.ts';
import type { CommandCaller } from '../delivery/command.ts';
import type { AdmitRequest, AdmitResult, DispatchClaim } from '../delivery/commands.ts';
import { satisfied } from '../delivery/waiter.ts';
import type { Deps } from '../deps.ts';
import { CallboardError, isStoreUnavailable } from '../errors.ts';
import type { StoredPayload } from '../history/message.ts';
import { orElse, thenDo, type MaybePromise } from '../maybe-promise.ts';
import { holderOf } from '../shares/holders.ts';
import { withCallSpan } from './call-span.ts';
import { endedInvocation } from './ended.ts';
import { invocation } from './invocation.ts';
import { CALL_LAYERS, lastSeenConnection, liveConnection, ownUser, refusedParams } from './layers.ts';
import type { InvokeParts, PreparedCall } from './layers.ts';
import { refusedAdmission, refusedStore, type InvokeRefusal } from './refusals.ts';
import { checkInvoke, type CheckedInvoke } from './request.ts';
import { Wait, type CallerSide } from './wait.ts';

/**
 * Admits a command and waits for the stage that the caller requested. Checks run in this order: authentication and
 * scope, ownership of the client, input, then CALL_LAYERS, then those of the store. A refused invocation leaves no
 * record.
 */
export function invoke(parts: InvokeParts, requester: Requester, request: InvokeRequest): MaybePromise<Invocation> {
  return withCallSpan(parts.deps, request, (span) => {
    const caller = requireScope(requester, 'invoke');
    const userId = ownUser(caller, request.userId);
    const checked = checkInvoke(parts.deps.crypto, request, { span });
    return invokeChecked(parts, { caller, userId, checked, wait: request });
  });
}

export type CheckedCall = {
  /** The principal that the policy is evaluated for. */
  readonly caller: CallingPrincipal;
  /** The caller that the command's record names; by default the principal. */
  readonly recordedAs?: CommandCaller;
  readonly userId: string;
  readonly checked: CheckedInvoke;
  readonly wait: CallerSide;
};

/** Does the same as `invoke`, after ownership and input have been checked. */
export function invokeChecked(
  parts: InvokeParts,
  { caller, recordedAs = callerOf(caller), userId, checked, wait }: CheckedCall,
): MaybePromise<Invocation> {
  const commandId = checked.commandId ?? parts.deps.crypto.randomId();
  const key = { userId, clientId: checked.clientId, commandId };
  const holdings = parts.deps.shares.of(holderOf(caller));
  const run = (live: Connection | null, seen: Connection | null): MaybePromise<Invocation | Outdated> => {
    const { span, action } = checked;
    span?.target(live, action);
    return passLayers(parts, { caller, recordedAs, key, checked, wait, live, seen, holdings }, 0);
  };
  const read = (): MaybePromise<Invocation> =>
    thenDo(liveConnection(parts, key), (live) => thenDo(run(live, null), decided));
  const seen = lastSeenConnection(parts, key);
  if (!seen) return read();
  return thenDo(run(seen, seen), (answer) => (answer.kind === 'outdated' ? read() : answer));
}

/**
 * The answer if the invocation must be checked again with the connection in the store: the connection that this process
 * last saw may be out of date. It was refused by a check, or the client has another connection now. Nothing was
 * admitted or counted.
 */
type Outdated = { readonly kind: 'outdated' };
const OUTDATED: Outdated = { kind: 'outdated' };

function decided(answer: Invocation | Outdated): Invocation {
  if (answer.kind === 'outdated') throw new CallboardError('internal', 'A connection that was just read is outdated.');
  return answer;
}

/**
 * Runs the layers from index `from` on, then admits. Nothing else runs between the last layer and the registration of
 * the wait, so two invocations cannot both take the last free wait.
 */
function passLayers(parts: InvokeParts, admission: Admission, from: number): MaybePromise<Invocation | Outdated> {
  for (let at = from; at < CALL_LAYERS.length; at++) {
    const answer = CALL_LAYERS[at]?.check(parts, admission);
    if (answer instanceof Promise)
      return answer.then((late) =>
        late?.kind === 'refused' ? refuseLayer(parts, admission, late) : passLayers(parts, admission, at + 1),
      );
    if (answer?.kind === 'refused') return refuseLayer(parts, admission, answer);
  }
  return admit(parts, admission);
}

/** Refuses the invocation. If the check relied on a connection that may be out of date, returns OUTDATED instead. */
function refuseLayer(parts: InvokeParts, admission: Admission, refusal: InvokeRefusal): InvokeRefusal | Outdated {
  return admission.seen ? OUTDATED : refuse(parts, admission, refusal);
}

function refuse({ deps }: InvokeParts, { checked }: Admission, refusal: InvokeRefusal): InvokeRefusal {
  deps.metrics.count('commands_refused', refusal.code);
  return { ...refusal, commandId: checked.commandId };
}

type Admission = PreparedCall & {
  readonly recordedAs: CommandCaller;
  readonly wait: CallerSide;
  /** The target's connection, if it was not read from the store and may be out of date; null otherwise. */
  readonly seen: Connection | null;
};

function admit(parts: InvokeParts, admission: Admission): MaybePromise<Invocation | Outdated> {
  const { checked, holdings } = admission;
  const wait = new Wait(parts, { waitFor: checked.waitFor, withinMs: null, holdings, caller: admission.wait });
  return thenDo(keepParams(parts, admission, wait), (kept) =>
    'kind' in kept ? kept : admitKept(parts, { admission, kept, wait }),
  );
}

type Admitting = { readonly admission: Admission; readonly kept: StoredPayload; readonly wait: Wait };

function admitKept(parts: InvokeParts, admitting: Admitting): MaybePromise<Invocation | Outdated> {
  const { wait, admission } = admitting;
  const { backend } = parts.deps;
  // A store that answers in the same tick gains nothing from a claim.
  const claim = backend.capabilities.shared ? parts.dispatcher.claim(admission.key) : null;
  const request = admitRequest(parts.deps, admitting, claim);
  const admitted = orElse(
    () => backend.commands.admit(request),
    (error) => {
      wait.forget();
      if (claim) parts.dispatcher.settle(claim, isStoreUnavailable(error) ? 'unanswered' : SKIP);
      return refusedStore(error);
    },
  );
  return thenDo(admitted, (result) => {
    const answered = answer(parts, admitting, result);
    if (claim) parts.dispatcher.settle(claim, (result.kind === 'admitted' && result.dispatch) || SKIP);
    return answered;
  });
}

const SKIP = { kind: 'skip' } as const;

/**
 * Builds the request of an admission. Every member is named, because spreading objects costs more than the rest of an
 * admission.
 */
function admitRequest(
  { policy, nodeId }: Deps,
  { admission, kept, wait }: Admitting,
  claim: DispatchClaim | null,
): AdmitRequest {
  const { key, recordedAs, checked, live, seen } = admission;
  const { id: scopeId, limit: scopeLimit, memberLimit = null } = policy.scopeOf(key.userId);
  return {
    userId: key.userId,
    clientId: key.clientId,
    commandId: key.commandId,
    chosenId: checked.commandId !== null,
    action: checked.action,
    digest: checked.digest,
    scopeId,
    scopeLimit,
    memberLimit,
    namedInstanceId: checked.namedInstanceId,
    clientType: live?.clientType ?? null,
    params: checked.params,
    kept,
    caller: recordedAs,
    traceId: checked.traceId,
    parentSpanId: checked.parentSpanId,
    traceFlags: checked.traceFlags,
    traceState: checked.traceState,
    callSpan: checked.span?.callSpan ?? null,
    connectWithinMs: checked.connectWithinMs,
    respondWithinMs: checked.respondWithinMs,
    waiter: { rpcId: wait.rpcId, callerNodeId: nodeId, waitFor: wait.waitFor, withinMs: null },
    seen,
    claim,
  };
}

function answer(
  parts: InvokeParts,
  { admission, kept, wait }: Admitting,
  result: AdmitResult,
): MaybePromise<Invocation | Outdated> {
  const { deps } = parts;
  const { key, checked } = admission;
  if (result.kind !== 'admitted') parts.keeper.discard(kept);
  if (result.kind === 'outdated') {
    wait.forget();
    return OUTDATED;
  }
  if (result.kind === 'refused') {
    wait.forget();
    return refuse(parts, admission, refusedAdmission(result));
  }
  if (result.kind === 'ended') {
    wait.forget();
    return endedInvocation(key, result.mark);
  }
  const { command } = result;
  if (result.kind === 'admitted') {
    deps.metrics.count('commands_admitted');
    deps.events.emit('admitted', command);
  }
  parts.acts.hint(key);
  if (!satisfied(checked.waitFor, command)) return wait.begin(command);
  wait.forget();
  return invocation(command, wait.rpcId, result.kind === 'attached' ? result.result : null);
}

/** Stores large params before the admission, so that no command is admitted whose params history could not keep. */
function keepParams(parts: InvokeParts, admission: Admission, wait: Wait): MaybePromise<StoredPayload | InvokeRefusal> {
  const { key, checked } = admission;
  return orElse(
    () => parts.keeper.keep(checked.params, key.userId),
    (error) => {
      wait.forget();
      const refusal = refuse(parts, admission, refusedParams(error));
      parts.deps.log.warn({ err: error }, 'the params of an invocation were not stored');
      return refusal;
    },
  );
}

const CALLERS = new WeakMap<CallingPrincipal, CommandCaller>();

/**
 * Returns the caller for a command's record. It is always the same object for one principal, because ended commands
 * keep it in memory.
 */
function callerOf(caller: CallingPrincipal): CommandCaller {
  const known = CALLERS.get(caller);
  if (known) return known;
  const made: CommandCaller = { kind: caller.kind, name: caller.kind === 'admin' ? caller.name : caller.userId };
  CALLERS.set(caller, made);
  return made;
}
