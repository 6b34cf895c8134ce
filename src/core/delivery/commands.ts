import type { KeptPayload, TerminalError } from '../history/message.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import type { Maybe } from '../maybe.ts';
import type { ShareName } from '../shares/bounds.ts';
import type { ShareRefusal } from '../shares/shares.ts';
import type { Command, CommandMark } from './command.ts';
import type { Waiter } from './waiter.ts';

export type AdmitRequest = CommandKey & {
  /** Whether the caller chose the id: then it is only admitted where its mark will have room. */
  readonly chosenId: boolean;
  readonly action: string;
  readonly digest: string;
  readonly scopeId: string;
  /** Reservations that the scope may hold at once. */
  readonly scopeLimit: number;
  readonly namedInstanceId: string | null;
  readonly params: JsonText | null;
  /** The params as the history row keeps them. */
  readonly kept: KeptPayload;
  readonly traceId: string | null;
  readonly parentSpanId: string | null;
  readonly connectWithinMs: number;
  readonly respondWithinMs: number;
  readonly waiter: NewWaiter;
};

/** A wait to register; `withinMs` from now, or null for as long as the command may live. */
export type NewWaiter = Pick<Waiter, 'rpcId' | 'callerNodeId' | 'waitFor'> & { readonly withinMs: number | null };

export type AdmitRefusal =
  | 'command_conflict'
  | 'not_connected'
  | 'instance_mismatch'
  | 'capacity_exceeded'
  | 'queue_full'
  /** There is no room for the params (`queued_bytes`), or for the mark of another id that a caller chose (`marks`). */
  | ShareRefusal;

/**
 * `admitted`: a new command, queued (its client is live) or parked. `attached`: the id was known with the same digest; the waiter waits on
 * it, or, where the record satisfies it already, is not registered. `ended`: the id was known with the same digest, and a mark alone is left of
 * it. `refused`: nothing was written.
 */
export type AdmitResult =
  | { readonly kind: 'admitted'; readonly command: Command }
  | { readonly kind: 'attached'; readonly command: Command; readonly result: JsonText | null }
  | { readonly kind: 'ended'; readonly mark: CommandMark }
  /** `share`: which one is used up; absent for `marks`; null where the store itself has no room. */
  | { readonly kind: 'refused'; readonly code: AdmitRefusal; readonly share?: ShareName | null };

/** The link that a client is bound to. */
export type Binding = { readonly nodeId: string; readonly instanceId: string; readonly epoch: number };

export type DispatchResult =
  | {
      readonly kind: 'dispatch';
      readonly command: Command;
      readonly params: JsonText | null;
      readonly remainingMs: number;
    }
  /** It ended, was dispatched before, is due, or belongs to another link: do not write. */
  | { readonly kind: 'skip' };

export type Report = {
  readonly instanceId: string;
  readonly kind: 'ack' | 'progress';
  readonly payload: JsonText | null;
  /** The payload as its history row keeps it; null: no row is kept of this report. */
  readonly kept: KeptPayload | null;
};
export type ReportResult =
  | { readonly kind: 'recorded'; readonly command: Command }
  /** Known already, ended, or from an instance that it is not bound to: nothing changed. */
  | { readonly kind: 'ignored'; readonly command: Command | null };

export type End = {
  readonly instanceId: string;
  readonly kind: 'result' | 'error' | 'cancelled';
  /** What the waiters are told, and what the record answers later. */
  readonly payload: JsonText | null;
  /** The payload as the history row keeps it. */
  readonly kept: KeptPayload;
  readonly error: TerminalError | null;
  /** The client refused before its handler ran. */
  readonly refused: boolean;
};

/**
 * The id of the message that an end is: the same end, re-sent, is the same message. Joined, since it is kept: a template's text would go on
 * holding each of its pieces.
 */
export function endMessageId(commandId: string, { kind, instanceId }: Pick<End, 'kind' | 'instanceId'>): string {
  return [commandId, kind, instanceId].join(':');
}

