/** Checks a chain of audit rows: that a relay signed each row, and that no row was changed, moved or removed. */
import { keyIdOf, openRow, type AuditSign, type SealedRow, type AuditRow } from './audit-rows.ts';

type ChainFault = {
  /** The number of the faulty row; null if it cannot be read. */
  readonly seq: number | null;
  readonly message: string;
};

/**
 * The rows that were signed with one key that the check does not have. It cannot tell whether their content was
 * changed.
 */
export type UncheckedRows = {
  /** The id of the key. */
  readonly key: string;
  /** How many rows were signed with this key, and the numbers of the first and the last of them. */
  readonly rows: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
};

export type ChainReport = {
  readonly rows: number;
  readonly firstSeq: number | null;
  readonly lastSeq: number | null;
  /**
   * The MAC of the last row. Keep it elsewhere to find out later whether rows were removed from the end of the chain.
   */
  readonly lastMac: string | null;
  /** The first fault; null if there is none. */
  readonly fault: ChainFault | null;
  /**
   * The rows whose keys the check does not have, by key, in the order in which the keys appear. The chain is intact if
   * this is empty and `fault` is null.
   */
  readonly unchecked: readonly UncheckedRows[];
};

/** The rows `from` to `seq - 1`, which are missing. `prev`: the MAC of row `seq - 1`, as row `seq` names it. */
type Gap = { readonly from: number; readonly seq: number; readonly prev: string };

/**
 * Checks the rows of a chain, which are passed in order. A gap is not a fault if a later row of kind `trim` records
 * that its rows were removed. If the key of a row is missing, only the place of the row is checked: its number, that it
 * names the MAC of the row before it, and that the row after it names its MAC.
 */
export class ChainVerifier {
  readonly #keys: ReadonlyMap<string, AuditSign>;
  readonly #gaps: Gap[] = [];
  readonly #trims = new Set<string>();
  readonly #unchecked = new Map<string, UncheckedRows>();
  #rows = 0;
  #first: number | null = null;
  #last: { readonly seq: number; readonly mac: string } = { seq: 0, mac: '' };
  #fault: ChainFault | null = null;

  /** `keys`: the present key, and the earlier keys with which old rows may have been signed. */
  constructor(keys: readonly AuditSign[]) {
    this.#keys = new Map(keys.map((sign) => [keyIdOf(sign), sign]));
  }

  add(line: string): void {
    if (this.#fault) return;
    const opened = openRow(line);
    if (!opened) return this.#fail(null, `The row after number ${this.#last.seq} cannot be read.`);
    const { row, mac } = opened;
    const { seq, key } = row;
    const changed = this.#changeOf(opened);
    if (changed !== null) return this.#fail(seq, changed);
    if (seq <= this.#last.seq)
      return this.#fail(seq, `Row ${seq} is not in its place: row ${this.#last.seq} is before it.`);
    if (seq > this.#last.seq + 1) this.#gaps.push({ from: this.#last.seq + 1, seq, prev: row.prev });
    else if (row.prev !== this.#last.mac) return this.#fail(seq, `Row ${seq} does not follow row ${this.#last.seq}.`);
    if (key !== undefined && !this.#keys.has(key)) this.#noteUnchecked(key, seq);
    this.#note(row);
    this.#last = { seq, mac };
  }

  report(): ChainReport {
    const { seq, mac } = this.#last;
    const missing = this.#gaps.find((gap) => !this.#trims.has(`${gap.seq - 1}:${gap.prev}`));
    return {
      rows: this.#rows,
      firstSeq: this.#first,
      lastSeq: this.#rows > 0 ? seq : null,
      lastMac: this.#rows > 0 ? mac : null,
      // After a fault no more rows are checked, so all gaps are before the fault.
      fault: missing ? missingRows(missing) : this.#fault,
      unchecked: [...this.#unchecked.values()],
    };
  }

  /**
   * Returns the message if the MAC of a row does not fit its content; null if it does, or if the row's key is missing.
   */
  #changeOf({ row: { seq, key }, mac, text }: SealedRow & { readonly text: string }): string | null {
    if (key === undefined) {
      // The row is of an older relay, which did not name its key, so all keys are tried.
      const signed = [...this.#keys.values()].some((sign) => sign(text) === mac);
      return signed ? null : `Row ${seq} was changed, or was written under another key.`;
    }
    const sign = this.#keys.get(key);
    return !sign || sign(text) === mac ? null : `Row ${seq} was changed.`;
  }

  #note(row: AuditRow): void {
    this.#rows++;
    this.#first ??= row.seq;
    if (row.kind === 'trim') this.#trims.add(`${row.through}:${row.throughMac}`);
  }

  #noteUnchecked(key: string, seq: number): void {
    const { rows, firstSeq } = this.#unchecked.get(key) ?? { rows: 0, firstSeq: seq };
    this.#unchecked.set(key, { key, rows: rows + 1, firstSeq, lastSeq: seq });
  }

  #fail(seq: number | null, message: string): void {
    this.#fault = { seq, message };
  }
}

function missingRows({ from, seq }: Gap): ChainFault {
  const which = from === seq - 1 ? `Row ${from} is` : `Rows ${from} to ${seq - 1} are`;
  return { seq, message: `${which} missing before row ${seq}, and no row says that they were trimmed.` };
}
