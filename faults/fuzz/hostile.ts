/** Draws the hostile values of which inputs consist: texts, numbers, ids and JSON. */
import type { Draw } from '../lib/random.ts';

/** The names of the users, clients and commands that exist at the target. Hostile values sometimes match them. */
export const KNOWN = { users: 8, client: 'desk', action: 'echo', command: 'planted', site: 'board' } as const;
const KIB = 1024;

const FIXED: readonly string[] = [
  ...[
    '',
    ' ',
    '.',
    '..',
    '/',
    '\\',
    '%00',
    '%2F..%2F',
    '*',
    '?',
    '#',
    '-1',
    '0',
    'NaN',
    '1e999',
    'null',
    'true',
    '[]',
    '{}',
  ],
  ...[
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    '__cooperative_site_id',
    '__Cooperative_Site_Session_Id',
  ],
  ...['x'.repeat(128), 'x'.repeat(129), 'user-0', 'user-1', 'desk', 'echo', 'planted', 'board'],
  ...['\u0000', '\r\nx: y', '\u2028', '\u202e', '\ufeff', '💥', 'é', 'e\u0301', '\ud800', '\udfff', 'ﬀ', 'İ', 'ß'],
  ...[
    "'; DROP TABLE users",
    '${7*7}',
    '<script>',
    'cbg_',
    'eyJhbGciOiJub25lIn0.e30.',
    '9'.repeat(400),
    '2026-01-01T00:00:00Z',
  ],
];

/**
 * Forms of long texts for which a regular expression or a normalization takes extremely long if its time is not linear.
 */
const GROWING: readonly ((n: number) => string)[] = [
  (n) => `a@${'.'.repeat(n)}@`,
  (n) => `a@${'a.'.repeat(n >> 1)}`,
  (n) => '\u0301\u0327'.repeat(n >> 1),
  (n) => `a${'\u0323\u0307'.repeat(n >> 1)}`,
  (n) => 'x'.repeat(n),
  (n) => ' '.repeat(n) + 'x',
  (n) => '/'.repeat(n),
  (n) => 'a/'.repeat(n >> 1),
  (n) => '\\"'.repeat(n >> 1),
  (n) => '💥'.repeat(n >> 1),
  (n) => '*'.repeat(n),
  (n) => 'a*'.repeat(n >> 1) + 'b',
  (n) => '%2e'.repeat(n >> 2),
  (n) => 'ﬀ'.repeat(n),
];

/**
 * Draws a text that somebody might send instead of an id, a name or another text. It is usually short; one in fifty has
 * up to `max` characters.
 */
export function hostileText(draw: Draw, max = 64 * KIB): string {
  if (draw.chance(0.6)) return draw.pick(FIXED);
  if (draw.chance(0.5)) return randomChars(draw, draw.int(0, 40));
  return draw.pick(GROWING)(draw.size(draw.chance(0.1) ? max : Math.min(max, 300)));
}

function randomChars(draw: Draw, length: number): string {
  let text = '';
  for (let i = 0; i < length; i++)
    text += String.fromCharCode(draw.chance(0.8) ? draw.int(0x20, 0x7e) : draw.int(0, 0xffff));
  return text;
}

/** Draws a text that is usually valid in its field: a known name, or a name that only sometimes exists. */
export function likelyText(draw: Draw, known: string): string {
  if (draw.chance(0.75)) return known;
  return draw.chance(0.5) ? `${known}-${draw.int(0, 99)}` : hostileText(draw);
}

export function someUser(draw: Draw): string {
  return `user-${draw.int(0, KNOWN.users - 1)}`;
}
