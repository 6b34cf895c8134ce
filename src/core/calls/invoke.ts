/** Invokes an action: checks the invocation, admits the command, and waits for its stage. */
import { requireScope, type CallingPrincipal, type Requester } from '../auth/principal.ts';
import { satisfied, type CommandCaller } from '../commands/command.ts';
import type { Dispatcher } from '../commands/dispatcher.ts';
import type { AdmitQuestion, AdmitRefusal, AdmitRequest, AdmitResult, DispatchClaim } from '../commands/stores.ts';
import { isLive, type Connection } from '../connections/connection.ts';
import type { Deps } from '../deps.ts';
import { CallboardError, isStoreUnavailable, notFound, type Code } from '../errors.ts';
import type { StoredPayload } from '../history/message.ts';
import type { PayloadStorage } from '../history/payloads.ts';
import { canonicalUser, type CommandKey } from '../ids.ts';
import { orElse, thenDo, type MaybePromise } from '../maybe-promise.ts';
import {
  SHARE_MESSAGE,
  holderOf,
  isShareRefusal,
  type Holdings,
  type RefusedShare,
  type ShareRefusal,
} from '../shares/shares.ts';
import { withCallSpan } from './call-span.ts';
import { endedInvocation, invocation, type Invocation, type InvokeRequest, type RefusedBy } from './call.ts';
import { checkInvoke, type CheckedInvoke } from './request.ts';
import { Wait, type CallerSide, type WaitParts } from './wait.ts';

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

// The checks that an invocation passes before it reaches the store, in order. Both invocations and preflights run them.

export type InvokeParts = WaitParts & {
  readonly keeper: PayloadStorage;
  readonly dispatcher: Pick<Dispatcher, 'claim' | 'settle'>;
  readonly isDraining: () => boolean;
};

/** An invocation whose requester and input were checked, with the state of its target. */
export type PreparedCall = {
  /** The principal that the policy is evaluated for. */
  readonly caller: CallingPrincipal;
  readonly key: CommandKey;
  readonly checked: CheckedInvoke;
  /** The connection of the target; null if it is not connected. */
  readonly live: Connection | null;
  /** The holdings of the caller. */
  readonly holdings: Holdings;
};

/** The layer does not apply to this call, and refuses nothing. */
export type SkippedLayer = { readonly kind: 'skipped'; readonly message: string };
/** The answer of a layer; null if it lets the call pass. A refusal does not contain the command's id yet. */
export type LayerAnswer = InvokeRefusal | SkippedLayer | null;

/** One check. Changes nothing. */
export type CallLayer = {
  readonly layer: 'policy' | 'relay' | 'action' | 'waits';
  readonly check: (parts: InvokeParts, call: PreparedCall) => MaybePromise<LayerAnswer>;
};

export const ID_IS_KNOWN: SkippedLayer = { kind: 'skipped', message: 'Not asked: the command id is known.' };
const NOT_CONNECTED: SkippedLayer = { kind: 'skipped', message: 'Not asked: the client is not connected.' };
const OTHER_INSTANCE: SkippedLayer = {
  kind: 'skipped',
  message: 'Not asked: another instance of the client is connected than the named one.',
};

/** The layers, in the order in which an invocation passes them. */
export const CALL_LAYERS: readonly CallLayer[] = [
  { layer: 'policy', check: checkPolicy },
  { layer: 'relay', check: (parts, call) => unlessKnown(parts, call, checkRelay(parts)) },
  { layer: 'action', check: (parts, call) => unlessKnown(parts, call, checkAction(call)) },
  { layer: 'waits', check: (_, { holdings }) => checkWaits(holdings) },
];

/** Returns the user whose client is called. Throws `not_found` if a user names another user. */
export function ownUser(caller: CallingPrincipal, given: string): string {
  const userId = canonicalUser(given);
  if (caller.kind === 'user' && caller.userId !== userId) notFound();
  return userId;
}

/** Returns the target's live connection as this process last saw it; null if it knows none. */
function lastSeenConnection({ deps }: InvokeParts, key: CommandKey): Connection | null {
  const seen = deps.backend.connections.lastSeen?.(key) ?? null;
  return isLive(seen, deps.clock.now()) ? seen : null;
}

/** Reads the target's connection from the store; null if it is not live. */
export function liveConnection({ deps }: InvokeParts, key: CommandKey): MaybePromise<Connection | null> {
  return thenDo(deps.backend.connections.get([key]), ([connection = null]) =>
    isLive(connection, deps.clock.now()) ? connection : null,
  );
}

function checkPolicy({ deps }: InvokeParts, { caller, key, checked, live }: PreparedCall): InvokeRefusal | null {
  const target = { userId: key.userId, clientType: live?.clientType ?? null, action: checked.action };
  const decision = deps.policy.decide(caller, target);
  if (decision.allowed) return null;
  return refused('policy_denied', 'policy', `The policy rule "${decision.rule}" denies this invocation.`);
}

