/** Formats enum values, ids, names and counts as text. */
import type { DisconnectCause, HeartbeatIndicator, WaitStage } from '../../../generated/console.ts';
import { whole } from './amounts.ts';

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

/** Writes `admin:ada` as `administrator ada`, and `user:alice` as `user alice`. */
export const personText = (subject: string): string =>
  subject.replace(/^(?:admin|user):/, (kind) => (kind === 'admin:' ? 'administrator ' : 'user '));

/** Returns an ellipsis and the last eight characters of an id; a short id is returned whole. */
export const shortId = (id: string): string => (id.length <= 10 ? id : `…${id.slice(-8)}`);

/** Returns the id that a person typed or pasted, without the ellipsis that tables show before a shortened id. */
export const givenId = (text: string): string => text.trim().replace(/^(…|\.\.\.)/, '');

/** Matches a command id as the relay or the caller library creates it, and a trace id. */
const WHOLE_ID = /^(c-)?([\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}|[\da-f]{32})$/i;

/** Whether a text has the form of a whole command id or trace id. */
const isWholeId = (text: string): boolean => WHOLE_ID.test(text);

/** Whether a text can only be a command id, the last eight characters of one, or a trace id. */
export function isCommandId(text: string): boolean {
  const given = givenId(text);
  return isWholeId(given) || /^[\da-f]{8}$/i.test(given);
}

/** The maximum length of a name that stays on one line of a table, in characters. */
const ONE_LINE = 28;

/**
 * Returns the CSS class of a name in a table. A long name takes several lines, because a cut name could look like
 * another one.
 */
export const nameClass = (...names: readonly string[]): string | undefined =>
  names.join(' / ').length > ONE_LINE ? 'long' : undefined;

/** Formats a count with its noun: `1 client`, `2 clients`. */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${whole(count)} ${count === 1 ? one : many}`;
