/**
 * The changes of a command that are not a report of its client: a cancel, an end, or a note about its answer. Types
 * only.
 */
import type { Command, ContextRefusal } from './command.ts';

/** A note about the answer of a command. It never ends the command. */
export type OfAnswer =
  /**
   * Says that the whole answer of the ended command was written to a caller. `by`: the request that wrote it, which
   * must be the one that owes the answer; null: another caller's request. Changes nothing if the command is live or its
   * outcome is unknown.
   */
  | { readonly kind: 'answered'; readonly by: string | null }
  /** Says that a later call names the ended command in order to run it once more on purpose. */
  | { readonly kind: 'repeated' }
  /** Says that the answer of the request `by` was lost. Changes nothing if another request owes the answer. */
  | { readonly kind: 'lost'; readonly by: string }
  /**
   * Moves the answer from the request `instead` to the request `by`. Changes nothing if `instead` no longer owes the
   * answer.
   */
  | { readonly kind: 'owed'; readonly by: string; readonly instead: string };

export type Settlement =
  | OfAnswer
  /** Requests a cancel. If the command was not dispatched, this ends it; if it was, this is only recorded. */
  | { readonly kind: 'cancel'; readonly reason: string | null; readonly by: string }
  /**
   * Ends the command if it is past its connect deadline or its deadline: as `expired` if it was never dispatched, and
   * as `outcome_unknown` otherwise.
   */
  | { readonly kind: 'expire' }
  /** Ends the command as `expired`, unless it was dispatched. */
  | { readonly kind: 'refuse'; readonly code: ContextRefusal }
  /**
   * Ends the command as `paused`: this attempt recorded its dispatch on the link with this node and epoch, and the node
   * has not written it, so nothing ran. Changes nothing if another attempt recorded the dispatch, if the client has
   * another link, or if the client reported on the command.
   */
  | { readonly kind: 'unwritten'; readonly nodeId: string; readonly epoch: number; readonly attempt: string }
  /**
   * Ends the command: as `outcome_unknown` if it was dispatched, and as `expired` otherwise. If `instanceId` is not
   * null, ends it only if it was dispatched to that instance or waits for it.
   */
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
