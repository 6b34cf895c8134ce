/** Packs times into small integers, because V8 stores larger numbers as separate objects. */

/** The first finite time that was packed, in epoch milliseconds. Packed times are relative to it. */
let origin: number | null = null;

/**
 * Returns the value, as a small integer if possible. Differences of times are small; times in epoch milliseconds are
 * not, and V8 stores such numbers as separate objects.
 */
export function smallInteger(value: number): number {
  const whole = value | 0;
  return whole === value ? whole : value;
}

/**
 * Packs a time in epoch milliseconds. A time within three weeks of the first packed time then needs no separate object.
 */
export function packTime(at: number): number {
  if (origin === null && Number.isFinite(at)) origin = at;
  return smallInteger(at - (origin ?? 0));
}

/** Returns the exact time that `packTime` packed, in epoch milliseconds. */
export function unpackTime(packed: number): number {
  return (origin ?? 0) + packed;
}
