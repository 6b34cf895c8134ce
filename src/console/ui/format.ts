/** Writes numbers, durations, sizes, times and ids as text. */

const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

/** Returns a whole number with narrow no-break spaces between thousands: `1 284`. */
export function whole(value: number): string {
  return WHOLE.format(value).replaceAll(',', '\u202f');
}

/** Returns a number with at most three significant digits: `84`, `1.31`, `62.4`, `3 734`. */
export function amount(value: number): string {
  if (Number.isInteger(value) || value >= 100) return whole(value);
  return trimZeros(value.toFixed(value < 10 ? 2 : 1));
}

function trimZeros(text: string): string {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** A figure and its unit. */
export type Measure = { readonly figure: string; readonly unit: string };

/** Returns a duration in milliseconds as text: `84 ms`, `1.31 s`, `30.0 s`, `2 m 41 s`, `3 h 12 m`, `5 d 3 h`. */
export function duration(ms: number): string {
  const { figure, unit } = durationParts(ms);
  return unit === '' ? figure : `${figure} ${unit}`;
}

/**
 * Returns a duration as `duration` writes it, with the unit apart. A duration of two units is one figure without a
 * unit.
 */
export function durationParts(ms: number): Measure {
  if (ms < 999.5) return { figure: String(Math.max(0, Math.round(ms))), unit: 'ms' };
  const seconds = ms / 1000;
  if (seconds < 10) return { figure: seconds.toFixed(2), unit: 's' };
  if (seconds < 59.95) return { figure: seconds.toFixed(1), unit: 's' };
  return { figure: twoUnits(Math.round(seconds)), unit: '' };
}

/** Returns a duration in whole seconds, for texts that change each second: `41 s`, `2 m 41 s`. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  return seconds < 60 ? `${seconds} s` : twoUnits(seconds);
}

function twoUnits(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} m ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} m`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** Returns a number of bytes as text: `812 B`, `1.2 kB`, `3.4 MB`. */
export function bytes(value: number): string {
  if (value < 1000) return `${value} B`;
  if (value < 999_950) return `${(value / 1000).toFixed(1)} kB`;
  return `${(value / 1e6).toFixed(1)} MB`;
}

/** Returns a fraction as a percentage: `96 %`, `2.5 %`, `0.4 %`. */
export function percent(share: number): string {
  const value = share * 100;
  const text = value === 0 || value >= 10 ? value.toFixed(0) : value.toFixed(1);
  return `${text === '100' && share < 1 ? '99.9' : text} %`;
}

/** Returns the time of day in UTC: `14:31:12`. */
export function clock(iso: string): string {
  return iso.slice(11, 19);
}

/** Returns the time of day in UTC with milliseconds: `14:31:12.204`. */
export function exactClock(iso: string): string {
  return iso.slice(11, 23);
}

/** Returns the day with its month and year: `21 November 2026`. */
export function day(iso: string): string {
  return new Date(iso).toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' });
}

/** Returns the day with its short month: `21 Nov`. */
export function shortDay(iso: string): string {
  return new Date(iso).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });
}

/** Returns the last eight characters of an id after an ellipsis, or a short id whole. */
export function shortId(id: string): string {
  return id.length <= 10 ? id : `…${id.slice(-8)}`;
}

/** Returns a count with its noun: `1 client`, `2 clients`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${whole(count)} ${count === 1 ? one : many}`;
}
