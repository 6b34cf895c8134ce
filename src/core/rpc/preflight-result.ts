/** The result of a preflight: what each layer of an invocation would answer now. Types only. */
import type { Command } from '../delivery/command.ts';
import type { Code } from '../errors.ts';
import type { JsonText } from '../json.ts';

/**
 * Every layer of an invocation, in the order in which they are asked: those of the relay, then those of the client's
 * runtime.
 */
export const PREFLIGHT_LAYERS = [
  ...(['identity', 'scope', 'address', 'input', 'policy', 'relay', 'action', 'waits'] as const),
  ...(['storage', 'conflict', 'target', 'capacity'] as const),
  ...(['client_arguments', 'client_authorizer', 'client_approval', 'client_lease'] as const),
] as const;
export type PreflightLayerName = (typeof PREFLIGHT_LAYERS)[number];

/**
 * What one layer would answer. `unknown`: only a real invocation would show it. `skipped`: the layer was not asked,
 * because an earlier one refuses or because it does not apply.
 */
export type PreflightVerdict = 'pass' | 'refuse' | 'unknown' | 'skipped';

export type PreflightLayer = {
  readonly layer: PreflightLayerName;
  readonly verdict: PreflightVerdict;
  /** The code with which the invocation would be refused; null for the other verdicts. */
  readonly code: Code | null;
  readonly message: string;
  /** A JSON object with the state that the layer examined; null if it examined nothing that may be shown. */
  readonly evidence: JsonText | null;
  /** Who decides: the relay, or the client once it has received the command. */
  readonly askedOf: 'relay' | 'client';
  /** When the evidence was read, in epoch milliseconds; null if the layer was not asked. */
  readonly observedAt: number | null;
};

/** A snapshot. It reserves nothing, so a later invocation may be answered differently. */
export type Preflight = {
  /** Whether the relay would admit the command. The client's layers are not included. */
  readonly wouldAdmit: Exclude<PreflightVerdict, 'skipped'>;
  /** The first layer that refuses; the invocation would be refused with its code. Null if no layer refuses. */
  readonly firstRefusal: PreflightLayer | null;
  /** The results of all layers, in the order of PREFLIGHT_LAYERS. */
  readonly layers: readonly PreflightLayer[];
  /**
   * The command that has the id already: the invocation would attach to it, or replay its outcome. Null if there is
   * none, if the store would refuse the invocation, or if the record is gone and only its CommandMark is left.
   */
  readonly command: Command | null;
  readonly asOf: number;
};
