/** The ranges of the numeric settings, and the check of these settings for an embedded relay. */
import { refuseInputs, type InputError } from '../core/errors.ts';
import { PING_MS, TERMINAL_RANGE_MS } from '../core/limits.ts';
import { MIB } from './share-settings.ts';

export type NumberRange = { readonly min: number; readonly max: number };

/**
 * The range of each numeric setting, by its path in the settings of an embedded relay. Both ends are included. The
 * units are milliseconds, days, bytes or counts.
 */
export const RANGES = {
  retentionMs: { min: 1000, max: 365 * 24 * 3600_000 },
  idempotencyWindowMs: TERMINAL_RANGE_MS,
  streamMaxMessages: { min: 1, max: 10_000_000 },
  inboundBytesPerSecond: { min: 1024, max: 1024 * 1024 * MIB },
  unauthenticatedSockets: { min: 1, max: 10_000_000 },
  'audit.days': { min: 1, max: 3650 },
  'audit.maxRows': { min: 100, max: 1_000_000 },
  maxBodyBytes: { min: 1024, max: 64 * MIB },
  keepAliveMs: { min: 1000, max: 3600_000 },
  pingMs: { min: 1000, max: PING_MS },
} as const satisfies Readonly<Record<string, NumberRange>>;

type RangedSettings = {
  readonly [Name in keyof typeof RANGES as Name extends `audit.${string}` ? never : Name]?: number | undefined;
} & { readonly audit?: { readonly days?: number; readonly maxRows?: number } | undefined };

/**
 * Checks numeric settings. Throws one `invalid_argument` that names every setting that is not a whole number in its
 * range.
 */
export function checkRanges({ audit, ...settings }: RangedSettings): void {
  const given: Readonly<Record<string, unknown>> = {
    ...settings,
    'audit.days': audit?.days,
    'audit.maxRows': audit?.maxRows,
  };
  const errors = Object.entries(RANGES).flatMap(([parameter, range]): readonly InputError[] =>
    given[parameter] === undefined || isWithin(given[parameter], range)
      ? []
      : [{ parameter, detail: `expected a whole number from ${range.min} to ${range.max}` }],
  );
  refuseInputs(errors, '\n');
}

export function isWithin(value: unknown, { min, max }: NumberRange): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max;
}

export const DAY_MS = 24 * 3600_000;
/** The range of DATA_SYNC, in milliseconds. */
export const DATA_SYNC_RANGE: NumberRange = { min: 1, max: 60_000 };

/** The most proxies that TRUST_PROXY may count. */
export const PROXIES_MAX = 10;
