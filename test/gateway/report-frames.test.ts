import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseUp } from '../../src/protocol/frames.ts';

/** The same JSON, but no longer written as the frames that come for each command are: it is read as any header. */
function spaced(text: string): string {
  return text.replace('{', '{ ');
}

test('the frequent frames of each command are read alike with a space and without', () => {
  const id = fc.oneof(
    fc.stringMatching(/^[A-Za-z0-9_.:@~-]{1,128}$/),
    fc.string({ maxLength: 4 }),
    fc.stringMatching(/^[a-z]{127,130}$/),
  );
  const type = fc.constantFrom('ack', 'result', 'error', 'cancelled');
  const more = fc.constantFrom('', ' ', ',"code":"x"', ',"command_id":"other"', ',"command_id":null', '"', '}', ',');
  const rest = fc.constantFrom('', '\n', '\n{}', '\n"a\nb"', ' ', '}', '{', '\r\n1', '\u0000');
  fc.assert(
    fc.property(type, id, fc.boolean(), more, rest, (word, text, written, extra, tail) => {
      const value = written ? JSON.stringify(text) : `"${text}"`;
      const frame = `{"type":"${word}","command_id":${value}${extra}}${tail}`;
      expect(parseUp(frame)).toEqual(parseUp(spaced(frame)));
    }),
    { numRuns: 3_000 },
  );
});
