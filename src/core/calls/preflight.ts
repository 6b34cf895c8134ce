/** Predicts whether an invocation would be admitted, by the same rules as the invocation. Writes nothing. */
import { isOwnScope } from '../auth/policy.ts';
import { requireScope, subjectOf, type CallingPrincipal, type Requester } from '../auth/principal.ts';
import type { Command } from '../commands/command.ts';
import type { AdmitPreview, AdmitQuestion } from '../commands/stores.ts';
import { CallboardError, type Code } from '../errors.ts';
import { toJson } from '../json.ts';
import { QUEUE_PER_CLIENT } from '../limits.ts';
import { holderOf } from '../shares/shares.ts';
import {
  PREFLIGHT_LAYERS,
  type InvokeRequest,
  type Preflight,
  type PreflightLayer,
  type PreflightLayerName,
  type PreflightVerdict,
} from './call.ts';
import {
  CALL_LAYERS,
  ID_IS_KNOWN,
  admitQuestion,
  liveConnection,
  ownUser,
  refusedAdmission,
  refusedParams,
  refusedStore,
  type CallLayer,
  type InvokeParts,
  type InvokeRefusal,
  type LayerAnswer,
  type PreparedCall,
  type SkippedLayer,
} from './invoke.ts';
import { checkInvoke, type CheckedInvoke } from './request.ts';

/**
 * Runs every layer of an invocation without admitting anything: nothing is reserved, written or counted. Throws as the
 * invocation does if the requester may not invoke at all (`unauthenticated`, `forbidden`) or names another user
 * (`not_found`), and `store_unavailable`.
 */
export async function preflight(parts: InvokeParts, requester: Requester, request: InvokeRequest): Promise<Preflight> {
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
  return findings.result(await askAll(parts, findings, await callOf(parts, { caller, userId, checked })));
}

/**
 * The codes of refusals for wrong input. Other errors are thrown: they must look the same for an absent and a foreign
 * object.
 */
const INPUT_CODES: ReadonlySet<Code> = new Set(['invalid_user', 'invalid_argument', 'reserved_parameter']);

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

type Checked = { readonly caller: CallingPrincipal; readonly userId: string; readonly checked: CheckedInvoke };

async function callOf(parts: InvokeParts, { caller, userId, checked }: Checked): Promise<PreparedCall> {
  const { crypto, shares } = parts.deps;
  const key = { userId, clientId: checked.clientId, commandId: checked.commandId ?? crypto.randomId() };
  return { caller, key, checked, live: await liveConnection(parts, key), holdings: shares.of(holderOf(caller)) };
}

async function askAll(parts: InvokeParts, findings: Findings, call: PreparedCall): Promise<Command | null> {
  for (const { layer, check } of CALL_LAYERS)
    findings.note(layer, await check(parts, call), {
      passed: CALL_PASSES[layer],
      evidence: CALL_EVIDENCE[layer](call),
    });
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
  policy: ({ live }) => ({ clientType: live?.clientType ?? null }),
  relay: () => null,
  action: ({ live }) => live && { instanceId: live.instanceId, advertised: live.actions.length },
  waits: ({ holdings }) => ({ waits: holdings.held('waits') }),
};

/**
 * Predicts whether the params can be stored. Small params are stored with their message, so only large ones need room
 * in the spill store.
 */
async function askStorage({ keeper }: InvokeParts, findings: Findings, { key, checked }: PreparedCall): Promise<void> {
  const error = await Promise.resolve(keeper.preview(checked.params, key.userId)).catch((thrown: unknown) => thrown);
  if (error === null) findings.pass('storage', 'The params can be stored.');
  else if (error === 'unknown') findings.unknown('storage', 'Whether the params fit shows only when they are written.');
  else findings.refuse('storage', refusedParams(error));
}

/** The layers that the store decides in one act, in this order. */
const STORE_LAYERS = ['conflict', 'target', 'capacity'] as const;
type StoreLayer = (typeof STORE_LAYERS)[number];

