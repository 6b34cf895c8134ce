/** The API of calls: checks an invocation, admits the command, and waits for its stage. */
import { requireScope, type CallingPrincipal, type Requester } from '../auth/principal.ts';
import type { CommandCaller } from '../commands/command.ts';
import type { NodeQuestions } from '../commands/node-questions.ts';
import type { AdmitRequest, AdmitResult, DispatchClaim } from '../commands/command-store.ts';
import { satisfied } from '../commands/waiter.ts';
import { isLive, type Connection } from '../connections/connection.ts';
import type { Deps } from '../deps.ts';
import { CallboardError, fail, isStoreUnavailable } from '../errors.ts';
import type { StoredPayload } from '../history/message.ts';
import type { CommandKey } from '../ids.ts';
import { orElse, promised, thenDo, type MaybePromise } from '../maybe-promise.ts';
import { holderOf } from '../shares/holder.ts';
import { awaitCommand } from './await.ts';
import { withCallSpan } from './call-spans.ts';
import {
  endedInvocation,
  invocation,
  checkInvoke,
  type AwaitRequest,
  type CallSpan,
  type CallerSide,
  type CancelReceipt,
  type Invocation,
  type InvokeRequest,
  type Preflight,
  type CheckedInvoke,
} from './call.ts';
import { cancelCommand } from './cancel.ts';
import { createPending } from './pending.ts';
import { permissions, type ActionPermissions } from './permissions.ts';
import {
  CALL_LAYERS,
  knowsPlaces,
  liveConnection,
  ownUser,
  preflight,
  rateOf,
  refusedAdmission,
  refusedParams,
  refusedStore,
  type InvokeDeps,
  type InvokeRefusal,
  type PreparedCall,
} from './preflight.ts';
import { callerOf } from './recorded-caller.ts';
import { createRepeats } from './repeats.ts';
import { Wait } from './wait.ts';

export function createRpc(parts: InvokeDeps, questions: NodeQuestions) {
  return {
    ...createPending(parts.deps, questions),
    /** Recognises repeated calls by callers that cannot choose command ids, such as agents over MCP. */
    repeats: createRepeats(parts, questions),
    /**
     * Invokes an action. Returns `refused` if the target, the policy or the capacity refuses the invocation. Throws if
     * the requester is not authorized, and for invalid input.
     */
    invoke: (requester: Requester, request: InvokeRequest): Promise<Invocation> =>
      promised(() => invoke(parts, requester, request)),
    /**
     * Reports what each check of `invoke` would answer now. Admits, reserves, writes and counts nothing. Throws
     * `unauthenticated` or `forbidden` if the requester may invoke nothing at all, and `not_found` if it names another
     * user.
     */
    preflight: (requester: Requester, request: InvokeRequest): Promise<Preflight> =>
      preflight(parts, requester, request),
    /**
     * Returns which kinds of callers may invoke these actions on the clients of a user, as far as the policy and the
     * scopes of tokens decide it.
     */
    permissions: (
      requester: Requester,
      query: { readonly userId: string; readonly actions: readonly string[] },
    ): readonly ActionPermissions[] => permissions(parts.deps.policy, requester, query),
    /**
     * Waits for a command of an earlier call, on any node. If `withinMs` is 0, reads the record and registers no
     * waiter. Returns null if there is no such command, or if it belongs to another user.
     */
    await: (requester: Requester, request: AwaitRequest): Promise<Invocation | null> =>
      awaitCommand(parts, requester, request),
    /**
     * Cancels a command. If an administrator cancels the command of another requester, an audit row is written;
     * `requestId` is the request's id in this row. Returns null if there is no such command, or if it belongs to
     * another user.
     */
    cancel: (
      requester: Requester,
      key: CommandKey,
      reason: string | null,
      requestId: string | null = null,
    ): Promise<CancelReceipt | null> => cancelCommand(parts, requester, key, { reason, requestId }),
  };
}

// Invokes an action.

/**
 * Admits a command and waits for the stage that the caller requested. Checks run in this order: authentication and
 * scope, ownership of the client, input, then CALL_LAYERS, then the checks of the store. A refused invocation leaves no
 * record.
 */
function invoke(parts: InvokeDeps, requester: Requester, request: InvokeRequest): MaybePromise<Invocation> {
  const { deps } = parts;
  const run = (span: CallSpan | null): MaybePromise<Invocation> => {
    const caller = requireScope(requester, 'invoke');
    const userId = ownUser(caller, request.userId);
    const checked = checkInvoke(deps.crypto, request, { span });
    const recordedAs = callerOf(caller, request.callerLabel);
    return invokeChecked(parts, { caller, recordedAs, userId, checked, wait: request });
  };
  return deps.tracing === null ? run(null) : withCallSpan(deps, request, run);
}

type CheckedCall = {
  /** The principal that the policy is evaluated for. */
  readonly caller: CallingPrincipal;
  /** The caller that the command's record names. If absent, it is made from `caller`. */
  readonly recordedAs?: CommandCaller;
  readonly userId: string;
  readonly checked: CheckedInvoke;
  readonly wait: CallerSide;
};

