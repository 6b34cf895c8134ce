/** The storage port that lists commands and admission scopes, and computes bounded statistics of them. */
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

/** Statistics of delivery. Members that begin with `sampled` are the extremes of a sample, not of all commands. */
export type DeliverySummary = WithGaps & {
  /** The number of commands with a record: live commands, and ended ones within retention. */
  readonly trackedCommands: number;
  /** How many live commands are past their connect deadline or deadline, and have not been ended yet. */
  readonly dueCommands: number;
  readonly sampledOldestDeadline: number | null;
  readonly sampledOldestQueuedAgeMs: number | null;
  readonly sampleSize: number;
  /**
   * The length of the command stream that an earlier system left in the same Redis, and the number of its pending
   * commands. Null if the store has no such stream, as in direct mode.
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
 * A scope and the number of its reservations. `userId`: one of the users who hold them. The policy finds the scope by
 * this user.
 */
export type ReservedScope = Pick<CapacityScope, 'scopeId' | 'reservedCommands'> & { readonly userId: string };

export type DeliveryFilter = {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly stage: Stage | null;
  readonly outcome: Outcome | null;
  /** The outcomes of which the command must have one; null: any outcome, or none yet. */
  readonly outcomes: readonly Outcome[] | null;
  readonly nodeId: string | null;
  readonly action: string | null;
  /** The context that the command names. */
  readonly contextId: string | null;
  /** The error code with which the command ended; null: any code or none. */
  readonly code: string | null;
  readonly clientType: ClientType | null;
  /** The labels that the target's current connection must have, all of them; null: any labels. */
  readonly labels: readonly Label[] | null;
  /** The bounds of the time of admission, both exclusive; epoch milliseconds. */
  readonly admittedAfter: number | null;
  readonly admittedBefore: number | null;
  /** See `hasIdOrTrace`. */
  readonly idOrTrace: string | null;
  /** The actions whose commands the requester may see. Absent: all actions. */
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
 * The orders of command listings. `key`: by user, client and command. `newest`: latest admission first; commands that
 * were admitted in the same millisecond have a fixed order.
 */
export const COMMAND_ORDERS = ['key', 'newest'] as const;
export type CommandOrder = (typeof COMMAND_ORDERS)[number];

/** A page of commands. The default order is `key`. A position is valid only for the order in which it was returned. */
export type CommandPage = PageRequest & { readonly order?: CommandOrder | undefined };

/** Reads records and counts of commands, but no payload. The reads create, acquire, renew and release nothing. */
export interface DeliveryInspector {
  summary(): MaybePromise<DeliverySummary>;
  /** Lists the scopes that have reservations, ordered by scope. */
  scopes(page: PageRequest): MaybePromise<Scan<CapacityScope>>;
  /** Returns one scope per id, in the order of the ids; null for a scope without reservations. */
  getScopes(scopeIds: readonly string[]): MaybePromise<readonly (CapacityScope | null)[]>;
  /** Returns the scopes that have reservations, in no particular order, and at most SCAN_BUDGET of them. */
  reservedScopes(): MaybePromise<readonly ReservedScope[]>;
  /**
   * Returns the clients with the most live commands: at most `first`, in descending order of commands, then by user and
   * client. Reads at most SCAN_BUDGET reservations. `complete`: whether it has read all of them.
   */
  busiest(first: number): MaybePromise<Leading<Busy>>;
  /**
   * Lists commands that have a record. In the order `newest`, commands admitted after the first page was read appear on
   * no later page. A page ends after SCAN_BUDGET rows have been read. It may have that many rows, whereas pages of
   * other stores have fewer.
   */
  list(filter: DeliveryFilter, page: CommandPage): MaybePromise<Scan<Command>>;
}
