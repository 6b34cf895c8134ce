/** Tests that hidden characters become visible, and that JSON stays JSON of the same value. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { visibleLine, visibleText } from '../../src/protocol/visible-text.ts';

/** The code points that must not be written, one by one from their lists in Unicode. */
const HIDDEN = [
  ...Array.from({ length: 0x20 }, (_, at) => at).filter((at) => at !== 9 && at !== 10),
  ...Array.from({ length: 0x21 }, (_, at) => 0x7f + at),
  ...[0xad, 0x61c, 0x200b, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e],
  ...[0x2060, 0x2061, 0x2066, 0x2067, 0x2068, 0x2069, 0x206f, 0xfeff, 0xfff9, 0x3164, 0xe0001, 0xe007f],
].map((point) => String.fromCodePoint(point));

it.each(HIDDEN)('shows the code of %j', (hidden) => {
  const codes = hidden.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  expect(visibleText(`a${hidden}b`)).toBe(`a${codes}b`);
});

it('leaves every script, emoji and the layout as they are', () => {
  const texts = ['Grüße 東京 שלום مرحبا', 'خانه\u200cها', 'क्‍ष', '👩‍💻 🏳️‍🌈', 'a\tb\n', 'x\u00a0y\u202fz'];
  for (const text of texts) expect(visibleText(text)).toBe(text);
  expect(visibleLine('a\tb\n')).toBe('a\\u0009b\\u000a');
});

it('shows a joiner that joins nothing', () => {
  expect([visibleText('ali\u200dce'), visibleText('\u200calice')]).toEqual(['ali\\u200dce', '\\u200calice']);
});

it('keeps the value of JSON, and is stable', () => {
  const text = fc.string({
    unit: fc.oneof(fc.constantFrom(...HIDDEN, '\\', '"', '\u200d'), fc.string({ unit: 'binary', maxLength: 1 })),
  });
  fc.assert(
    fc.property(fc.array(fc.dictionary(text, text)), (value) => {
      const shown = visibleText(JSON.stringify(value));
      expect(JSON.parse(shown)).toEqual(JSON.parse(JSON.stringify(value)));
      expect(visibleText(shown)).toBe(shown);
      expect(HIDDEN.filter((hidden) => shown.includes(hidden))).toEqual([]);
    }),
  );
});
