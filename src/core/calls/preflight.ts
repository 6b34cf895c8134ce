/**
 * The checks that an invocation passes before it reaches the store, and the preflight, which runs the same checks to
 * predict whether an invocation would be admitted.
 */
import type { CallerLabel } from '../auth/caller-label.ts';
import { callerOf } from './recorded-caller.ts';
import { isOwnScope, tokenAllows, type Policy } from '../auth/policy.ts';
import { seenActions } from '../auth/sight.ts';
import { requireScope, subjectOf, type CallingPrincipal, type Requester } from '../auth/principal.ts';
import type { Command, CommandCaller } from '../commands/command.ts';
import type { Dispatcher } from '../commands/dispatcher.ts';
import type { AdmitPreview, AdmitQuestion, AdmitRefusal, AdmitResult } from '../commands/command-store.ts';
import { isLive, type Connection } from '../connections/connection.ts';
import { seenConnection } from '../connections/seen-clients.ts';
import { CallboardError, notFound, type Code } from '../errors.ts';
import type { PayloadStorage } from '../history/payload-storage.ts';
import { canonicalUser, type CommandKey } from '../ids.ts';
import { toJson } from '../json.ts';
import { QUEUE_PER_CLIENT } from '../limits.ts';
import { thenDo, type MaybePromise } from '../maybe-promise.ts';
import { pauseMessage, type Pause } from '../pauses/pause.ts';
import type { CallerRate } from '../rates.ts';
import { holderOf } from '../shares/holder.ts';
import {
  SHARE_MESSAGE,
  isShareRefusal,
  RECORDED_SHARE,
  type RefusedShare,
  type ShareRefusal,
} from '../shares/share-bounds.ts';
import type { Holdings } from '../shares/shares.ts';
import {
  PREFLIGHT_LAYERS,
  type Invocation,
  type InvokeRequest,
  type Preflight,
  type PreflightLayer,
  type PreflightLayerName,
  type RefusedBy,
  checkInvoke,
  type CheckedInvoke,
} from './call.ts';
import type { WaitDeps } from './wait.ts';

export type InvokeDeps = WaitDeps & {
  readonly keeper: PayloadStorage;
  readonly dispatcher: Pick<Dispatcher, 'claim' | 'settle'>;
  readonly isDraining: () => boolean;
};

/** An invocation whose requester and input were checked, with the state of its target client. */
export type PreparedCall = {
  /** The principal that the policy is evaluated for. */
  readonly caller: CallingPrincipal;
  /** The caller that the records of the call name. */
  readonly recordedAs: CommandCaller;
  readonly key: CommandKey;
  readonly checked: CheckedInvoke;
  /** The connection of the target client; null if the client is not connected. */
  readonly live: Connection | null;
  /** The amounts of bounded resources that the caller holds. */
  readonly holdings: Holdings;
};

/** The check does not apply to this call, so it refuses nothing. */
type SkippedLayer = { readonly kind: 'skipped'; readonly message: string };
/**
 * The answer of a check; null if the call passes. A refusal does not contain the command's id; the invocation adds it.
 */
type LayerAnswer = InvokeRefusal | SkippedLayer | null;

/** One check of an invocation. It changes no state. */
type CallLayer = {
  readonly layer: 'policy' | 'relay' | 'action' | 'waits';
  readonly check: (parts: InvokeDeps, call: PreparedCall) => MaybePromise<LayerAnswer>;
};

const ID_IS_KNOWN: SkippedLayer = { kind: 'skipped', message: 'Not asked: the command id is known.' };
const NO_RATE: SkippedLayer = { kind: 'skipped', message: 'Not asked: no rate rule of the policy matches.' };
const NO_CONTEXT: SkippedLayer = { kind: 'skipped', message: 'Not asked: the call names no context.' };
const NOT_CONNECTED: SkippedLayer = { kind: 'skipped', message: 'Not asked: the client is not connected.' };
const OTHER_INSTANCE: SkippedLayer = {
  kind: 'skipped',
  message: 'Not asked: another instance of the client is connected than the named one.',
};

/** The checks, in the order in which an invocation passes them. */
export const CALL_LAYERS: readonly CallLayer[] = [
  { layer: 'policy', check: checkPolicy },
  { layer: 'relay', check: (parts, call) => unlessKnown(parts, call, checkRelay(parts)) },
  { layer: 'action', check: (parts, call) => unlessKnown(parts, call, checkAction(call)) },
  { layer: 'waits', check: (_, { holdings }) => checkWaits(holdings) },
];

