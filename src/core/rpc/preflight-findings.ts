/** Collects the answers of the layers of a preflight. It makes no decision itself. */
import type { Command } from '../delivery/command.ts';
import type { Code } from '../errors.ts';
import { toJson } from '../json.ts';
import type { LayerAnswer } from './layers.ts';
import type { InvokeRefusal } from './refusals.ts';
import { PREFLIGHT_LAYERS } from './preflight-result.ts';
import type { Preflight, PreflightLayer, PreflightLayerName, PreflightVerdict } from './preflight-result.ts';

export type LayerEvidence = Readonly<Record<string, unknown>>;
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

export class Findings {
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
