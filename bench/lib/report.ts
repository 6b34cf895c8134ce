/** Defines the types of a benchmark's results (tables, goals and notes), and functions that read values from them. */
import type { Sample } from './numbers.ts';

/**
 * The kind of a row. `limit`: the best possible result on this machine. `peer`: another product. `own`: this relay,
 * over one of its interfaces.
 */
export type RowKind = 'limit' | 'peer' | 'own';

/** A row of a table, with its values by column. `values` is null if the row could not run; `note` then states why. */
export type Row = {
  readonly name: string;
  readonly kind: RowKind;
  readonly values: Sample | null;
  readonly note: string;
};

/** A column of a table. Smaller values are better, unless `more` is true. */
export type Column = { readonly key: string; readonly label: string; readonly more?: boolean };

export type Table = {
  readonly title: string;
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
  /** The key of the column by which rows are compared. */
  readonly by: string;
};

/** A goal and the measured value. `measured` is null if a row that the goal compares could not run. */
export type Goal = {
  readonly text: string;
  readonly measured: number | null;
  readonly at: 'most' | 'least';
  readonly bound: number;
};

/** The result of one suite. */
export type Report = {
  readonly suite: string;
  readonly tables: readonly Table[];
  readonly goals: readonly Goal[];
  /** Sentences that a reader needs in order to understand the table. */
  readonly notes: readonly string[];
};

export function isMet({ measured, at, bound }: Goal): boolean | null {
  if (measured === null || Number.isNaN(measured)) return null;
  return at === 'most' ? measured <= bound : measured >= bound;
}

/** Returns the value of a row; null if the value is missing or the row could not run. */
export function valueOf({ rows }: Table, name: string, column: string): number | null {
  return rows.find((row) => row.name === name)?.values?.[column] ?? null;
}

/** Returns the ratio of two values; null if one of them is null. */
export function ratio(of: number | null, to: number | null): number | null {
  return of === null || to === null ? null : of / to;
}
