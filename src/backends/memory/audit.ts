/** Keeps the audit of administrators' acts in the memory of one process. */
import {
  openRow,
  type AppendResult,
  type AuditAppend,
  type AuditExtent,
  type AuditHead,
  type AuditStore,
  type ListedAct,
  type SealedRow,
} from '../../core/audit/audit-rows.ts';

type Held = Pick<SealedRow, 'row' | 'line'>;

/** A chain of audit rows in memory. Every method completes in the tick in which it is called. */
export class MemoryAudit implements AuditStore {
  /** The rows, ordered by number. */
  #rows: Held[] = [];
  #head: AuditHead = { seq: 0, mac: '' };
  readonly #outcomes = new Map<number, string>();

  /** Loads rows that were stored before, oldest first. Skips lines that cannot be read as rows. */
  load(lines: readonly string[]): void {
    for (const line of lines) {
      const opened = openRow(line);
      if (opened) this.#add(opened);
    }
  }

  head(): AuditHead {
    return this.#head;
  }

  /** Returns why a row may not be appended now, or null if it may. */
  refusal({ sealed, rate }: AuditAppend): Exclude<AppendResult, { readonly kind: 'appended' }> | null {
    const { row } = sealed;
    if (row.prev !== this.#head.mac || row.seq !== this.#head.seq + 1) return { kind: 'moved', head: this.#head };
    if (!rate || row.kind !== 'act') return null;
    const from = row.at - rate.windowMs;
    let count = 0;
    for (let at = this.#rows.length - 1; at >= 0; at--) {
      const other = this.#rows[at]?.row;
      if (!other || other.at <= from) break;
      if (other.kind !== 'act' || other.who !== row.who || other.action !== row.action) continue;
      if (++count === rate.limit) return { kind: 'limited', retryAfterMs: other.at - from };
    }
    return null;
  }

  append(append: AuditAppend): AppendResult {
    const refusal = this.refusal(append);
    if (refusal) return refusal;
    if (append.dropThrough !== null) this.#drop(append.dropThrough);
    this.#add(append.sealed);
    return { kind: 'appended', extent: this.extent() };
  }

  extent(): AuditExtent {
    const first = this.#rows[0]?.row ?? null;
    return { count: this.#rows.length, firstSeq: first?.seq ?? null, firstAt: first?.at ?? null };
  }

  list(userId: string | null, { before, first }: { before: number | null; first: number }): readonly ListedAct[] {
    const found: ListedAct[] = [];
    for (let at = this.#indexOf(before ?? Infinity) - 1; at >= 0 && found.length < first; at--) {
      const { row, line } = this.#rows[at] ?? {};
      if (row?.kind !== 'act' || line === undefined || (userId !== null && row.subject.userId !== userId)) continue;
      found.push({ seq: row.seq, act: line, outcome: this.#outcomes.get(row.seq) ?? null });
    }
    return found;
  }

  lines(after: number, first: number): readonly string[] {
    const from = this.#indexOf(after + 1);
    return this.#rows.slice(from, from + first).map(({ line }) => line);
  }

  #add({ row, mac, line }: SealedRow): void {
    this.#rows.push({ row, line });
    this.#head = { seq: row.seq, mac };
    if (row.kind === 'outcome') this.#outcomes.set(row.of, line);
  }

  #drop(through: number): void {
    for (const { row } of this.#rows.splice(0, this.#indexOf(through + 1))) this.#outcomes.delete(row.seq);
  }

  /** Returns the index of the first row whose number is at least `seq`. */
  #indexOf(seq: number): number {
    let [low, high] = [0, this.#rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#rows[middle]?.row.seq ?? Infinity) < seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
