/** Defines the flags that several verbs of the command line have. */
import type { Flag } from '../verb.ts';

export const USER_FLAG = { userId: 'Only this user' };
export const CLIENT_FLAGS = { ...USER_FLAG, clientId: 'Only this client' };
/** The flags of verbs that list rows in pages. */
export const PAGE_FLAGS: Readonly<Record<string, Flag>> = {
  limit: 'Most rows of a page, 1 to 1000 (default 100)',
  cursor: 'Where the page begins: next_cursor of the page before',
  all: { help: 'All pages, one after the other', on: true },
};
export const TIME_FLAGS = {
  since: 'Only later than this: a time such as 2026-01-31T12:00:00Z, or an age such as 10m',
  until: 'Only earlier than this: a time or an age',
};
/** The flag of verbs that print events until they are interrupted. */
export const COUNT_FLAG = { count: 'End after this many lines' };
/** The flag of verbs that ask for confirmation before they act. */
export const YES_FLAG: Readonly<Record<string, Flag>> = {
  yes: { help: 'Do not ask; required if the input is not a terminal', on: true },
};
