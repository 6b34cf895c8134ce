/** Defines the results of one growth axis (costs by size), and creates its table, its goals and its plot. */
import type { Plot } from '../lib/plot.ts';
import { valueOf, type Goal, type Row, type Table } from '../lib/report.ts';
import type { Results } from '../lib/rounds.ts';

/** The factor by which the cost of a page may grow from the smallest to the largest size. */
export const BY_PAGE = 1.5;

/** The suffix of the keys of costs in Redis. The key without the suffix is that of the same cost in the relay. */
const OF_REDIS = '.redis';

/**
 * One cost. `bound`: the factor by which it may grow from the first to the last size; null if there is no goal for it.
 */
export type Curve = {
  readonly key: string;
  readonly label: string;
  readonly bound: number | null;
  /** The allowed growth between other sizes. */
  readonly steps?: readonly Step[] | undefined;
};

/** The factor by which a cost may grow from one size to another. */
export type Step = { readonly from: number; readonly to: number; readonly bound: number };

/** One measured axis, whose rows are sizes. `file`: the file name of its plot. */
export type Axis = {
  readonly file: string;
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly xKind: Plot['xKind'];
  readonly yKind: Plot['yKind'];
  readonly sizes: readonly number[];
  readonly curves: readonly Curve[];
  readonly rows: readonly Row[];
  /** Columns that are only in the table, because they are not costs, for example a rate. */
  readonly beside?: readonly Omit<Curve, 'bound'>[];
};

/** Returns the rows of an axis, from the measurements by the name of the size. */
export function rowsOf(sizes: readonly number[], results: Results): Row[] {
  return sizes.map((size) => results.row({ name: nameOf(size), kind: 'own' }));
}

export function nameOf(size: number): string {
  return size.toLocaleString('en-US');
}

export function tableOf({ title, xLabel, yLabel, curves, rows, beside = [] }: Axis): Table {
  const costs = curves.map(({ key, label }) => ({ key, label }));
  const more = beside.map(({ key, label }) => ({ key, label, more: true }));
  const by = curves[0]?.key ?? '';
  return { title: `${title} (${yLabel}, by ${xLabel})`, columns: [...costs, ...more], rows, by };
}

/**
 * Returns the goals of all curves with their results: the cost at the last size as a multiple of that at the first, and
 * the steps between measured sizes.
 */
export function goalsOf(axis: Axis): Goal[] {
  const [first, last] = [axis.sizes[0] ?? 0, axis.sizes.at(-1) ?? 0];
  return axis.curves.flatMap(({ key, label, bound, steps = [] }) => {
    const whole = bound === null ? [] : [{ from: first, to: last, bound }];
    const inner = steps.filter(({ from, to }) => axis.sizes.includes(from) && axis.sizes.includes(to));
    return [...whole, ...inner].map((step): Goal => {
      const text = `${axis.file}, ${label}: ${nameOf(step.to)} to ${nameOf(step.from)}`;
      return { text, measured: growthOf(axis, key, step), at: 'most', bound: step.bound };
    });
  });
}

function growthOf(axis: Axis, key: string, { from, to }: Pick<Step, 'from' | 'to'>): number | null {
  const table = tableOf(axis);
  const [before, after] = [from, to].map((size) => valueOf(table, nameOf(size), key));
  return typeof before === 'number' && typeof after === 'number' && to > from ? after / before : null;
}

export function plotOf({ title, xLabel, yLabel, xKind, yKind, sizes, curves, rows }: Axis): Plot {
  const lines = curves.map(({ key, label }) => {
    const points = sizes.map((size, i): readonly [number, number] => [size, rows[i]?.values?.[key] ?? NaN]);
    const ink = curves.findIndex((curve) => curve.key === key.replace(OF_REDIS, ''));
    return { name: label, points, dashed: key.endsWith(OF_REDIS), ink };
  });
  return { title, xLabel, yLabel, xKind, yKind, lines };
}
