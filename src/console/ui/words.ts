/**
 * Writes values as text: the words for enums that are not states of commands, numbers, durations, times and ids. Also
 * makes hidden characters visible in every text that the console draws.
 */
import { signal } from '@preact/signals';
import { options, type VNode } from 'preact';
import type { DisconnectCause, HeartbeatIndicator, WaitStage } from '../../../generated/console.ts';
import { visibleText } from '../../protocol/visible-text.ts';
import { keep, recall } from '../session.ts';

export const CAUSE: Readonly<Record<DisconnectCause, string>> = {
  BACK_PRESSURE: 'it read too slowly',
  CLIENT_CLOSED: 'the client closed it',
  ERROR: 'its socket failed',
  HEARTBEAT_LOST: 'the client stopped answering',
  LOST: 'its socket ended without a close',
  NODE_DRAINED: 'its node was drained',
  NODE_LOST: 'its node was lost',
  OPERATOR: 'an operator closed it',
  PROTOCOL_ERROR: 'the client broke the protocol',
  REPLACED: 'another instance took its place',
  RESET: 'its socket was reset',
  TOKEN_EXPIRED: 'its token expired',
};

export const HEARTBEAT: Readonly<Record<HeartbeatIndicator, string>> = {
  OK: 'Answers in time',
  LATE: 'Answers late',
  MISSED: 'Does not answer',
};

export const WAIT_FOR: Readonly<Record<WaitStage, string>> = {
  ADMITTED: 'admission',
  ACKNOWLEDGED: 'receipt by the client',
  COMPLETED: 'the end',
};

/** Writes `OUTCOME_UNKNOWN` as `outcome unknown`. */
export const plainWord = (name: string): string => name.toLowerCase().replaceAll('_', ' ');

/** Writes `USER_OWNED` as `User owned`. */
export const capitalWord = (name: string): string => sentenceCase(plainWord(name));

/** Returns the text with a capital at its beginning. */
export const sentenceCase = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

// Writes numbers, durations, sizes, times and ids as text.

// Numbers and days are written without `Intl`: its first format takes a browser 40 ms, before anything is shown.

/** Returns a whole number with narrow no-break spaces between thousands: `1 284`. */
export const whole = (value: number): string => value.toFixed(0).replaceAll(/\B(?=(\d{3})+$)/g, '\u202f');

/** Returns a number with two decimals below 10, one below 100 and none above, without zeros at its end: `1.31`. */
export function amount(value: number): string {
  if (Number.isInteger(value) || value >= 100) return whole(value);
  const text = value.toFixed(value < 10 ? 2 : 1);
  return text.replace(/\.?0+$/, '');
}

/** Returns a duration in milliseconds as text: `84 ms`, `1.31 s`, `30.0 s`, `2 m 41 s`, `3 h 12 m`, `5 d 3 h`. */
export function duration(ms: number): string {
  if (ms < 999.5) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(2)} s`;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  return twoUnits(Math.round(seconds));
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

// Writes times in the zone that the user has chosen: UTC, or the zone of the browser.

const ZONE = 'callboard:zone';

/** Whether times are shown in the zone of the browser. The browser stores the choice. */
export const isLocalTime = signal(recall('local', ZONE) === 'local');

export function chooseZone(isLocal: boolean): void {
  isLocalTime.value = isLocal;
  keep('local', ZONE, isLocal ? 'local' : null);
}

/** Returns the name of the chosen zone, as it follows a time. */
export const zoneName = (): string => (isLocalTime.value ? 'local' : 'UTC');

/** Returns a time in the form of a time in UTC, with the digits of the zone of the browser. */
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

/** Whether two times are of the same day. */
export const isSameDay = (one: string, other: string): boolean =>
  digitsOf(one).slice(0, 10) === digitsOf(other).slice(0, 10);

/** Returns the exact time in both zones, each with its day. */
export function bothTimes(iso: string): string {
  const local = localDigits(iso);
  return [`${exactTime(iso)} UTC`, `${exactTime(local)} local`].join('\n');
}

const exactTime = (digits: string): string => `${dayText(digits)}, ${digits.slice(11, 23)}`;

/** Returns the last eight characters of an id after an ellipsis, or a short id whole. */
export const shortId = (id: string): string => (id.length <= 10 ? id : `…${id.slice(-8)}`);

/** Returns an id as a person gives it, without the ellipsis with which tables begin a short one. */
export const givenId = (text: string): string => text.trim().replace(/^(…|\.\.\.)/, '');

/** An id of a command as the relay or the caller library makes it, or a trace id. */
const WHOLE_ID = /^(c-)?([\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}|[\da-f]{32})$/i;

/** Whether a text has the form of a whole id of a command. */
export const isWholeId = (text: string): boolean => WHOLE_ID.test(text);

/** Whether a text can only be an id of a command, the last eight characters of one, or a trace id. */
export function isCommandId(text: string): boolean {
  const given = givenId(text);
  return isWholeId(given) || /^[\da-f]{8}$/i.test(given);
}

/** The length up to which a name stays on one line of a table, in characters. */
const ONE_LINE = 28;

/** Returns the class of a name in a table. A long one takes several lines, as a cut one could look like another. */
export const nameClass = (...names: readonly string[]): string | undefined =>
  names.join(' / ').length > ONE_LINE ? 'long' : undefined;

/** Returns a count with its noun: `1 client`, `2 clients`. */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${whole(count)} ${count === 1 ? one : many}`;

// Makes hidden characters visible in every text that the console draws. Names, labels, summaries and ids come from
// clients; a text with an override of its direction could pass for another one.

/** The attributes whose text a person sees or hears. The values of fields stay exact, because they are sent again. */
const READ_ATTRIBUTES = ['title', 'aria-label', 'alt', 'placeholder', 'label'];

/** Makes Preact call `visibleText` for each text before it is drawn. Call it once, before the first page is drawn. */
export function showHiddenCharacters(): void {
  const next = options.vnode;
  options.vnode = (node) => {
    makeVisible(node);
    next?.(node);
  };
}

function makeVisible(node: VNode): void {
  const { type, props } = node;
  // A node of text has no type, and its text is in the place of its props.
  if (type === null && typeof props === 'string') Reflect.set(node, 'props', visibleText(props));
  if (typeof type !== 'string') return;
  for (const name of READ_ATTRIBUTES) {
    const text: unknown = Reflect.get(props, name);
    if (typeof text === 'string') Reflect.set(props, name, visibleText(text));
  }
}
