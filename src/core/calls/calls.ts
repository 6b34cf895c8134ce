/**
 * The API of calls: checks an invocation, admits the command, and waits for its stage; awaits and cancels commands; and
 * records the spans of these requests.
 */
import type { RecordedAct } from '../audit/audit.ts';
import { callerLabel, type CallerLabel } from '../auth/caller-label.ts';
import { requireScope, subjectOf, type CallingPrincipal, type Principal, type Requester } from '../auth/principal.ts';
import { BoundedMap } from '../collections.ts';
import { isCallOf, isTerminal, satisfied, type CommandCaller } from '../commands/command.ts';
import type { NodeQuestions } from '../commands/node-questions.ts';
import { seenKey } from '../commands/lookup.ts';
import { checkReason } from '../commands/operator-actions.ts';
import {
  OTHER_METHOD,
  SPAN_ATTRIBUTE,
  SPAN_NAME,
  hasKnownAction,
  methodAttributes,
  outcomeEnd,
  recordAttributes,
  subjectAttributes,
} from '../commands/span-attributes.ts';
import { callSpanOf } from '../commands/dispatch-spans.ts';
import type { AdmitRequest, AdmitResult, DispatchClaim } from '../commands/stores.ts';
import { isLive, type Connection } from '../connections/connection.ts';
import type { Deps } from '../deps.ts';
import { CallboardError, fail, isStoreUnavailable } from '../errors.ts';
import type { StoredPayload } from '../history/message.ts';
import { within, type CommandKey } from '../ids.ts';
import { AWAIT_WITHIN_MS } from '../limits.ts';
import { orElse, promised, thenDo, type MaybePromise } from '../maybe-promise.ts';
import type { Span, SpanAttributes, SpanEnd, Tracing } from '../ports.ts';
import { holderOf } from '../shares/holder.ts';
import { SHARE_MESSAGE } from '../shares/share-bounds.ts';
import { DECLINED, traceContextIn, traceparentOf, type TraceContext, type TraceFields } from '../trace-context.ts';
import {
  endOf,
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
  type TracedRequest,
  type CheckedInvoke,
} from './call.ts';
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
  type InvokeParts,
  type InvokeRefusal,
  type PreparedCall,
} from './preflight.ts';
import { createRepeats } from './repeats.ts';
import { Wait, type WaitParts } from './wait.ts';

export type Rpc = ReturnType<typeof createRpc>;