/** Returns the canonical id of the user whose client is called. Throws `not_found` if a user names another user. */
export function ownUser(caller: CallingPrincipal, given: string): string {
  const userId = canonicalUser(given);
  if (caller.kind === 'user' && caller.userId !== userId) notFound();
  return userId;
}

/** Reads the target's connection from the store. Null if the client is not connected. */
export function liveConnection({ deps }: InvokeDeps, key: CommandKey): MaybePromise<Connection | null> {
  return thenDo(deps.backend.connections.get([key]), ([connection = null]) =>
    isLive(connection, deps.clock.now()) ? connection : null,
  );
}

function checkPolicy({ deps }: InvokeDeps, { caller, key, checked, live }: PreparedCall): InvokeRefusal | null {
  if (!tokenAllows(caller, checked.action))
    return refused('policy_denied', 'policy', 'The token does not allow this action.');
  const target = { userId: key.userId, clientType: live?.clientType ?? null, action: checked.action };
  const decision = deps.policy.decide(caller, target);
  if (decision.allowed) return null;
  return refused('policy_denied', 'policy', `The policy rule "${decision.rule}" denies this invocation.`);
}

function checkRelay({ isDraining }: InvokeDeps): InvokeRefusal | null {
  return isDraining()
    ? refused('draining', 'relay', 'This node admits no new commands.', { retryAfterMs: 1000 })
    : null;
}

/**
 * Refuses an action that the connected client does not advertise. If the client is not connected, its actions are not
 * known, so the check is skipped.
 */
function checkAction({ checked, live }: PreparedCall): LayerAnswer {
  if (!live) return NOT_CONNECTED;
  if (checked.namedInstanceId !== null && checked.namedInstanceId !== live.instanceId) return OTHER_INSTANCE;
  if (live.actions.some(({ name }) => name === checked.action)) return null;
  return refused('action_not_advertised', 'target', 'The client does not advertise this action.');
}

/**
 * Skips the check instead of refusing if a command with this id exists, because the caller then gets the outcome of
 * that command.
 */
