/** Formats times in the zone that the user has chosen: UTC, or the zone of the browser. */
import { signal } from '@preact/signals';
import { keep, recall } from '../browser-storage.ts';

const ZONE = 'callboard:zone';

/** Whether times are shown in the zone of the browser. The choice is stored in the browser. */
export const isLocalTime = signal(recall('local', ZONE) === 'local');

export function chooseZone(isLocal: boolean): void {
  isLocalTime.value = isLocal;
  keep('local', ZONE, isLocal ? 'local' : null);
}

/** Returns the name of the chosen zone, to be shown after a time. */
export const zoneName = (): string => (isLocalTime.value ? 'local' : 'UTC');

/** Returns a time in the form of a UTC time, but with the digits of the browser's zone. */
function localDigits(iso: string): string {
  const at = new Date(iso);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString();
}

const digitsOf = (iso: string): string => (isLocalTime.value ? localDigits(iso) : iso);

/** Returns the time of day: `14:31:12`. */
export const clock = (iso: string): string => digitsOf(iso).slice(11, 19);

/** Returns the time of day of a time in epoch milliseconds. */
export const clockAt = (ms: number): string => clock(new Date(ms).toISOString());

/** Returns the time of day with milliseconds: `14:31:12.204`. */
export const exactClock = (iso: string): string => digitsOf(iso).slice(11, 23);

/** Returns the day with its month and year: `21 November 2026`. */
export const day = (iso: string): string => dayText(digitsOf(iso));

/** Returns the day with its short month: `21 Nov`. */
export const shortDay = (iso: string): string => day(iso).replace(/(?<= ...).*/, '');

const MONTHS = 'January February March April May June July August September October November December'.split(' ');
const dayText = (digits: string): string =>
  `${Number(digits.slice(8, 10))} ${MONTHS[Number(digits.slice(5, 7)) - 1]} ${digits.slice(0, 4)}`;

/** Whether two times are on the same day of the chosen zone. */
export const isSameDay = (one: string, other: string): boolean =>
  digitsOf(one).slice(0, 10) === digitsOf(other).slice(0, 10);

/** Returns the exact time in UTC and in the browser's zone, each with its day. */
export function bothTimes(iso: string): string {
  const local = localDigits(iso);
  return [`${exactTime(iso)} UTC`, `${exactTime(local)} local`].join('\n');
}

const exactTime = (digits: string): string => `${dayText(digits)}, ${digits.slice(11, 23)}`;