export function createRpc(parts: InvokeParts, questions: NodeQuestions) {
  return {
    ...createPending(parts.deps, questions),
    /** Recognises repeated calls of callers that choose no command ids. */
    repeats: createRepeats(parts, questions),
    /**
     * Invokes an action. Returns `refused` if the target, the policy or the capacity refuses the invocation. Throws if
     * the requester is not authorized, and for invalid input.
     */
    invoke: (requester: Requester, request: InvokeRequest): Promise<Invocation> =>
      promised(() => invoke(parts, requester, request)),
    /**
     * Reports what each check of `invoke` would answer now. Admits, reserves, writes and counts nothing. Throws if the
     * requester may not invoke at all (`unauthenticated`, `forbidden`) or names another user (`not_found`).
     */
    preflight: (requester: Requester, request: InvokeRequest): Promise<Preflight> =>
      preflight(parts, requester, request),
    /** Returns who may invoke these actions on the clients of a user, as far as the policy and scopes decide it. */
    permissions: (
      requester: Requester,
      query: { readonly userId: string; readonly actions: readonly string[] },
    ): readonly ActionPermissions[] => permissions(parts.deps.policy, requester, query),
    /**
     * Waits again for a command by its ids, from any node. `withinMs` 0 reads the record and registers no waiter. Null
     * if there is no such command, or if it belongs to another user.
     */
    await: (requester: Requester, request: AwaitRequest): Promise<Invocation | null> =>
      awaitCommand(parts, requester, request),
    /**
     * Cancels a command. `requestId`: the id of the request, for the audit row that is written if an administrator
     * cancels a command of another requester. Null if there is no such command, or if it belongs to another user.
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
function invoke(parts: InvokeParts, requester: Requester, request: InvokeRequest): MaybePromise<Invocation> {
  return withCallSpan(parts.deps, request, (span) => {
    const caller = requireScope(requester, 'invoke');
    const userId = ownUser(caller, request.userId);
    const checked = checkInvoke(parts.deps.crypto, request, { span });
    const recordedAs = callerOf(caller, request.callerLabel);
    return invokeChecked(parts, { caller, recordedAs, userId, checked, wait: request });
  });
}

type CheckedCall = {
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
 * The answer if the invocation must be checked again with the connection in the store, because the connection that this
 * process last saw may be out of date: a check refused the invocation, or the client has another connection now.
 * Nothing was admitted or counted.
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

function admitKept(parts: InvokeParts, admitting: Admitting): MaybePromise<Invocation | Outdated> {
  const { wait, admission } = admitting;
  const { backend } = parts.deps;
  requireNotRevoked(parts, admitting);
  // A store that answers in the same tick gains nothing from a claim.
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
function requireNotRevoked({ deps, keeper }: InvokeParts, { wait, admission, kept }: Admitting): void {
  if (deps.revoked.find(admission.caller, null) === null) return;
  wait.forget();
  keeper.discard(kept);
  fail('unauthenticated', 'The token was revoked.');
}

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
    // Only what the store needs: another process may decide.
    claim: claim && { binding: claim.binding, attempt: claim.attempt },
    owedBy: checked.owedBy,
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

/** Stores large params before the admission, so that every admitted command has its params in history. */
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

/** The callers with labels that were made last. */
const LABELLED = new BoundedMap<string, CommandCaller>({ most: 1_000 });

/**
 * Returns the caller for the records of a command and of its waits. It is always the same object for one principal and
 * label, because ended commands keep it in memory.
 */
function callerOf(caller: CallingPrincipal, given?: CallerLabel): CommandCaller {
  if (given) return labelled(callerOf(caller), callerLabel(given));
  const known = CALLERS.get(caller);
  if (known) return known;
  const made: CommandCaller = { kind: caller.kind, name: caller.kind === 'admin' ? caller.name : caller.userId };
  CALLERS.set(caller, made);
  return made;
}

function labelled(caller: CommandCaller, label: CallerLabel): CommandCaller {
  const made = { ...caller, label };
  const key = JSON.stringify(made);
  const known = LABELLED.get(key);
  if (known) return known;
  LABELLED.set(key, made);
  return made;
}

/** Returns the target's live connection as this process last saw it; null if it knows none. */
function lastSeenConnection({ deps }: InvokeParts, key: CommandKey): Connection | null {
  const seen = deps.backend.connections.lastSeen?.(key) ?? null;
  return isLive(seen, deps.clock.now()) ? seen : null;
}

// Lets callers await and cancel a command that was admitted.

async function awaitCommand(parts: WaitParts, requester: Requester, request: AwaitRequest): Promise<Invocation | null> {
  const { deps } = parts;
  const key = await seenKey(deps, requester, request);
  const withinMs = within('within_ms', request.withinMs, AWAIT_WITHIN_MS);
  if (!key) return null;
  if (withinMs === 0) return readCommand(parts, key);
  const asked = { ...request, ...key, action: null };
  return withCallSpan<Invocation | null>(deps, asked, () => waitAgain(parts, requester, request, { key, withinMs }));
}

async function waitAgain(
  parts: WaitParts,
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

type CancelRequest = { readonly reason: string | null; readonly requestId: string | null };

async function cancelCommand(
  parts: WaitParts,
  requester: Requester,
  given: CommandKey,
  { reason, requestId }: CancelRequest,
): Promise<CancelReceipt | null> {
  const key = await seenKey(parts.deps, requester, given);
  if (!key || !requester) return null;
  checkReason(reason);
  const act = await recordCancel(parts, requester, key, { reason, requestId });
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
  requester: Principal,
  key: CommandKey,
  request: CancelRequest,
): Promise<RecordedAct | null> {
  if (requester.kind !== 'admin') return null;
  const [command] = await deps.backend.commands.get([key]);
  if (!command || isTerminal(command) || isCallOf(command, requester)) return null;
  return deps.audit.record(requester, { action: 'cancel', subject: key, ...request });
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

// The spans of requests that wait for a command: of an invocation, and of an await.

type SpanParts = Pick<Deps, 'tracing' | 'nodeId'>;
/**
 * The part of a request that the request's span names. `action` is null if the request awaits a command of an earlier
 * call.
 */
type Asked = TracedRequest & {
  readonly userId?: string;
  readonly clientId?: string;
  readonly commandId?: string | null | undefined;
  readonly action: string | null;
};

/** The span of every call that a sampler declined. */
const DECLINED_CALL: CallSpan = { callSpan: DECLINED, traceId: null, target() {} };

/** The recorded span of one request. */
class RecordedCall implements CallSpan {
  readonly callSpan: string | null;
  readonly traceId: string | null;
  /** Whether the client was seen to advertise the action. */
  #isAdvertised = false;
  readonly #tracing: Tracing;
  readonly #nodeId: string;
  readonly #asked: Asked;
  readonly #span: Span;

  constructor(span: Span, { tracing, nodeId }: SpanParts & { readonly tracing: Tracing }, asked: Asked) {
    this.#tracing = tracing;
    this.#nodeId = nodeId;
    this.#asked = asked;
    this.#span = span;
    const { context } = span;
    this.callSpan = context && traceparentOf(context);
    this.traceId = context && context.traceId;
    if (context) asked.onSpan?.(context);
  }

  target(live: Connection | null, action: string): void {
    this.#isAdvertised = live !== null && live.actions.some(({ name }) => name === action);
  }

  answered(invocation: Invocation | null): void {
    if (invocation === null) return this.#end(refusalEnd('not_found'));
    if (invocation.kind === 'refused') return this.#end(refusalEnd(invocation.code, invocation.by), invocation);
    const { commandId, outcome, error } = endOf(invocation);
    this.#end(outcomeEnd(outcome, error?.code ?? null), { commandId, ...invocation });
  }

  thrown(error: unknown): void {
    this.#end(refusalEnd(error instanceof CallboardError ? error.code : 'internal'));
  }

  #end({ failed, attributes }: SpanEnd, answer: Answer = {}): void {
    const { action, userId, clientId } = this.#asked;
    const commandId = answer.commandId ?? this.#asked.commandId ?? undefined;
    const { command } = answer;
    // If this request did not admit the command, its span links to the span of the call that did.
    const first = command && command.callSpan !== this.callSpan ? callSpanOf(command) : null;
    if (first) this.#span.link(first);
    const isKnown = this.#isAdvertised || (command !== undefined && hasKnownAction(command));
    const about = subjectAttributes(this.#tracing, this.#nodeId, { userId, clientId, commandId });
    if (action !== null) Object.assign(about, methodAttributes(action, isKnown));
    if (command) Object.assign(about, recordAttributes(command));
    Object.assign(about, callerTraceOf(this.#asked), attributes);
    this.#span.end({ failed, attributes: about, ...(action !== null && !isKnown && { name: OTHER_METHOD }) });
  }
}

type Answer = {
  readonly commandId?: string | null;
  readonly command?: Extract<Invocation, { command: object }>['command'];
};

/** Runs a request within a span, which ends with its answer. Without tracing it only runs. */
export function withCallSpan<T extends Invocation | null>(
  { tracing, nodeId }: SpanParts,
  asked: Asked,
  run: (span: CallSpan | null) => MaybePromise<T>,
): MaybePromise<T> {
  if (tracing === null) return run(null);
  const started = tracing.start('server', asked.action ?? SPAN_NAME.await, parentOf(asked));
  if (!started.recorded) return run(started.declined ? DECLINED_CALL : null);
  const span = new RecordedCall(started, { tracing, nodeId }, asked);
  const answered = (invocation: T): T => {
    span.answered(invocation);
    return invocation;
  };
  const thrown = (error: unknown): never => {
    span.thrown(error);
    throw error;
  };
  try {
    const answer = run(span);
    return answer instanceof Promise ? answer.then(answered, thrown) : answered(answer);
  } catch (error) {
    return thrown(error);
  }
}

function refusalEnd(code: string, by: string | null = null): SpanEnd {
  const attributes: SpanAttributes = { [SPAN_ATTRIBUTE.status]: code, [SPAN_ATTRIBUTE.errorType]: code };
  if (by !== null) attributes[SPAN_ATTRIBUTE.refusedBy] = by;
  return { failed: true, attributes };
}

/**
 * Returns the trace context that the request's span belongs to: the ids that the request names, or else those of its
 * headers. If the ids are not those of W3C Trace Context, a new trace begins.
 */
function parentOf(asked: Asked): TraceContext | null {
  const named = fieldsOf(asked);
  return named.traceId === null && named.parentSpanId === null ? (asked.trace ?? null) : traceContextIn(named);
}

function fieldsOf({ traceId = null, parentSpanId = null, traceFlags = null, traceState = null }: Asked): TraceFields {
  return { traceId, parentSpanId, traceFlags, traceState };
}

function callerTraceOf(asked: Asked): SpanAttributes {
  const { traceId } = fieldsOf(asked);
  return traceId === null || parentOf(asked) ? {} : { [SPAN_ATTRIBUTE.callerTraceId]: traceId };
}
