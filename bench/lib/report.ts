import type { Sample } from './numbers.ts';

/** `limit`: what nobody can beat here; `own`: this relay, by one of its doors. */
export type RowKind = 'limit' | 'peer' | 'own';

/** `values` by column; null: it could not run, and `note` says why. */
export type Row = {
  readonly name: string;
  readonly kind: RowKind;
  readonly values: Sample | null;
  readonly note: string;
};

/** A column is worse when it is larger, unless `more` is better. */
export type Column = { readonly key: string; readonly label: string; readonly more?: boolean };

export type Table = {
  readonly title: string;
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
  /** The column by which rows are compared with each other. */
  readonly by: string;
};

/** One goal of the design beside what was measured. `measured` is null where a row of it could not run. */
export type Goal = {
  readonly text: string;
  readonly measured: number | null;
  readonly at: 'most' | 'least';
  readonly bound: number;
};

/** What one suite found. */
export type Report = {
  readonly suite: string;
  readonly tables: readonly Table[];
  readonly goals: readonly Goal[];
  /** What a reader must know to read it. */
  readonly notes: readonly string[];
};

export function isMet({ measured, at, bound }: Goal): boolean | null {
  if (measured === null || Number.isNaN(measured)) return null;
  return at === 'most' ? measured <= bound : measured >= bound;
}

/** The value of a row, or null where it is missing or could not run. */
export function valueOf({ rows }: Table, name: string, column: string): number | null {
  return rows.find((row) => row.name === name)?.values?.[column] ?? null;
}

/** How many times the one value is the other. */
export function ratio(of: number | null, to: number | null): number | null {
  return of === null || to === null ? null : of / to;
}