async function askStore(parts: InvokeParts, findings: Findings, call: PreparedCall): Promise<Command | null> {
  const question = admitQuestion(parts, call);
  const preview = await Promise.resolve(parts.deps.backend.commands.preview(question)).catch(refusedStore);
  // A store without room refuses every act, so there is no state to show.
  if ('kind' in preview) return (findings.refuse('capacity', refusedAdmission(preview)), null);
  const { answer } = preview;
  const refusal = answer.kind === 'refused' ? refusedAdmission(answer) : null;
  for (const layer of STORE_LAYERS) {
    const found = layer === refusal?.by ? refusal : skippedByStore(layer, preview);
    findings.note(layer, found, {
      passed: STORE_PASSES[layer],
      evidence: STORE_EVIDENCE[layer](question, preview, call.caller),
    });
    if (found?.kind === 'refused') return null;
  }
  return answer.kind === 'attached' ? answer.command : null;
}

/**
 * Returns why the store does not check a layer; null if it does. The store does not check the target if the command id
 * is known.
 */
function skippedByStore(layer: StoreLayer, { known }: AdmitPreview): SkippedLayer | null {
  return layer === 'target' && known ? ID_IS_KNOWN : null;
}

const STORE_PASSES: Readonly<Record<StoreLayer, string>> = {
  conflict: 'No other request has this command id.',
  target: 'The client is connected, or the call allows time to connect.',
  capacity: 'There is room for the command, or for another wait on a known one.',
};

const STORE_EVIDENCE: Readonly<
  Record<StoreLayer, (question: AdmitQuestion, preview: AdmitPreview, caller: CallingPrincipal) => LayerEvidence>
> = {
  conflict: (_, { known }) => ({ known }),
  target: ({ namedInstanceId, connectWithinMs }, { boundInstanceId }) => ({
    connected: boundInstanceId !== null,
    instanceId: boundInstanceId,
    namedInstanceId,
    connectWithinMs,
  }),
  // How many commands the other members of a scope have is not for its members.
  capacity: ({ scopeId, scopeLimit, userId }, { reserved, queued }, { kind }) => ({
    scopeId,
    ...(kind === 'admin' || isOwnScope(scopeId, userId)
      ? { reserved }
      : { scope: reserved < scopeLimit ? 'room' : 'full' }),
    limit: scopeLimit,
    queued,
    of: QUEUE_PER_CLIENT,
  }),
};

// Collects the answers of the layers of a preflight. It makes no decision itself.

type LayerEvidence = Readonly<Record<string, unknown>>;
type Finding = Pick<PreflightLayer, 'verdict' | 'code' | 'message'> & { readonly evidence: LayerEvidence | null };

/** The layers that the client decides once it has received the command. */
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

  /** Takes what a layer answered. `passed`: the message if it let the call pass. */
  note(
    layer: PreflightLayerName,
    answer: LayerAnswer,
    { passed, evidence }: { readonly passed: string; readonly evidence: LayerEvidence | null },
  ): void {
    if (answer === null) this.pass(layer, passed, evidence);
    else if (answer.kind === 'refused') this.refuse(layer, answer, evidence);
    else this.#set(layer, 'skipped', { message: answer.message, evidence: null });
  }

  pass(layer: PreflightLayerName, message: string, evidence: LayerEvidence | null = null): void {
    this.#set(layer, 'pass', { message, evidence });
  }

  unknown(layer: PreflightLayerName, message: string, evidence: LayerEvidence | null = null): void {
    this.#set(layer, 'unknown', { message, evidence });
  }

  refuse(
    layer: PreflightLayerName,
    { code, message }: Pick<InvokeRefusal, 'code' | 'message'>,
    evidence: LayerEvidence | null = null,
  ): void {
    this.#set(layer, 'refuse', { code, message, evidence });
  }

  result(command: Command | null): Preflight {
    const layers = PREFLIGHT_LAYERS.map((layer) => this.#layerOf(layer));
    const ofRelay = layers.filter(({ askedOf }) => askedOf === 'relay');
    const firstRefusal = ofRelay.find(({ verdict }) => verdict === 'refuse') ?? null;
    const isUnknown = ofRelay.some(({ verdict }) => verdict === 'unknown');
    const wouldAdmit = firstRefusal ? 'refuse' : isUnknown ? 'unknown' : 'pass';
    return { wouldAdmit, firstRefusal, layers, command, asOf: this.#asOf };
  }

  #set(
    layer: PreflightLayerName,
    verdict: PreflightVerdict,
    {
      code = null,
      ...told
    }: { readonly code?: Code | null; readonly message: string; readonly evidence: LayerEvidence | null },
  ): void {
    this.#found.set(layer, { verdict, code, ...told });
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
