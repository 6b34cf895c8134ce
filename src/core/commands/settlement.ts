/** What a command is settled with: its cancel, its answer, or an end that its client did not report. Types only. */
import type { Command, ContextRefusal } from './command.ts';

/** A settlement that concerns the answer of a command, and never its end. */
export type OfAnswer =
  /**
   * Records that the answer of the ended command was written whole to a caller: by the request `by`, which must owe it,
   * or by another one (null). Changes nothing while the command is live, and after an unknown outcome.
   */
  | { readonly kind: 'answered'; readonly by: string | null }
  /** Records that a later call names the ended command, and runs it once more on purpose. */
  | { readonly kind: 'repeated' }
  /** Records that the answer of the request `by` was lost, if that owes it. */
  | { readonly kind: 'lost'; readonly by: string }
  /** Records that from now on the request `by` owes the answer, if it is still the one that `instead` owes. */
  | { readonly kind: 'owed'; readonly by: string; readonly instead: string };

export type Settlement =
  | OfAnswer
  /** Requests a cancel. It ends a command that was not dispatched; for a dispatched one it is only recorded. */
  | { readonly kind: 'cancel'; readonly reason: string | null; readonly by: string }
  /** Ends the command if it is due: `expired` if it was never dispatched, else `outcome_unknown`. */
  | { readonly kind: 'expire' }
  /** Ends the command `expired`, unless it was dispatched. */
  | { readonly kind: 'refuse'; readonly code: ContextRefusal }
  /**
   * Ends the command as `paused`, with nothing run: this attempt dispatched it on the link with this node and epoch, and
   * the node has not written it. Changes nothing if another attempt dispatched it, or if its client has another link or
   * reported on it.
   */
  | { readonly kind: 'unwritten'; readonly nodeId: string; readonly epoch: number; readonly attempt: string }
  /**
   * Ends the command: `outcome_unknown` if it was dispatched, else `expired`. If `instanceId` is given, the command ends
   * only if it was dispatched to that instance, or waits for it.
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
