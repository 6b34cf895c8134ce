/** The port that reads commands and scopes for listings and bounded statistics. */
import type { ActionPatterns } from '../auth/principal.ts';
import type { WithGaps } from '../completeness.ts';
import type { Leading } from '../connections/connection-store.ts';
import type { ClientType } from '../connections/connection.ts';
import type { Label } from '../connections/labels.ts';
import type { Busy } from '../connections/reconnects.ts';
import type { CommandKey } from '../ids.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { PageRequest, Scan } from '../page.ts';
import type { CallerFilter, Command, Outcome, Stage } from './command.ts';

/** Bounded statistics of delivery. The oldest values are those of a sample, not exact global extremes. */
export type DeliverySummary = WithGaps & {
  /** The number of commands with a record: live commands, and ended ones within retention. */
  readonly trackedCommands: number;
  /** The number of live commands that are past their connect deadline or their deadline and not settled yet. */
  readonly dueCommands: number;
  readonly sampledOldestDeadline: number | null;
  readonly sampledOldestQueuedAgeMs: number | null;
  readonly sampleSize: number;
  /**
   * The length of the command stream that an earlier system left in the same Redis, and the number of its pending
   * commands. Null where there is none to read, as in direct mode.
   */
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

/**
 * A scope and the number of its reservations. `userId`: the user of one of them, from whom the policy derives the
 * scope.
 */
export type ReservedScope = Pick<CapacityScope, 'scopeId' | 'reservedCommands'> & { readonly userId: string };

export type DeliveryFilter = {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly stage: Stage | null;
  readonly outcome: Outcome | null;
  /** The command must have ended in one of these ways; null: any stage and any outcome. */
  readonly outcomes: readonly Outcome[] | null;
  readonly nodeId: string | null;
  readonly action: string | null;
  /** The context that the command names. */
  readonly contextId: string | null;
  /** The code of the error that the command ended with; null: any or none. */
  readonly code: string | null;
  readonly clientType: ClientType | null;
  /** The labels that the target's connection must have now, all of them; null: any or none. */
  readonly labels: readonly Label[] | null;
  /** The bounds of the time of admission, both exclusive; epoch milliseconds. */
  readonly admittedAfter: number | null;
  readonly admittedBefore: number | null;
  /** See `hasIdOrTrace`. */
  readonly idOrTrace: string | null;
  /** The only actions whose commands the requester may see. Absent: all. */
  readonly seen?: ActionPatterns;
} & CallerFilter;

/** Matches every command. */
export const ANY_COMMAND: DeliveryFilter = {
  userId: null,
  clientId: null,
  stage: null,
  outcome: null,
  outcomes: null,
  nodeId: null,
  action: null,
  contextId: null,
  code: null,
  clientType: null,
  labels: null,
  admittedAfter: null,
  admittedBefore: null,
  idOrTrace: null,
  caller: null,
  callerKind: null,
};

/**
 * The orders of command listings. `key`: by user, client and command. `newest`: latest admission first; commands of one
 * millisecond in a fixed order.
 */
export const COMMAND_ORDERS = ['key', 'newest'] as const;
export type CommandOrder = (typeof COMMAND_ORDERS)[number];

/** A page of commands. The default order is `key`. A position is valid only for the order in which it was returned. */
export type CommandPage = PageRequest & { readonly order?: CommandOrder | undefined };

/**
 * Observation of delivery: records and counts, never a payload. Observing creates, acquires, renews and releases
 * nothing.
 */
export interface DeliveryInspector {
  summary(): MaybePromise<DeliverySummary>;
  /** Lists the scopes that have reservations, ordered by scope. */
  scopes(page: PageRequest): MaybePromise<Scan<CapacityScope>>;
  /** Returns one scope per id, in the order of the ids; null for a scope without reservations. */
  getScopes(scopeIds: readonly string[]): MaybePromise<readonly (CapacityScope | null)[]>;
  /** Returns the scopes that have reservations, in no particular order: all of them, or as many as SCAN_BUDGET. */
  reservedScopes(): MaybePromise<readonly ReservedScope[]>;
  /**
   * Returns the clients with the most live commands, most first, then in order of user and client; at most `first`.
   * Reads at most SCAN_BUDGET reservations. `complete`: whether it read all of them.
   */
  busiest(first: number): MaybePromise<Leading<Busy>>;
  /**
   * Lists tracked commands. In the order `newest`, commands admitted after the first page appear on no later page. A
   * page is cut after SCAN_BUDGET rows. It may have as many rows as that, unlike the pages of other stores.
   */
  list(filter: DeliveryFilter, page: CommandPage): MaybePromise<Scan<Command>>;
}
