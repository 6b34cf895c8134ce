/**
 * The budget of a process that owns partitions: how much memory all of them together may take, by the shares of the
 * process. There are two kinds of rows.
 *
 * - Evidence, which no rule needs: results and records of ended commands (their marks stay, so that no id runs twice),
 *   rows of history and of link histories, and marks of messages. A takeover may bring more than the totals allow. The
 *   oldest then go, first those of the user who is most over their guarantee, whichever partition they are in.
 *   `completeness` names the gap (`evicted`), and the log has it, so that the next owner knows it too.
 * - Rows that rules need: commands that have not ended, with their params, and the marks of ended ones. They are never
 *   dropped. A process that holds so much of them that no more fit takes nothing over: the partition waits for another
 *   process, or for room.
 *
 * Sites, sessions, connections and used tickets are needed too; they are few, and bounded by what created them.
 */
import type { ShareName } from '../../core/shares/share-bounds.ts';
import type { Shares } from '../../core/shares/shares.ts';
import { createEvidence, type EvidenceKinds } from '../memory/evidence.ts';

/** The most rows of evidence of one kind that are dropped at once, so that no turn of the event loop is long. */
const DROPPED_TOGETHER = 512;
/** The shares of rows that rules need. */
const NEEDED = ['queued_bytes', 'marks'] as const satisfies readonly ShareName[];
/**
 * A process takes no partition over once it holds this part of a total. It is more than one process ever admits, even
 * with what is reserved for ends and for snapshots.
 */
const TAKEN_PART = 1.25;

export type Budget = {
  /** Where all partitions keep their evidence. */
  readonly evidence: EvidenceKinds;
  /** Whether the process has room for the rows of one more partition that rules need. */
  readonly hasRoom: () => boolean;
};

/** `linkBytes`: the total of all link histories; absent: LINK_BYTES. */
export function createBudget(shares: Shares, linkBytes?: number): Budget {
  const isWithin = (share: ShareName): boolean =>
    shares.used(share) <= TAKEN_PART * (shares.bounds[share].total ?? Infinity);
  return {
    evidence: createEvidence(shares, linkBytes, DROPPED_TOGETHER),
    hasRoom: () => NEEDED.every(isWithin),
  };
}
