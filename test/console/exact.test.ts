/** Tests that the value of a form keeps each digit and each text of the arguments. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { formNumberOf, formValueOf, nearestOf, numberTextOf, textOfForm } from '../../src/console/form/exact.ts';

const MARKED = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('\0', '\0\0', '\u00001', '\0\u00001e400'));
const DIGITS = fc.stringMatching(/^-?(0|[1-9]\d{0,40})(\.\d{1,30})?([eE][+-]?\d{1,4})?$/);

it('keeps every text, also as the name of a member', () => {
  fc.assert(
    fc.property(fc.dictionary(MARKED, MARKED), (value) => {
      const text = JSON.stringify(value);
      expect(JSON.parse(textOfForm(formValueOf(text)))).toEqual(JSON.parse(text));
    }),
  );
});

it('keeps every number as it was typed', () => {
  fc.assert(
    fc.property(DIGITS, (digits) => {
      expect(textOfForm(formValueOf(digits))).toBe(digits);
      expect(textOfForm(formNumberOf(digits))).toBe(digits);
      expect(numberTextOf(formNumberOf(digits))).toBe(digits);
      expect(nearestOf(formNumberOf(digits))).toBe(Number(digits));
    }),
  );
});

it('keeps what is no number of JSON as text', () => {
  for (const text of ['0x10', '.5', '1.', '+3', ' 4', '1_000', 'Infinity', '01', '1e', 'two'])
    expect(formNumberOf(text)).toBe(text);
});

it('reads only JSON', () => {
  expect(() => formValueOf('{"a":01}')).toThrow(SyntaxError);
});