function checkRelay({ isDraining }: InvokeParts): InvokeRefusal | null {
  return isDraining()
    ? refused('draining', 'relay', 'This node admits no new commands.', { retryAfterMs: 1000 })
    : null;
}

/**
 * Refuses an action that the connected client does not advertise. The actions of a client that is not connected are not
 * known, so the layer does not apply.
 */
function checkAction({ checked, live }: PreparedCall): LayerAnswer {
  if (!live) return NOT_CONNECTED;
  if (checked.namedInstanceId !== null && checked.namedInstanceId !== live.instanceId) return OTHER_INSTANCE;
  if (live.actions.some(({ name }) => name === checked.action)) return null;
  return refused('action_not_advertised', 'target', 'The client does not advertise this action.');
}

/** Drops a refusal if the command id is known, because the outcome of a known command is replayed. */
function unlessKnown(
  { deps }: InvokeParts,
  { key, checked }: PreparedCall,
  answer: LayerAnswer,
): MaybePromise<LayerAnswer> {
  if (answer?.kind !== 'refused' || checked.commandId === null) return answer;
  const { commands } = deps.backend;
  return thenDo(commands.get([key]), ([known]) =>
    known ? ID_IS_KNOWN : thenDo(commands.mark(key), (mark) => (mark ? ID_IS_KNOWN : answer)),
  );
}

function checkWaits(holdings: Holdings): InvokeRefusal | null {
  const shortage = holdings.refusal('waits', 1);
  return shortage && refusedShare(shortage, 'waits');
}

/** Returns the refusal of an invocation whose params history cannot keep. Rethrows every other error. */
export function refusedParams(error: unknown): InvokeRefusal {
  if (!(error instanceof CallboardError) || !isShareRefusal(error.code)) throw error;
  return refused(error.code, 'capacity', error.message, { retryAfterMs: 1000, share: 'spilled_bytes' });
}

/** Returns the part of an admission that decides whether the store refuses it. */
export function admitQuestion({ deps }: InvokeParts, { key, checked }: PreparedCall): AdmitQuestion {
  const { id: scopeId, limit: scopeLimit, memberLimit = null } = deps.policy.scopeOf(key.userId);
  const { commandId, digest, namedInstanceId, params, connectWithinMs, waitFor } = checked;
  return {
    ...key,
    ...{ chosenId: commandId !== null, digest, scopeId, scopeLimit, memberLimit },
    ...{ namedInstanceId, params, connectWithinMs },
    waiter: { waitFor },
  };
}

type RefusedAdmission = Extract<AdmitResult, { kind: 'refused' }>;
/** A refused invocation. */
export type InvokeRefusal = Extract<Invocation, { kind: 'refused' }>;

/** The answer to each refusal of admission, and which layer refused. */
const ADMISSION: Readonly<
  Record<
    Exclude<AdmitRefusal, ShareRefusal>,
    { readonly by: RefusedBy; readonly message: string; readonly retryAfterMs?: number }
  >
> = {
  command_conflict: { by: 'conflict', message: 'This command id was used for another request.' },
  not_connected: { by: 'target', message: 'The client is not connected, and the call allows no time to connect.' },
  instance_mismatch: { by: 'target', message: 'The live instance of the client is not the named one.' },
  capacity_exceeded: {
    by: 'capacity',
    message: 'The admission scope, or the command, is at its limit.',
    retryAfterMs: 1000,
  },
  queue_full: {
    by: 'capacity',
    message: 'The maximum number of commands already wait for this client.',
    retryAfterMs: 1000,
  },
};

export function refused(
  code: Code,
  by: RefusedBy,
  message: string,
  more: Partial<Pick<InvokeRefusal, 'retryAfterMs' | 'commandId' | 'share'>> = {},
): InvokeRefusal {
  return { kind: 'refused', code, by, message, retryAfterMs: null, commandId: null, ...more };
}

/** Refuses because one user holds too much of a bounded resource, or because its total is used up. */
function refusedShare(code: ShareRefusal, share: RefusedShare | null): InvokeRefusal {
  const named = share === null ? {} : { share };
  return refused(code, 'capacity', SHARE_MESSAGE[code], { retryAfterMs: 1000, ...named });
}

/** Returns the answer to a refusal of the store, without the command's id. */
export function refusedAdmission({ code, share = 'marks' }: RefusedAdmission): InvokeRefusal {
  if (isShareRefusal(code)) return refusedShare(code, share);
  const { by, message, retryAfterMs } = ADMISSION[code];
  return refused(code, by, message, { retryAfterMs: retryAfterMs ?? null });
}

/** Returns the refusal for the error of a store that has no room for the act itself. Rethrows every other error. */
export function refusedStore(error: unknown): RefusedAdmission {
  if (!(error instanceof CallboardError) || error.code !== 'store_full') throw error;
  return { kind: 'refused', code: error.code, share: null };
}
