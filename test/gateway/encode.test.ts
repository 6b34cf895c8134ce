import { expect, test } from 'vitest';
import { encodeTexts } from '../../src/gateway/encode.ts';

/** The messages in the bytes, by the letter of RFC 6455. */
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

test('texts of every length form are read back in order, each as a message', () => {
  const lengths = [0, 1, 125, 126, 127, 65_535, 65_536, 70_000];
  const texts = lengths.map((length) => 'x'.repeat(length));
  expect(read(encodeTexts(texts))).toEqual(texts);
});

test('lengths count bytes, and a lone surrogate is written as the replacement character', () => {
  const texts = ['é'.repeat(63), '\u{1f600}'.repeat(32), '語'.repeat(22_000), `a${'\ud800'}b`];
  expect(read(encodeTexts(texts))).toEqual([...texts.slice(0, 3), 'a\ufffdb']);
});
