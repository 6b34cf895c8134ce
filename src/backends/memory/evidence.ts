/**
 * Keeps the evidence of one process within its shares: drops the oldest results and records of ended commands, history
 * rows and message marks.
 */
import { LINK_BYTES, LINK_BYTES_GUARANTEE } from '../../core/limits.ts';
import type { ShareName } from '../../core/shares/share-bounds.ts';
import { createShares, type Shares } from '../../core/shares/shares.ts';

/** A table with evidence of one kind. A process that holds several states has several tables of a kind. */
export interface EvidenceTable {
  /** True while the table is being filled from a log; no row may be dropped then. Once false, it stays false. */
  readonly isFilling: boolean;
  /** The amount of the share that the table holds. It equals the sum of its users' holdings. */
  readonly held: number;
  /** The time of the oldest row that may be dropped, in epoch milliseconds; Infinity: there is none. */
  oldestAt(): number;
  /**
   * Drops the oldest row of a user, or of all users if `userId` is null. Returns false if no row may be dropped. `now`:
   * the time in epoch milliseconds. `isApart`: the drop does not belong to an act on this table.
   */
  dropOldest(userId: string | null, now: number, isApart: boolean): boolean;
}

/** The evidence of one kind in one process, in one or several tables. */
export class EvidenceKind {
  /** The holdings of the users. */
  readonly shares: Shares;
  readonly #share: ShareName;
  readonly #most: number;
  readonly #tables = new Set<EvidenceTable>();
  readonly #filling = new Set<EvidenceTable>();
  readonly #byAge = new TablesByAge();
  /**
   * The table that last dropped a row of a chosen user. The next call tries it first, because mostly the same user is
   * chosen again.
   */
  #last: EvidenceTable | null = null;

  /** `most`: the most rows that one call of `keepWithin` drops. */
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

  /** The total of all tables that are not being filled. It is read for each row that is added, so it must be cheap. */
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
   * Drops rows until the total is at most `total`, or no row may be dropped, or `most` rows were dropped. Each time it
   * drops the oldest row of the user who is most over their guarantee, or the oldest row of all if no user is over.
   * `acting`: the table of the act that added rows; null if no act did. Returns false if `most` rows were dropped and
   * more may have to go.
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
 * The tables in the order of their oldest rows. Rows leave a table oldest first and new rows are newer than all others,
 * so a table's position only has to be computed again when its oldest row may have changed.
 */
class TablesByAge {
  /** The tables, sorted so that the table with the oldest row is the last element. */
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

/**
 * The evidence of a process. `links`: the rows of link histories, whose holdings are counted apart from those of
 * messages.
 */
export type EvidenceKinds = Readonly<Record<'results' | 'records' | 'messages' | 'links' | 'seen', EvidenceKind>>;

/**
 * Creates the evidence of a process. `linkBytes`: the limit of all link histories together. `most`: as for
 * EvidenceKind.
 */
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