/** Invokes an action like `invoke`, for a caller whose ownership and input have been checked. */
export function invokeChecked(
  parts: InvokeDeps,
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
 * The answer if the invocation must be checked once more, with the connection from the store. The first check used the
 * connection that this process last saw, which may be out of date. OUTDATED is returned if that check refused the
 * invocation, or if the store found that the client has another connection now. Nothing was admitted or counted.
 */
type Outdated = { readonly kind: 'outdated' };
const OUTDATED: Outdated = { kind: 'outdated' };

function decided(answer: Invocation | Outdated): Invocation {
  if (answer.kind === 'outdated') throw new CallboardError('internal', 'A connection that was just read is outdated.');
  return answer;
}

/**
 * Runs the checks from index `from` on, then admits the command. Nothing else runs between the last check and the
 * registration of the wait, so two invocations cannot both take the last free wait.
 */
function passLayers(parts: InvokeDeps, admission: Admission, from: number): MaybePromise<Invocation | Outdated> {
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

/** Refuses the invocation, or returns OUTDATED if the check used a connection that may be out of date. */
function refuseLayer(parts: InvokeDeps, admission: Admission, refusal: InvokeRefusal): InvokeRefusal | Outdated {
  return admission.seen ? OUTDATED : refuse(parts, admission, refusal);
}

function refuse({ deps }: InvokeDeps, { checked }: Admission, refusal: InvokeRefusal): InvokeRefusal {
  deps.metrics.count('commands_refused', refusal.code);
  return { ...refusal, commandId: checked.commandId };
}

type Admission = PreparedCall & {
  readonly wait: CallerSide;
  /**
   * The target's connection as this process last saw it, which may be out of date; null if `live` was read from the
   * store.
   */
  readonly seen: Connection | null;
};

function admit(parts: InvokeDeps, admission: Admission): MaybePromise<Invocation | Outdated> {
  const { checked, holdings, recordedAs } = admission;
  const wait = new Wait(parts, {
    waitFor: checked.waitFor,
    withinMs: null,
    holdings,
    recordedAs,
    caller: admission.wait,
  });
  return thenDo(wait.listen(admission.key), () =>
    thenDo(keepParams(parts, admission, wait), (kept) =>
      'kind' in kept ? kept : admitKept(parts, { admission, kept, wait }),
    ),
  );
}

type Admitting = { readonly admission: Admission; readonly kept: StoredPayload; readonly wait: Wait };

function admitKept(parts: InvokeDeps, admitting: Admitting): MaybePromise<Invocation | Outdated> {
  const { wait, admission } = admitting;
  const { backend } = parts.deps;
  requireNotRevoked(parts, admitting);
  // Claiming a place on the link saves a round trip to the store. A store that answers in the same tick has no round
  // trip.
  const claim = backend.capabilities.shared ? parts.dispatcher.claim(admission.key) : null;
  const request = admitRequest(parts.deps, admitting, claim);
  const admitted = orElse(
    () => parts.deps.admissions.note(admission.caller, backend.commands.admit(request)),
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

/** Refuses a caller whose token was revoked after it was authenticated. */
function requireNotRevoked({ deps, keeper }: InvokeDeps, { wait, admission, kept }: Admitting): void {
  if (deps.revoked.find(admission.caller, null) === null) return;
  wait.forget();
  keeper.discard(kept);
  fail('unauthenticated', 'The token was revoked.');
}

/**
 * Builds the request of an admission. Each member is written out, because spreading objects would cost more than the
 * rest of an admission.
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
    contextId: checked.contextId,
    knowsPlaces: knowsPlaces(checked, live),
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
    waiter: { rpcId: wait.rpcId, caller: recordedAs, callerNodeId: nodeId, waitFor: wait.waitFor, withinMs: null },
    rate: rateOf(policy, admission),
    seen,
    // Names only the members that the store needs, because the request may be sent to another process.
    claim: claim && { binding: claim.binding, attempt: claim.attempt },
    owedBy: checked.owedBy,
  };
}

export function answer(
  parts: InvokeDeps,
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
  parts.recorder.hint(key);
  if (!satisfied(checked.waitFor, command)) return wait.begin(command);
  wait.forget();
  return invocation(command, wait.rpcId, result.kind === 'attached' ? result.result : null);
}

/** Stores large params before the admission, so that every admitted command has its params in history. */
function keepParams(parts: InvokeDeps, admission: Admission, wait: Wait): MaybePromise<StoredPayload | InvokeRefusal> {
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

/** Returns the target's live connection as this process last saw it; null if this process has seen none. */
function lastSeenConnection({ deps }: InvokeDeps, key: CommandKey): Connection | null {
  const seen = deps.backend.connections.lastSeen?.(key) ?? null;
  return isLive(seen, deps.clock.now()) ? seen : null;
}