function unlessKnown(
  { deps }: InvokeDeps,
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

/**
 * Returns the refusal of an invocation whose params could not be stored for lack of room. Throws every other error
 * again.
 */
export function refusedParams(error: unknown): InvokeRefusal {
  if (!(error instanceof CallboardError) || !isShareRefusal(error.code)) throw error;
  return refused(error.code, 'capacity', error.message, { retryAfterMs: 1000, share: 'spilled_bytes' });
}

/** Returns the rate bucket in which the call is counted; null if no rate rule applies. */
export function rateOf(policy: Policy, { caller, key, checked, live }: PreparedCall): CallerRate | null {
  if (!policy.rateOf) return null;
  const target = { userId: key.userId, clientType: live?.clientType ?? null, action: checked.action };
  const rate = policy.rateOf(caller, target);
  return rate && { ...rate, caller: holderOf(caller) };
}

/** Returns the part of an admission by which the store decides whether to refuse it. */
function admitQuestion({ deps }: InvokeDeps, call: PreparedCall): AdmitQuestion {
  const { key, checked, live, recordedAs } = call;
  const { id: scopeId, limit: scopeLimit, memberLimit = null } = deps.policy.scopeOf(key.userId);
  const { commandId, digest, namedInstanceId, contextId, params, connectWithinMs, waitFor } = checked;
  return {
    ...key,
    chosenId: commandId !== null,
    digest,
    scopeId,
    scopeLimit,
    memberLimit,
    namedInstanceId,
    contextId,
    knowsPlaces: knowsPlaces(checked, live),
    params,
    connectWithinMs,
    waiter: { waitFor },
    ...{ action: checked.action, caller: recordedAs },
    rate: rateOf(deps.policy, call),
  };
}

/**
 * Whether the client supports commands that name a context. Null if the call names no context, or if the client is not
 * connected.
 */
export function knowsPlaces({ contextId }: CheckedInvoke, live: Connection | null): boolean | null {
  return contextId === null || live === null ? null : live.places === true;
}

type RefusedAdmission = Extract<AdmitResult, { kind: 'refused' }>;
/** A refused invocation. */
export type InvokeRefusal = Extract<Invocation, { kind: 'refused' }>;

/** For each refusal by the store: which check refused, and the message for the caller. */
const ADMISSION: Readonly<
  Record<
    Exclude<AdmitRefusal, ShareRefusal | 'paused'>,
    { readonly by: RefusedBy; readonly message: string; readonly retryAfterMs?: number }
  >
> = {
  command_conflict: { by: 'conflict', message: 'This command id was used for another request.' },
  not_connected: { by: 'target', message: 'The client is not connected, and the call allows no time to connect.' },
  instance_mismatch: { by: 'target', message: 'The live instance of the client is not the named one.' },
  context_gone: { by: 'place', message: 'The client does not report this context, or it had left before.' },
  context_unsupported: { by: 'place', message: 'The client cannot run a command in a named context.' },
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
  rate_limited: { by: 'capacity', message: 'A rate rule of the policy allows the caller no further call now.' },
};

export function refused(
  code: Code,
  by: RefusedBy,
  message: string,
  more: Partial<Pick<InvokeRefusal, 'retryAfterMs' | 'commandId' | 'share' | 'pause'>> = {},
): InvokeRefusal {
  return { kind: 'refused', code, by, message, retryAfterMs: null, commandId: null, ...more };
}

/**
 * Returns the refusal for a bounded resource without room: the caller holds too much of it, or it is used up for all.
 */
function refusedShare(code: ShareRefusal, share: RefusedShare | null): InvokeRefusal {
  const named = share === null ? {} : { share };
  return refused(code, 'capacity', SHARE_MESSAGE[code], { retryAfterMs: 1000, ...named });
}

/** Returns the refusal for the caller, without the command's id, from a refusal by the store. */
export function refusedAdmission({ code, share = 'marks', retryAfterMs, pause }: RefusedAdmission): InvokeRefusal {
  if (isShareRefusal(code)) return refusedShare(code, share);
  if (code === 'paused') return refused(code, 'pause', pauseMessage(pause), pause && { pause });
  const { by, message, retryAfterMs: usual = null } = ADMISSION[code];
  return refused(code, by, message, { retryAfterMs: retryAfterMs ?? usual });
}

/** Returns the refusal if the store has no room to record the admission. Throws every other error again. */
export function refusedStore(error: unknown): RefusedAdmission {
  if (!(error instanceof CallboardError) || !isShareRefusal(error.code)) throw error;
  const share = error.details.share === RECORDED_SHARE ? RECORDED_SHARE : null;
  return { kind: 'refused', code: error.code, share };
}

// The preflight: predicts whether an invocation would be admitted. Writes nothing.

/**
 * Runs every check of an invocation without admitting, reserving, writing or counting anything. Throws what an
 * invocation would throw: `unauthenticated` or `forbidden` if the requester may invoke nothing at all, `not_found` if
 * it names another user, and `store_unavailable`.
 */
export async function preflight(parts: InvokeDeps, requester: Requester, request: InvokeRequest): Promise<Preflight> {
  const findings = new Findings(parts.deps.clock.now());
  const caller = requireScope(requester, 'invoke');
  findings.pass('identity', 'The token is valid.', { subject: subjectOf(caller) });
  findings.pass('scope', 'The requester may invoke actions.');
  const userId = attempt(findings, 'address', () => ownUser(caller, request.userId));
  if (userId === null) return findings.result(null);
  findings.pass('address', 'The requester may call the clients of this user.');
  const checked = attempt(findings, 'input', () => checkInvoke(parts.deps.crypto, request));
  if (checked === null) return findings.result(null);
  findings.pass('input', 'The input is valid.');
  const call = await callOf(parts, { caller, userId, checked, label: request.callerLabel });
  return findings.result(await askAll(parts, findings, call));
}

/**
 * The error codes for wrong input, which a preflight reports as a refusal. Other errors are thrown, because a missing
 * object and an object of another user must look the same.
 */
const INPUT_CODES: ReadonlySet<Code> = new Set([
  'invalid_user',
  'invalid_argument',
  'reserved_parameter',
  'payload_too_large',
]);

function attempt<T>(findings: Findings, layer: 'address' | 'input', check: () => T): T | null {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof CallboardError) || !INPUT_CODES.has(error.code)) throw error;
    const { errors } = error.details;
    findings.refuse(layer, error, errors ? { errors } : null);
    return null;
  }
}

type CheckedPreflight = {
  readonly caller: CallingPrincipal;
  readonly userId: string;
  readonly checked: CheckedInvoke;
  readonly label: CallerLabel | undefined;
};

async function callOf(parts: InvokeDeps, { caller, userId, checked, label }: CheckedPreflight): Promise<PreparedCall> {
  const { crypto, shares } = parts.deps;
  const key = { userId, clientId: checked.clientId, commandId: checked.commandId ?? crypto.randomId() };
  const recordedAs = callerOf(caller, label);
  return {
    caller,
    recordedAs,
    key,
    checked,
    live: await liveConnection(parts, key),
    holdings: shares.of(holderOf(caller)),
  };
}

