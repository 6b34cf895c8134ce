/** Parses durations, times and whole numbers in the values of flags. */
import type { Clock } from '../clients/link/platform.ts';
import { usageFailure } from './exit-codes.ts';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Returns the milliseconds of a duration such as `500ms`, `30s`, `2m`, `1h` or `7d`. */
export function readMs(text: string | undefined, preset: number, name: string): number {
  if (text === undefined) return preset;
  const ms = durationOf(text);
  if (ms === null) throw usageFailure(`${name}: expected a duration such as 500ms, 30s, 2m or 1h`);
  return ms;
}

/** Returns a duration as text: `84 ms`, `1.3 s`, `2 m 41 s`, `3 h 12 m`, `5 d 3 h`. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} m ${Math.floor((ms % 60_000) / 1000)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} m` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** Returns a time in ISO 8601, from a time such as `2026-01-31T12:00:00Z` or from an age such as `10m`. */
export function readTime(text: string | undefined, name: string, clock: Clock): string | undefined {
  if (text === undefined) return undefined;
  const age = durationOf(text);
  const at = age === null ? Date.parse(text) : clock.now() - age;
  // Date.parse alone would accept many formats that depend on the engine and on this machine's time zone.
  if (Number.isNaN(at) || (age === null && !/^\d{4}-\d\d-\d\d/.test(text)))
    throw usageFailure(`${name}: expected a time such as 2026-01-31T12:00:00Z, or an age such as 10m`);
  return new Date(at).toISOString();
}

/** Parses a whole number of at least 1. */
export function readCount(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,8}$/.test(text)) throw usageFailure(`${name}: expected a whole number from 1 on`);
  return Number(text);
}

function durationOf(text: string): number | null {
  const [, amount, unit = ''] = /^(\d{1,8})(ms|s|m|h|d)$/.exec(text) ?? [];
  return amount === undefined ? null : Number(amount) * (UNITS[unit] ?? 1);
}
