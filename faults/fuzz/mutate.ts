/** Damages a valid text at random: cuts, repeats and replaces parts of it, and inserts tokens. */
import { hostileText } from './hostile.ts';
import type { Draw } from '../lib/random.ts';

const TOKENS: readonly string[] = [
  ...[
    '{',
    '}',
    '[',
    ']',
    '"',
    ':',
    ',',
    '\n',
    '\r\n',
    '\\',
    '\u0000',
    '(',
    ')',
    '$',
    '@',
    '!',
    '...',
    '#',
    '"""',
    '%',
    '&',
    '=',
    '?',
  ],
  ...[
    'null',
    '-1',
    '1e999',
    '9007199254740993',
    '__proto__',
    '\ud800',
    '\u2028',
    'Transfer-Encoding: chunked\r\n',
    'Content-Length: 5\r\n',
  ],
];

type Change = (draw: Draw, text: string, at: number) => string;

const CHANGES: readonly Change[] = [
  (draw, text, at) => text.slice(0, at) + text.slice(at + draw.size(64)),
  (draw, text, at) => text.slice(0, at) + text.slice(at, at + draw.size(64)).repeat(draw.int(2, 6)) + text.slice(at),
  (draw, text, at) => text.slice(0, at) + draw.pick(TOKENS) + text.slice(at),
  (draw, text, at) => text.slice(0, at) + String.fromCharCode(draw.int(0, 0xff)) + text.slice(at + 1),
  (draw, text, at) => text.slice(0, at) + hostileText(draw, 2_000) + text.slice(at),
  (_, text, at) => text.slice(0, at),
  (_, text, at) => text.slice(at) + text.slice(0, at),
  (draw, text) => text.replace(/\d+/, () => draw.pick(['-1', '0', '99999999999999999999', '1e400', '0x10', ''])),
  (draw, text) => text.replace(/"[^"]*"/, () => JSON.stringify(hostileText(draw, 2_000))),
];

/** Returns the text with one to four parts changed. */
export function mutate(draw: Draw, text: string): string {
  let changed = text;
  for (let left = draw.int(1, 4); left > 0; left--)
    changed = draw.pick(CHANGES)(draw, changed, draw.int(0, changed.length));
  return changed;
}
