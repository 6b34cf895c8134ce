/** Reads times as people write them: in UTC by default, with or without a day. */

const DAY_MS = 86_400_000;

/**
 * Reads `2026-11-21T14:31`, `2026-11-21` or `14:31:12` as UTC, unless the text names another zone. A time without a day
 * means the latest such time that is not after `now`. Returns epoch milliseconds; null if the text is not a time.
 */
export function readTime(text: string, now: number): number | null {
  if (/^\d\d:\d\d(:\d\d)?$/.test(text)) {
    const ms = Date.parse(`${new Date(now).toISOString().slice(0, 10)}T${text}Z`);
    return Number.isNaN(ms) ? null : ms - (ms > now ? DAY_MS : 0);
  }
  const hasZone = /[zZ]|[+-]\d\d:?\d\d$/.test(text.slice(10));
  const ms = Date.parse(hasZone ? text : `${text}${text.includes('T') ? '' : 'T00:00'}Z`);
  return Number.isNaN(ms) ? null : ms;
}

/** Returns the time of a filter in the form that the relay reads; null if there is none or the text is not a time. */
export function timeOfFilter(text: string | undefined): string | null {
  const ms = text === undefined ? null : readTime(text, Date.now());
  return ms === null ? null : new Date(ms).toISOString();
}

/** Writes a time to the second, in a form that `readTime` reads: `2026-11-21T14:31:12Z`. */
export const writeTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;
