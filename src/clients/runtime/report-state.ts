/** Keeps the reported rows of one kind, and which changes the relay does not have yet. Sends nothing. */
import { ID } from '../../protocol/fields.ts';
import type { ReportRow } from './report-rows.ts';

/**
 * A change of the reported rows of one kind. `set` adds or replaces rows and `removed` removes rows by id. All other
 * rows stay.
 */
export type ReportChanges<T> = { readonly set?: readonly T[]; readonly removed?: readonly string[] };

/** The part of a report about one kind of rows. `set` holds JSON texts. */
export type Part = { readonly snapshot: boolean; readonly set: readonly string[]; readonly removed: readonly string[] };

export type ReportStateOptions<T> = {
  /** The name of the rows in error messages. */
  readonly kind: string;
  readonly max: number;
  row(given: T, where: string): ReportRow;
};

/** The current rows of one kind, and which of them have not been reported to the relay. */
export class ReportState<T> {
  readonly #options: ReportStateOptions<T>;
  #rows = new Map<string, string>();
  readonly #changed = new Set<string>();
  /** Whether the client has reported this kind. If not, nothing is sent about it. */
  #reported = false;
  /** Whether the relay has a snapshot, so that changes are enough. */
  #hasSnapshot = false;

  constructor(options: ReportStateOptions<T>) {
    this.#options = options;
  }

  /** Replaces all rows. If one of them is invalid, throws TypeError and changes nothing. */
  replace(given: readonly T[]): void {
    this.#keep(this.#read(given, 'rows'), [...this.#rows.keys()]);
  }

  /** Applies changes. If one of them is invalid, throws TypeError and changes nothing. */
  change({ set = [], removed = [] }: ReportChanges<T>): void {
    for (const [i, id] of removed.entries()) {
      if (typeof id !== 'string' || !ID.test(id)) throw new TypeError(`${this.#options.kind}.removed[${i}]: not an id`);
    }
    const rows = this.#read(set, 'set');
    const both = removed.find((id) => rows.has(id));
    if (both !== undefined) throw new TypeError(`${this.#options.kind}: ${both} is both set and removed`);
    this.#keep(rows, removed);
  }

  /** Makes the next report a snapshot, because the relay has none any more. */
  forget(): void {
    this.#hasSnapshot = false;
  }

  /** Returns what is to be reported now and marks it as reported; null when there is nothing. */
  take(): Part | null {
    if (!this.#reported || (this.#hasSnapshot && this.#changed.size === 0)) return null;
    const changed = [...this.#changed];
    this.#changed.clear();
    if (this.#hasSnapshot) return this.#delta(changed);
    this.#hasSnapshot = true;
    return { snapshot: true, set: [...this.#rows.values()], removed: [] };
  }

  #delta(changed: readonly string[]): Part {
    const set: string[] = [];
    const removed: string[] = [];
    for (const id of changed) {
      const json = this.#rows.get(id);
      if (json === undefined) removed.push(id);
      else set.push(json);
    }
    return { snapshot: false, set, removed };
  }

  #read(given: readonly T[], list: 'rows' | 'set'): Map<string, string> {
    const { kind, row } = this.#options;
    const rows = new Map<string, string>();
    for (const [i, one] of given.entries()) {
      const { id, json } = row(one, `${list === 'rows' ? kind : `${kind}.set`}[${i}]`);
      if (rows.has(id)) throw new TypeError(`${kind}: ${id} appears twice`);
      rows.set(id, json);
    }
    return rows;
  }

  #keep(set: ReadonlyMap<string, string>, removed: readonly string[]): void {
    const { kind, max } = this.#options;
    const rows = new Map(this.#rows);
    for (const id of removed) rows.delete(id);
    for (const [id, json] of set) rows.set(id, json);
    if (rows.size > max) throw new TypeError(`${kind}: more than ${max}`);
    for (const id of [...removed, ...set.keys()]) if (rows.get(id) !== this.#rows.get(id)) this.#changed.add(id);
    this.#rows = rows;
    this.#reported = true;
  }
}
