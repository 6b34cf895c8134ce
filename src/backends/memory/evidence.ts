/**
 * Keeps evidence within its shares. Evidence is what no rule needs: results and records of ended commands, rows of
 * history, and marks of messages. It may be in several tables, if one process has several states.
 */
import { LINK_BYTES, LINK_BYTES_GUARANTEE } from '../../core/limits.ts';
import { createShares, type ShareName, type Shares } from '../../core/shares/shares.ts';

/** A table with evidence of one kind. */
export interface EvidenceTable {
  /** How much of the share the table holds; 0 while it is filled from a log. */
  readonly held: number;
  /** The time of the oldest row that may be dropped, in epoch milliseconds; Infinity: there is none. */
  oldestAt(): number;
  /**
   * Drops the oldest row, of this user, or (null) of all. Returns false if there is none that may be dropped. `now`: the
   * time. `isApart`: the drop is no part of an act on this table.
   */
  dropOldest(userId: string | null, now: number, isApart: boolean): boolean;
}

/** The evidence of one kind in one process. */
export class EvidenceKind {
  /** Has the holdings of the users. */
  readonly shares: Shares;
  readonly #share: ShareName;
  readonly #most: number;
  readonly #tables = new Set<EvidenceTable>();

  /** `most`: the most rows that one call drops. */
  constructor(shares: Shares, share: ShareName, most = Infinity) {
    this.shares = shares;
    this.#share = share;
    this.#most = most;
  }

  add(table: EvidenceTable): void {
    this.#tables.add(table);
  }

  remove(table: EvidenceTable): void {
    this.#tables.delete(table);
  }

  /** How much all tables hold. */
  get held(): number {
    let held = 0;
    for (const table of this.#tables) held += table.held;
    return held;
  }

  /**
   * Drops rows until the total is kept: the oldest of the user who is most over their guarantee, or the oldest of all if
   * no user is over. `acting`: the table of the act that added rows; null: there is none. Returns whether the total is
   * kept as far as it can be.
   */
  keepWithin(total: number, now: number, acting: EvidenceTable | null): boolean {
    for (let dropped = 0; dropped < this.#most; dropped++)
      if (this.held <= total || !this.#dropOne(now, acting)) return true;
    return false;
  }

  #dropOne(now: number, acting: EvidenceTable | null): boolean {
    const holder = this.shares.mostOver(this.#share);
    if (holder)
      for (const table of this.#tables) if (table.dropOldest(holder.userId, now, table !== acting)) return true;
    let [oldest, oldestAt]: [EvidenceTable | null, number] = [null, Infinity];
    for (const table of this.#tables) {
      const at = table.oldestAt();
      if (at < oldestAt) [oldest, oldestAt] = [table, at];
    }
    return oldest?.dropOldest(null, now, oldest !== acting) ?? false;
  }
}

/** The evidence of a process. `links`: rows of link histories, which have holdings of their own. */
export type EvidenceKinds = Readonly<Record<'results' | 'records' | 'messages' | 'links' | 'seen', EvidenceKind>>;

/** `linkBytes`: the total of all link histories. `most`: as for EvidenceKind. */
export function createEvidence(shares: Shares, linkBytes = LINK_BYTES, most?: number): EvidenceKinds {
  const guarantee = Math.min(LINK_BYTES_GUARANTEE, linkBytes);
  const ofLinks = createShares({ history_bytes: { guarantee, total: linkBytes } });
  return {
    results: new EvidenceKind(shares, 'result_bytes', most),
    records: new EvidenceKind(shares, 'ended_records', most),
    messages: new EvidenceKind(shares, 'history_bytes', most),
    links: new EvidenceKind(ofLinks, 'history_bytes', most),
    seen: new EvidenceKind(shares, 'dedup_marks', most),
  };
}
