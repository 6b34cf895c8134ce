import { GraphQLError } from 'graphql';

const RFC_3339 = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/i;
const MAX_EPOCH_MS = 8.64e15;

/** Epoch milliseconds as RFC 3339 in UTC with milliseconds. */
export function printTime(epochMs: number): string {
  if (epochMs === last.epochMs) return last.text;
  const text = new Date(epochMs).toISOString();
  last = { epochMs, text };
  return text;
}

/** Rows of one answer are often of one moment. */
let last = { epochMs: 0, text: '1970-01-01T00:00:00.000Z' };

/** Takes RFC 3339 with any offset, or epoch milliseconds; answers epoch milliseconds. Throws a GraphQLError on anything else. */
export function parseTime(value: unknown): number {
  const time = typeof value === 'string' ? parseText(value) : value;
  if (typeof time === 'number' && Number.isInteger(time) && Math.abs(time) <= MAX_EPOCH_MS) return time;
  throw new GraphQLError('Expected an RFC 3339 time or epoch milliseconds.');
}

function parseText(text: string): number {
  const [, year, month, day] = RFC_3339.exec(text) ?? [];
  if (year === undefined) return Number.NaN;
  // Date.parse moves a day that its month lacks into the next month.
  const inMonth = Number(day) <= new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  return inMonth ? Date.parse(text) : Number.NaN;
}
