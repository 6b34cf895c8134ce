/**
 * Keeps evidence within its shares. Evidence is what no rule needs: results and records of ended commands, rows of
 * history, and marks of messages. It may be in several tables, if one process has several states.
 */
import { LINK_BYTES, LINK_BYTES_GUARANTEE } from '../../core/limits.ts';
import type { ShareName } from '../../core/shares/share-bounds.ts';
import { createShares, type Shares } from '../../core/shares/shares.ts';

/** A table with evidence of one kind. */
export interface EvidenceTable {
  /** Whether the table is being filled from a log, so that nothing of it may be dropped. Once it is not, it never is again. */
  readonly isFilling: boolean;
  /** How much of the share the table holds. Its users' holdings are the same. */
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
  readonly #filling = new Set<EvidenceTable>();
  readonly #byAge = new TablesByAge();
  /** The table that dropped a row of a user last: the user who is most over is mostly the same. */
  #last: EvidenceTable | null = null;

  /** `most`: the most rows that one call drops. */
  constructor(shares: Shares, share: ShareName, most = Infinity) {
    this.shares = shares;
    this.#share = share;
    this.#most = most;
  }

  add(table: EvidenceTable): void {
    this.#tables.add(table);
    this.#filling.add(table);
    this.#byAge.forget();
  }

  remove(table: EvidenceTable): void {
    this.#tables.delete(table);
    this.#filling.delete(table);
    this.#byAge.forget();
    if (this.#last === table) this.#last = null;
  }

  /** How much the tables hold that are not being filled. It is asked for with each row that is added. */
  get held(): number {
    let held = this.shares.used(this.#share);
    for (const table of this.#filling) {
      if (table.isFilling) {
        held -= table.held;
        continue;
      }
      this.#filling.delete(table);
      this.#byAge.forget();
    }
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
    if (holder && this.#dropOf(holder.userId, now, acting)) return true;
    const oldest = this.#byAge.oldest(this.#tables, now);
    return oldest?.dropOldest(null, now, oldest !== acting) ?? false;
  }

  #dropOf(userId: string, now: number, acting: EvidenceTable | null): boolean {
    const drops = (table: EvidenceTable): boolean => table.dropOldest(userId, now, table !== acting);
    if (this.#last && drops(this.#last)) return true;
    for (const table of this.#tables) {
      if (!drops(table)) continue;
      this.#last = table;
      return true;
    }
    return false;
  }
}

/**
 * Tables in the order of their oldest rows, which is computed again only when it may have changed. Rows leave a table
 * in this order, and what is added is newer than all that was there.
 */
class TablesByAge {
  /** The last one is the oldest. */
  #order: { readonly table: EvidenceTable; readonly at: number }[] = [];
  #orderedAt = -Infinity;

  forget(): void {
    this.#orderedAt = -Infinity;
  }

  /** Returns the table with the oldest row that may be dropped; null if there is none. */
  oldest(tables: Iterable<EvidenceTable>, now: number): EvidenceTable | null {
    for (let next = this.#order.pop(); next && next.at < this.#orderedAt; next = this.#order.pop()) {
      const at = next.table.oldestAt();
      this.#insert(next.table, at);
      if (at === next.at) return next.table;
    }
    this.#order = [];
    this.#orderedAt = now;
    for (const table of tables) this.#insert(table, table.oldestAt());
    return this.#order.at(-1)?.table ?? null;
  }

  #insert(table: EvidenceTable, at: number): void {
    if (at === Infinity) return;
    let [low, high] = [0, this.#order.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#order[middle]?.at ?? -Infinity) > at) low = middle + 1;
      else high = middle;
    }
    this.#order.splice(low, 0, { table, at });
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
