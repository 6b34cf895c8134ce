/** Writes a number of a setting or limit with its unit, as the documentation shows it. */

const UNITS = {
  ms: [
    [24 * 3600_000, 'd'],
    [3600_000, 'h'],
    [60_000, 'min'],
    [1000, 's'],
  ],
  bytes: [
    [1024 * 1024 * 1024, 'GiB'],
    [1024 * 1024, 'MiB'],
    [1024, 'KiB'],
  ],
} as const;

/**
 * Writes a number with the largest unit that gives a whole number, such as `16 KiB`. The unit of the number is in the
 * setting's name: `_MS`, `_SECONDS`, `BYTES`.
 */
export function amount(name: string, value: number): string {
  if (/_SECONDS$/.test(name)) return inUnits(value * 1000, UNITS.ms, 'ms');
  if (/_MS$/.test(name)) return inUnits(value, UNITS.ms, 'ms');
  if (/BYTES/.test(name)) return inUnits(value, UNITS.bytes, 'bytes');
  return grouped(value);
}

function inUnits(value: number, units: readonly (readonly [number, string])[], smallest: string): string {
  const unit = value === 0 ? undefined : units.find(([size]) => value % size === 0);
  return unit ? `${grouped(value / unit[0])} ${unit[1]}` : `${grouped(value)} ${smallest}`;
}

function grouped(value: number): string {
  return value < 10_000 ? String(value) : String(value).replaceAll(/\B(?=(\d{3})+$)/g, ' ');
}
