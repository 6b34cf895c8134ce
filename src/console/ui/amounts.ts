/**
 * Formats numbers, durations and sizes as text. It does not use `Intl`, because the first use of that takes a browser
 * 40 ms, before anything is shown.
 */

/** Formats a whole number with narrow no-break spaces between thousands: `1 284`. */
export const whole = (value: number): string => value.toFixed(0).replaceAll(/\B(?=(\d{3})+$)/g, '\u202f');

/** Formats a number with two decimals below 10, one below 100 and none above, without trailing zeros: `1.31`. */
export function amount(value: number): string {
  if (Number.isInteger(value) || value >= 100) return whole(value);
  const text = value.toFixed(value < 10 ? 2 : 1);
  return text.replace(/\.?0+$/, '');
}

/** Formats a duration in milliseconds: `84 ms`, `1.31 s`, `30.0 s`, `2 m 41 s`, `3 h 12 m`, `5 d 3 h`. */
export function duration(ms: number): string {
  if (ms < 999.5) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(2)} s`;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  return twoUnits(Math.round(seconds));
}

/** Formats a duration in whole seconds, for texts that change each second: `41 s`, `2 m 41 s`. */
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

/** Formats a number of bytes: `812 B`, `1.2 kB`, `3.4 MB`. */
export function bytes(value: number): string {
  if (value < 1000) return `${value} B`;
  if (value < 999_950) return `${(value / 1000).toFixed(1)} kB`;
  return `${(value / 1e6).toFixed(1)} MB`;
}

/** Formats a fraction as a percentage: `96 %`, `2.5 %`, `0.4 %`. */
export function percent(share: number): string {
  const value = share * 100;
  const text = value === 0 || value >= 10 ? value.toFixed(0) : value.toFixed(1);
  return `${text === '100' && share < 1 ? '99.9' : text} %`;
}
