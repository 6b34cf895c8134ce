/** The range of each numeric setting, for the command line and for embedded relays alike. */
import { CallboardError, type InputError } from './core/errors.ts';
import { TERMINAL_RANGE_MS } from './core/limits.ts';

const MIB = 1024 * 1024;

export type Range = { readonly min: number; readonly max: number };

/** The range of each numeric setting, both ends included. The numbers are milliseconds, bytes or counts. */
export const RANGES = {
  retentionMs: { min: 1000, max: 365 * 24 * 3600_000 },
  idempotencyWindowMs: TERMINAL_RANGE_MS,
  streamMaxMessages: { min: 1, max: 10_000_000 },
  inboundBytesPerSecond: { min: 1024, max: 1024 * 1024 * MIB },
  unauthenticatedSockets: { min: 1, max: 10_000_000 },
  auditDays: { min: 1, max: 3650 },
  auditMaxRows: { min: 100, max: 1_000_000 },
  maxBodyBytes: { min: 1024, max: 64 * MIB },
} as const satisfies Readonly<Record<string, Range>>;

export type RangedSettings = { readonly [Name in keyof typeof RANGES]?: number | undefined };

/** Checks numeric settings. Throws `invalid_argument`, naming every number that is not a whole number in its range. */
export function checkRanges(settings: RangedSettings): void {
  const given: Readonly<Record<string, unknown>> = { ...settings };
  const errors = Object.entries(RANGES).flatMap(([parameter, range]): readonly InputError[] =>
    given[parameter] === undefined || isWithin(given[parameter], range)
      ? []
      : [{ parameter, detail: `expected a whole number from ${range.min} to ${range.max}` }],
  );
  if (errors.length === 0) return;
  const lines = errors.map(({ parameter, detail }) => `${parameter}: ${detail}`);
  throw new CallboardError('invalid_argument', lines.join('\n'), { errors });
}

function isWithin(value: unknown, { min, max }: Range): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max;
}
