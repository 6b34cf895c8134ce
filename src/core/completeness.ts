/** The types with which an answer says what each of its sources contributed, and what is missing. */

export type IncompleteReason =
  'limit_reached' | 'node_silent' | 'store_unavailable' | 'evicted' | 'not_supported' | 'awaiting_reports';
export type EvidenceSource =
  | ('connections' | 'streams' | 'pending_rpcs' | 'actions' | 'messages' | 'delivery')
  | ('contexts' | 'windows' | 'sites' | 'audit' | 'metrics' | 'revocations' | 'devices');

/** What one source contributed to an answer. If anything is missing from it, `reason` says why. */
export type ObservedSource = {
  readonly source: EvidenceSource;
  /** The node to which the source belongs; null if it belongs to none. */
  readonly nodeId: string | null;
  readonly complete: boolean;
  readonly observed: number;
  readonly limit: number | null;
  readonly reason: IncompleteReason | null;
  /** When the source was read, in epoch milliseconds. */
  readonly asOf: number;
};

/** An answer that is not a page and can say what is missing from it. Absent if nothing is missing. */
export type WithGaps = { readonly gaps?: readonly ObservedSource[] };

export type Completeness = { readonly complete: boolean; readonly sources: readonly ObservedSource[] };

/** The source of an answer's rows, and the time at which it was read, in epoch milliseconds. */
export type SourceRead = readonly [source: EvidenceSource, asOf: number];

/**
 * Describes a source that belongs to no node. `limit`: the bound at which reading stopped; null if all of the source
 * was read.
 */
export function observed(
  source: EvidenceSource,
  asOf: number,
  rows: number,
  limit: number | null = null,
): ObservedSource {
  const reason = limit === null ? null : 'limit_reached';
  return { source, nodeId: null, complete: limit === null, observed: rows, limit, reason, asOf };
}

/** Describes a source from which nothing was read. */
export function gapOf(
  source: EvidenceSource,
  asOf: number,
  nodeId: string | null,
  reason: IncompleteReason,
): ObservedSource {
  return { source, nodeId, complete: false, observed: 0, limit: null, reason, asOf };
}

export function completenessOf(sources: readonly ObservedSource[]): Completeness {
  return { complete: sources.every(({ complete }) => complete), sources };
}
