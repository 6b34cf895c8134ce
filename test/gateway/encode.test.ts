/** Tests that the WebSocket frames that the relay encodes itself follow RFC 6455. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeFrames } from '../../src/gateway/socket.ts';

/** Parses the bytes into messages, strictly by RFC 6455. */
function read(bytes: Buffer): string[] {
  const texts: string[] = [];
  for (let at = 0; at < bytes.length;) {
    expect(bytes[at]).toBe(0x81);
    const short = bytes.readUInt8(at + 1);
    const [head, length] =
      short < 126
        ? [2, short]
        : short === 126
          ? [4, bytes.readUInt16BE(at + 2)]
          : [10, Number(bytes.readBigUInt64BE(at + 2))];
    texts.push(bytes.toString('utf8', at + head, at + head + length));
    at += head + length;
  }
  return texts;
}

const LENGTHS = [0, 1, 125, 126, 127, 65_535, 65_536, 70_000];

test('texts of every length form are read back in order, each as a message', () => {
  const texts = LENGTHS.map((length) => 'x'.repeat(length));
  expect(read(encodeFrames(texts))).toEqual(texts);
});

test('lengths count bytes, and a lone surrogate is written as the replacement character', () => {
  const texts = ['é'.repeat(63), '\u{1f600}'.repeat(32), '語'.repeat(22_000), `a${'\ud800'}b`];
  expect(read(encodeFrames(texts))).toEqual([...texts.slice(0, 3), 'a\ufffdb']);
});

test('a payload follows its header after a line break, and counts in the length of the message', () => {
  for (const length of LENGTHS) {
    const payload = 'y'.repeat(length);
    expect(read(encodeFrames([`head\n${payload}`, 'next']))).toEqual([`head\n${payload}`, 'next']);
  }
});

test('the buffer holds nothing but the messages', () => {
  expect(encodeFrames(['abc\nde']).length).toBe(2 + 6);
  expect(encodeFrames(['é\nde']).length).toBe(2 + 5);
});

test('any texts, with and without characters beyond ASCII in any place, are read back', () => {
  const unit = fc.constantFrom('a', '"', 'é', '語', '\u{1f600}');
  const text = fc.oneof(fc.string({ unit, maxLength: 6 }), fc.string({ unit: fc.constant('a'), maxLength: 130 }));
  fc.assert(
    fc.property(fc.array(fc.tuple(text, fc.option(text)), { minLength: 1, maxLength: 5 }), (frames) => {
      const joined = frames.map(([header, payload]) => (payload === null ? header : `${header}\n${payload}`));
      expect(read(encodeFrames(joined))).toEqual(joined);
    }),
    { numRuns: 2_000 },
  );
});
