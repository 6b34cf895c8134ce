/** Checks a chain of audit rows: that relays wrote all of them, and that none was changed, moved or removed. */
import { openRow, type AuditRow, type AuditSign } from './row.ts';

export type ChainFault = {
  /** The number of the row; null if it cannot be read. */
  readonly seq: number | null;
  readonly message: string;
};

export type ChainReport = {
  readonly rows: number;
  readonly firstSeq: number | null;
  readonly lastSeq: number | null;
  /** The MAC of the last row. If you keep it elsewhere, it shows later whether rows at the end were removed. */
  readonly lastMac: string | null;
  /** The first row that is wrong; null if none is. */
  readonly fault: ChainFault | null;
};

/**
 * A gap of missing rows, up to the row `seq - 1`. `prev`: the MAC of the last missing row, as the row after the gap
 * names it.
 */
type Gap = { readonly from: number; readonly seq: number; readonly prev: string };

/**
 * Takes the rows of a chain in order. A gap is not a fault if a row of kind `trim` in the same chain records that these
 * rows were removed.
 */
export class ChainVerifier {
  readonly #keys: readonly AuditSign[];
  readonly #gaps: Gap[] = [];
  readonly #trims = new Set<string>();
  #rows = 0;
  #first: number | null = null;
  #last: { readonly seq: number; readonly mac: string } = { seq: 0, mac: '' };
  #fault: ChainFault | null = null;

  /** `keys`: the present key, and earlier ones with which old rows may have been signed. */
  constructor(keys: readonly AuditSign[]) {
    this.#keys = keys;
  }

  add(line: string): void {
    if (this.#fault) return;
    const opened = openRow(line);
    if (!opened) return this.#fail(null, `The row after number ${this.#last.seq} cannot be read.`);
    const { row, mac, text } = opened;
    const { seq } = row;
    if (!this.#keys.some((sign) => sign(text) === mac))
      return this.#fail(seq, `Row ${seq} was changed, or was written under another key.`);
    if (seq <= this.#last.seq)
      return this.#fail(seq, `Row ${seq} is not in its place: row ${this.#last.seq} is before it.`);
    if (seq > this.#last.seq + 1) this.#gaps.push({ from: this.#last.seq + 1, seq, prev: row.prev });
    else if (row.prev !== this.#last.mac) return this.#fail(seq, `Row ${seq} does not follow row ${this.#last.seq}.`);
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
      fault: missing ? missingRows(missing) : this.#fault,
    };
  }

  #note(row: AuditRow): void {
    this.#rows++;
    this.#first ??= row.seq;
    if (row.kind === 'trim') this.#trims.add(`${row.through}:${row.throughMac}`);
  }

  #fail(seq: number | null, message: string): void {
    this.#fault = { seq, message };
  }
}

function missingRows({ from, seq }: Gap): ChainFault {
  const which = from === seq - 1 ? `Row ${from} is` : `Rows ${from} to ${seq - 1} are`;
  return { seq, message: `${which} missing before row ${seq}, and no row says that they were trimmed.` };
}
