/** Checks a chain of audit rows: that relays wrote all of them, and that none was changed, moved or removed. */
import { keyIdOf, openRow, type AuditSign, type SealedRow, type AuditRow } from './audit-rows.ts';

type ChainFault = {
  /** The number of the row; null if it cannot be read. */
  readonly seq: number | null;
  readonly message: string;
};

/** Rows signed with one key that the check was not given, so that it cannot tell whether their content was changed. */
export type UncheckedRows = {
  /** The id of the key. */
  readonly key: string;
  /** The number of these rows, and the numbers of the first and the last of them. */
  readonly rows: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
};

export type ChainReport = {
  readonly rows: number;
  readonly firstSeq: number | null;
  readonly lastSeq: number | null;
  /** The MAC of the last row. If you keep it elsewhere, it shows later whether rows at the end were removed. */
  readonly lastMac: string | null;
  /** The first row that is wrong; null if none is. */
  readonly fault: ChainFault | null;
  /**
   * The rows whose keys are not given, by key, in the order in which the keys appear. Without a fault and without such
   * rows, the chain is whole.
   */
  readonly unchecked: readonly UncheckedRows[];
};

/**
 * A gap of missing rows, up to the row `seq - 1`. `prev`: the MAC of the last missing row, as the row after the gap
 * names it.
 */
type Gap = { readonly from: number; readonly seq: number; readonly prev: string };

/**
 * Takes the rows of a chain in order. A gap is not a fault if a row of kind `trim` in the same chain records that these
 * rows were removed. For a row whose key is not given, only its place in the chain is checked: its number, and that the
 * row and its successor name the MACs of their predecessors.
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

  /** `keys`: the present key, and earlier ones with which old rows may have been signed. */
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
      // No row is checked after a fault, so every gap is before it.
      fault: missing ? missingRows(missing) : this.#fault,
      unchecked: [...this.#unchecked.values()],
    };
  }

  /** Returns the fault that the MAC of a row shows; null if the MAC is right, or if its key was not given. */
  #changeOf({ row: { seq, key }, mac, text }: SealedRow & { readonly text: string }): string | null {
    if (key === undefined) {
      // Older relays did not name the key.
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
