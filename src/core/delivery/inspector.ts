/** The port of bounded delivery statistics. */
import type { CommandKey } from '../ids.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { PageRequest, Scan } from '../page.ts';
import type { Command, Outcome, Stage } from './command.ts';

/** Bounded aggregates. The oldest values are those of a sample, not exact global extremes. */
export type DeliverySummary = {
  /** Commands with a record: live commands, and ended ones within retention. */
  readonly trackedCommands: number;
  /** Live commands past their connect deadline or deadline that are not settled yet. */
  readonly dueCommands: number;
  readonly sampledOldestDeadline: number | null;
  readonly sampledOldestQueuedAgeMs: number | null;
  readonly sampleSize: number;
  /** Found by migration checks; null if there is nothing to migrate from (direct mode). */
  readonly legacyCommandStreamDepth: number | null;
  readonly pendingCommandDepth: number | null;
};

/** An admission scope that holds reservations now. */
export type CapacityScope = {
  readonly scopeId: string;
  readonly reservedCommands: number;
  readonly oldestDeadline: number | null;
  /** The commands that hold the reservations, ordered by deadline; at most SCOPE_HOLDERS. */
  readonly holders: readonly (CommandKey & { readonly deadline: number })[];
};

export type DeliveryFilter = {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly stage: Stage | null;
  readonly outcome: Outcome | null;
  readonly nodeId: string | null;
  /** Exclusive, epoch milliseconds. */
  readonly admittedAfter: number | null;
};

/**
 * Observation of delivery: records and counts, never a payload. Observing creates, acquires, renews and releases
 * nothing.
 */
export interface DeliveryInspector {
  summary(): MaybePromise<DeliverySummary>;
  /** Scopes with reservations, ordered by scope. */
  scopes(page: PageRequest): MaybePromise<Scan<CapacityScope>>;
  /** One answer per id, in the order of the ids; null for a scope without reservations. */
  getScopes(scopeIds: readonly string[]): MaybePromise<readonly (CapacityScope | null)[]>;
  /** Tracked commands, ordered by (user, client, command). */
  list(filter: DeliveryFilter, page: PageRequest): MaybePromise<Scan<Command>>;
}
