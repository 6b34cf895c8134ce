/**
 * Limits the memory that all partitions of a process take together, by the shares of the process. There are two kinds
 * of rows.
 *
 * - Evidence, which no rule needs: results and records of ended commands (their marks stay, so that no id runs twice),
 *   rows of history and of link histories, and marks of messages. A takeover may bring more evidence than the totals
 *   allow. Then the oldest rows are dropped, first those of the user who is most over their guarantee, in whichever
 *   partition they are. `completeness` reports the gap (`evicted`), and the log records it, so that the next owner
 *   knows it too.
 * - Rows that rules need: unfinished commands with their params, and the marks of ended commands. They are never
 *   dropped. A process that has no room for more of them takes over no partition: the partition waits for another
 *   process, or until this one has room.
 *
 * Sites, sessions, connections and used tickets are never dropped either. They are few, and limited where they are
 * created.
 */
import type { ShareName } from '../../core/shares/share-bounds.ts';
import type { Shares } from '../../core/shares/shares.ts';
import { createEvidence, type EvidenceKinds } from '../memory/evidence.ts';

/** The most rows of evidence of one kind that are dropped at once, which keeps turns of the event loop short. */
const DROPPED_TOGETHER = 512;
/** The shares of rows that rules need. */
const NEEDED = ['queued_bytes', 'marks'] as const satisfies readonly ShareName[];
/**
 * A process takes over no partition once it holds more than this multiple of a total. One process alone never admits
 * that much, even with the reserves for ends and for snapshots.
 */
const TAKEN_PART = 1.25;

export type Budget = {
  /** The evidence of all partitions. */
  readonly evidence: EvidenceKinds;
  /** Whether the process has room for the rows that rules need of one more partition. */
  readonly hasRoom: () => boolean;
};

/** Creates the budget of a process. `linkBytes`: the limit of all link histories together; default LINK_BYTES. */
export function createBudget(shares: Shares, linkBytes?: number): Budget {
  const isWithin = (share: ShareName): boolean =>
    shares.used(share) <= TAKEN_PART * (shares.bounds[share].total ?? Infinity);
  return {
    evidence: createEvidence(shares, linkBytes, DROPPED_TOGETHER),
    hasRoom: () => NEEDED.every(isWithin),
  };
}
