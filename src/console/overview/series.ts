/** Turns the time series of the relay into what the plots of the overview show. */
import type { OverviewSeriesQuery } from '../../generated/console.ts';
import type { PlotTime } from '../plot/plot.tsx';
import type { TimeSpan } from '../plot/span.ts';

export type SeriesItem = OverviewSeriesQuery['series']['items'][number];
export type Points = readonly (number | null)[];

export const SERIES_NAMES = [
  ...['commands_ended', 'commands_admitted', 'command_p50', 'command_p99', 'dispatch_p99'],
  ...['oldest_wait_seconds', 'commands_queued', 'commands_in_flight', 'client_links'],
];

/**
 * Returns the part of each series that lies in the span. It includes the steps that lie in the span only partly. Series
 * without a step in the span are left out.
 */
export function within(items: readonly SeriesItem[], { from, to }: TimeSpan): readonly SeriesItem[] {
  return items.flatMap((item) => {
    const [start, stepMs] = [Date.parse(item.from), item.stepSeconds * 1000];
    const first = Math.max(0, Math.floor((from - start) / stepMs));
    const points = item.points.slice(first, Math.max(first, Math.ceil((to - start) / stepMs)));
    return points.length === 0 ? [] : [{ ...item, from: new Date(start + first * stepMs).toISOString(), points }];
  });
}

/** Returns the time range of the series; null if there are no series. */
export function timeOf(items: readonly SeriesItem[]): PlotTime | null {
  const [first] = items;
  if (!first) return null;
  return { from: Date.parse(first.from), stepMs: first.stepSeconds * 1000, slots: first.points.length };
}

/** Returns the points of one series. All of them are null if there is no such series. */
export function pointsOf(items: readonly SeriesItem[], name: string, label: string | null = null): Points {
  const found = items.find((item) => item.name === name && (label === null || item.label === label));
  return found?.points ?? items[0]?.points.map(() => null) ?? [];
}

/**
 * Returns the sums of the points of a series over all its labels. A sum is null where the series `commands_admitted`
 * has no value.
 */
export function totalOf(items: readonly SeriesItem[], name: string): Points {
  const lines = items.filter((item) => item.name === name);
  const known = items.find((item) => item.name === 'commands_admitted')?.points ?? [];
  return known.map((value, i) => (value === null ? null : sumOf(lines.map(({ points }) => points[i] ?? 0))));
}

/** Converts counts per step to counts per minute. */
export function perMinute(points: Points, time: PlotTime): Points {
  return points.map((value) => (value === null ? null : (value * 60_000) / time.stepMs));
}

export function sumOf(points: Points): number {
  return points.reduce((sum: number, value) => sum + (value ?? 0), 0);
}

/** Returns the latest known value; null if none is known. */
export function lastOf(points: Points): number | null {
  return points.findLast((value) => value !== null) ?? null;
}

export type Most = { readonly value: number; readonly at: number };

/** Returns the largest known value and its index; null if none is above 0. */
export function mostOf(points: Points): Most | null {
  let most: Most | null = null;
  points.forEach((value, at) => {
    if (value !== null && value > (most?.value ?? 0)) most = { value, at };
  });
  return most;
}