export type FinishResult =
  | { readonly kind: 'finished'; readonly command: Command }
  /** This very end was recorded before: counted as a sighting, nothing else changed. */
  | { readonly kind: 'duplicate'; readonly command: Command }
  /** It had ended otherwise: kept as late evidence and as a `late_result` row. */
  | { readonly kind: 'late'; readonly command: Command }
  /** Another instance is bound, or it was never dispatched: kept as evidence, resolves nothing. */
  | { readonly kind: 'fenced'; readonly command: Command }
  | { readonly kind: 'unknown' };

export type Settlement =
  /** Before dispatch the command ends `cancelled`; after, only the request is noted. */
  | { readonly kind: 'cancel'; readonly reason: string | null; readonly by: string }
  /** Ends it if it is due: `expired` when it was never dispatched, else `outcome_unknown`. */
  | { readonly kind: 'expire' }
  /** Ends a dispatched one as `outcome_unknown`, and one that was not as `expired`. Only while bound to `instanceId`, where given. */
  | {
      readonly kind: 'give_up';
      readonly code: 'instance_replaced' | 'node_lost' | 'store_lost';
      readonly instanceId: string | null;
    };

export type SettleResult =
  | { readonly kind: 'settled'; readonly command: Command }
  | { readonly kind: 'requested'; readonly command: Command }
  | { readonly kind: 'unchanged'; readonly command: Command }
  | { readonly kind: 'unknown' };

export type RebindResult = {
  /** Queued anew: the link that they had been queued for was lost before they were dispatched. */
  readonly requeued: number;
  /** Dispatched to this same instance and not ended: they fill its window. */
  readonly unfinished: readonly Command[];
  /** Dispatched to another instance: to be given up after the grace. */
  readonly orphaned: readonly Command[];
};

/** What a client's link did, or, `again`, that it stood all along while what waits for it was parked beside it. */
export type LinkMove = 'up' | 'again' | 'down';

/**
 * Every atomic act on a command, with all that belongs to it: its reservation, its history rows, its waiters and their replies, and the
 * mailbox rows of the nodes concerned. Each act is all or nothing and idempotent; an act that ends a command is the only one that frees
 * its reservation, and happens once. The backend stamps the times by its own clock.
 */
export interface CommandStore {
  /** How long after its end a command's id is known, milliseconds: within it no id runs twice. */
  readonly windowMs: number;
  admit(request: AdmitRequest): Maybe<AdmitResult>;
  /**
   * The write-ahead mark: committed before the socket write begins, at most once per command. Whoever was not answered asks again under the
   * same `attempt`, which is its own among those of the binding's link: while the mark is that attempt's, the answer is the same again.
   */
  dispatch(key: CommandKey, binding: Binding, attempt?: string): Maybe<DispatchResult>;
  /** An acknowledgement, or progress (which acknowledges too; its row is kept at most once a second). Only from the bound instance. */
  report(key: CommandKey, report: Report): Maybe<ReportResult>;
  /**
   * An end that a client reported. Replies to the waiters never precede the record. In the same act the deduplicator counts it, under
   * `endMessageId`: what it decides here is the counters alone, since a record outlives a mark.
   */
  finish(key: CommandKey, end: End): Maybe<FinishResult>;
  settle(key: CommandKey, settlement: Settlement): Maybe<SettleResult>;
  /**
   * A client's link came up or went down: what waits for it is queued, each also posted to the binding's node, or parked again. Of links
   * that come and go at once the highest epoch stands: a link that is older than the one bound changes nothing. `again` queues as `up` does,
   * for the link that is bound and for no other. A command that names another instance stays parked, or, once it had been queued, ends
   * `expired` (`instance_replaced`).
   */
  rebind(client: ClientKey, binding: Binding, link: LinkMove): Maybe<RebindResult>;
  /** Keys of a client's commands that have not ended, in no order. */
  live(client: ClientKey): Maybe<readonly CommandKey[]>;
  /** One answer per key, in the order asked. One round trip. */
  get(keys: readonly CommandKey[]): Maybe<readonly (Command | null)[]>;
  /** What is left of an ended command whose record is no longer kept; null where there is a record, or nothing is known of the id. */
  mark(key: CommandKey): Maybe<CommandMark | null>;
  /** The payload of the recorded result; null where there is none, or it is no longer retained (`resultExpired`). Kept apart, so that no record can hold a payload. */
  result(key: CommandKey): Maybe<JsonText | null>;
}