async function askAll(parts: InvokeDeps, findings: Findings, call: PreparedCall): Promise<Command | null> {
  for (const { layer, check } of CALL_LAYERS) {
    findings.note(layer, await check(parts, call), CALL_PASSES[layer], CALL_EVIDENCE[layer](call));
    // The following checks would reveal whether the client has an action that the requester's token does not name.
    if (!tokenAllows(call.caller, call.checked.action)) return null;
  }
  await askStorage(parts, findings, call);
  return askStore(parts, findings, call);
}

const CALL_PASSES: Readonly<Record<CallLayer['layer'], string>> = {
  policy: 'The central policy allows the invocation.',
  relay: 'This node admits commands.',
  action: 'The client advertises the action.',
  waits: 'The caller may wait for another command.',
};

const CALL_EVIDENCE: Readonly<Record<CallLayer['layer'], (call: PreparedCall) => LayerEvidence | null>> = {
  policy: ({ live, caller, checked }) =>
    tokenAllows(caller, checked.action) ? { clientType: live?.clientType ?? null } : null,
  relay: () => null,
  action: ({ live, caller }) =>
    live && {
      instanceId: live.instanceId,
      advertised: seenConnection(seenActions(caller), live)?.actions.length ?? 0,
    },
  waits: ({ holdings }) => ({ waits: holdings.held('waits') }),
};

/**
 * Predicts whether the params can be stored. Small params are stored in their history row, so only large ones need room
 * in the spill store.
 */
async function askStorage({ keeper }: InvokeDeps, findings: Findings, { key, checked }: PreparedCall): Promise<void> {
  const error = await Promise.resolve(keeper.preview(checked.params, key.userId)).catch((thrown: unknown) => thrown);
  if (error === null) findings.pass('storage', 'The params can be stored.');
  else if (error === 'unknown') findings.unknown('storage', 'Whether the params fit shows only when they are written.');
  else findings.refuse('storage', refusedParams(error));
}

/** The checks that the store makes in one act, in this order. */
const STORE_LAYERS = ['conflict', 'pause', 'target', 'place', 'capacity', 'rate'] as const;
type StoreLayer = (typeof STORE_LAYERS)[number];

async function askStore(parts: InvokeDeps, findings: Findings, call: PreparedCall): Promise<Command | null> {
  const question = admitQuestion(parts, call);
  const preview = await Promise.resolve(parts.deps.backend.commands.preview(question)).catch(refusedStore);
  // A store without room refuses every admission, so there is no further state to show.
  if ('kind' in preview) return (findings.refuse('capacity', refusedAdmission(preview)), null);
  const { answer } = preview;
  const refusal = answer.kind === 'refused' ? refusedAdmission(answer) : null;
  const refusing = refusal?.code === 'rate_limited' ? 'rate' : refusal?.by;
  for (const layer of STORE_LAYERS) {
    const found = layer === refusing ? refusal : skippedByStore(layer, question, preview);
    findings.note(layer, found, STORE_PASSES[layer], STORE_EVIDENCE[layer](question, preview, call.caller));
    if (found?.kind === 'refused') return null;
  }
  return answer.kind === 'attached' ? answer.command : null;
}

/**
 * Returns why the store skips a check; null if it makes the check. If a command with the same id exists, the store
 * makes only a few checks.
 */
function skippedByStore(layer: StoreLayer, question: AdmitQuestion, { known }: AdmitPreview): SkippedLayer | null {
  if (layer === 'rate' && !question.rate) return NO_RATE;
  if (layer === 'conflict' || layer === 'capacity') return null;
  if (known) return ID_IS_KNOWN;
  return layer === 'place' && (question.contextId ?? null) === null ? NO_CONTEXT : null;
}

const STORE_PASSES: Readonly<Record<StoreLayer, string>> = {
  conflict: 'No other request has this command id.',
  pause: 'No pause covers the call.',
  target: 'The client is connected, or the call allows time to connect.',
  place: 'The client reports the context.',
  capacity: 'There is room for the command, or for another wait on a known one.',
  rate: 'The rate rule allows the caller another call now.',
};

const STORE_EVIDENCE: Readonly<
  Record<StoreLayer, (question: AdmitQuestion, preview: AdmitPreview, caller: CallingPrincipal) => LayerEvidence>
