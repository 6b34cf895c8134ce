/** The GraphQL scalar DateTime: prints and parses times. */
import { GraphQLError } from 'graphql';

const RFC_3339 = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/i;
const MAX_EPOCH_MS = 8.64e15;

/**
 * Formats epoch milliseconds as RFC 3339 in UTC with milliseconds. Throws a RangeError for a value that is not a time.
 */
export function printTime(epochMs: number): string {
  if (epochMs >= last.from && epochMs < last.from + HOUR_MS && Number.isInteger(epochMs)) return inHour(epochMs);
  const text = new Date(epochMs).toISOString();
  last = { from: Math.floor(epochMs / HOUR_MS) * HOUR_MS, head: text.slice(0, -'00:00.000Z'.length) };
  return text;
}

const HOUR_MS = 3_600_000;
const MINUTES = numbered(60, 2, ':');
const SECONDS = numbered(60, 2, '.');
const MILLISECONDS = numbered(1_000, 3, 'Z');

/** The text before the minutes, cached: most times of one answer fall into the same hour. */
let last = { from: 0, head: '1970-01-01T00:' };

function inHour(epochMs: number): string {
  const ms = epochMs - last.from;
  const seconds = Math.floor(ms / 1_000);
  const minute = MINUTES[Math.floor(seconds / 60)] ?? '';
  return last.head + minute + (SECONDS[seconds % 60] ?? '') + (MILLISECONDS[ms % 1_000] ?? '');
}

function numbered(count: number, digits: number, end: string): readonly string[] {
  return Array.from({ length: count }, (_, n) => String(n).padStart(digits, '0') + end);
}

/**
 * Parses RFC 3339 with any offset, or epoch milliseconds, to epoch milliseconds. Throws a GraphQLError for anything
 * else.
 */
export function parseTime(value: unknown): number {
  const time = typeof value === 'string' ? parseText(value) : value;
  if (typeof time === 'number' && Number.isInteger(time) && Math.abs(time) <= MAX_EPOCH_MS) return time;
  throw new GraphQLError('Expected an RFC 3339 time or epoch milliseconds.');
}

function parseText(text: string): number {
  const [, year, month, day] = RFC_3339.exec(text) ?? [];
  if (year === undefined) return Number.NaN;
  // Date.parse accepts a day that the month does not have, and moves it into the next month.
  const inMonth = Number(day) <= new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  return inMonth ? Date.parse(text) : Number.NaN;
}