> = {
  conflict: (_, { known }) => ({ known }),
  pause(_, { answer }) {
    const pause = answer.kind === 'refused' ? answer.pause : undefined;
    return pause ? pauseEvidence(pause) : {};
  },
  target: ({ namedInstanceId, connectWithinMs }, { boundInstanceId }) => ({
    connected: boundInstanceId !== null,
    instanceId: boundInstanceId,
    namedInstanceId,
    connectWithinMs,
  }),
  place: ({ contextId }) => ({ contextId }),
  // Members of a scope must not learn how many commands its other members have.
  capacity: ({ scopeId, scopeLimit, userId }, { reserved, queued }, { kind }) => ({
    scopeId,
    ...(kind === 'admin' || isOwnScope(scopeId, userId)
      ? { reserved }
      : { scope: reserved < scopeLimit ? 'room' : 'full' }),
    limit: scopeLimit,
    queued,
    of: QUEUE_PER_CLIENT,
  }),
  rate: ({ rate }) => (rate ? { rule: rate.rule, burst: rate.burst, perSecond: rate.perSecond } : {}),
};

function pauseEvidence({ pauseId, by, reason, until }: Pause): LayerEvidence {
  return { pauseId, by, reason, until: until === null ? null : new Date(until).toISOString() };
}

// Collects the results of a preflight's checks.

type LayerEvidence = Readonly<Record<string, unknown>>;
type Finding = Pick<PreflightLayer, 'verdict' | 'code' | 'message'> & { readonly evidence: LayerEvidence | null };

/** The checks that the client makes after it has received the command. */
const CLIENT_LAYERS: Partial<Record<PreflightLayerName, string>> = {
  client_arguments: 'The client checks the arguments, if its action has a schema.',
  client_authorizer: 'The client’s own authorizer decides.',
  client_approval: 'A person at the client decides, if the action needs approval.',
  client_lease: 'The client refuses the action while it runs already, if it runs one at a time.',
};

const SKIPPED: Finding = {
  verdict: 'skipped',
  code: null,
  message: 'Not asked: an earlier layer decides.',
  evidence: null,
};

class Findings {
  readonly #found = new Map<PreflightLayerName, Finding>();
  readonly #asOf: number;

  constructor(asOf: number) {
    this.#asOf = asOf;
  }

  /** Adds the answer of a check. `passed`: the message if the check let the call pass. */
  note(layer: PreflightLayerName, answer: LayerAnswer, passed: string, evidence: LayerEvidence | null): void {
    if (answer === null) this.pass(layer, passed, evidence);
    else if (answer.kind === 'refused') this.refuse(layer, answer, evidence);
    else this.#found.set(layer, { verdict: 'skipped', code: null, message: answer.message, evidence: null });
  }

  pass(layer: PreflightLayerName, message: string, evidence: LayerEvidence | null = null): void {
    this.#found.set(layer, { verdict: 'pass', code: null, message, evidence });
  }

  unknown(layer: PreflightLayerName, message: string): void {
    this.#found.set(layer, { verdict: 'unknown', code: null, message, evidence: null });
  }

  refuse(
    layer: PreflightLayerName,
    { code, message }: Pick<InvokeRefusal, 'code' | 'message'>,
    evidence: LayerEvidence | null = null,
  ): void {
    this.#found.set(layer, { verdict: 'refuse', code, message, evidence });
  }

  result(command: Command | null): Preflight {
    const layers = PREFLIGHT_LAYERS.map((layer) => this.#layerOf(layer));
    const ofRelay = layers.filter(({ askedOf }) => askedOf === 'relay');
    const firstRefusal = ofRelay.find(({ verdict }) => verdict === 'refuse') ?? null;
    const isUnknown = ofRelay.some(({ verdict }) => verdict === 'unknown');
    const wouldAdmit = firstRefusal ? 'refuse' : isUnknown ? 'unknown' : 'pass';
    return { wouldAdmit, firstRefusal, layers, command, asOf: this.#asOf };
  }

  #layerOf(layer: PreflightLayerName): PreflightLayer {
    const ofClient = CLIENT_LAYERS[layer];
    if (ofClient !== undefined) {
      const unasked = { verdict: 'unknown', code: null, evidence: null, observedAt: null } as const;
      return { layer, ...unasked, message: ofClient, askedOf: 'client' };
    }
    const { evidence, ...finding } = this.#found.get(layer) ?? SKIPPED;
    const observedAt = finding.verdict === 'skipped' ? null : this.#asOf;
    return { layer, ...finding, evidence: evidence && toJson(evidence), askedOf: 'relay', observedAt };
  }
}
