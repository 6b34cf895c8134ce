/** Tests the canonical text of JSON, over which digests are computed. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalText, canonicalJson, trustJson } from '../../src/core/json.ts';
const canonical = (text: string): string => canonicalText(trustJson(text));

describe('the canonical text', () => {
  it.each([
    ['1', '1.0', '10e-1', '0.1e1', '1000e-3', '1E0', '1e-0', '0.001E+3', '1.000', '1e00000000000000000000'],
    ['0', '-0', '0.0', '-0e5', '0E400', '0.000e-9', '0e99999999999999999999'],
    ['-12.5', '-125e-1', '-0.125E2', '-12.500'],
    ['1e400', '10e399', '0.1E+401', '1E0400', `1${'0'.repeat(400)}`],
    ['1e99999999999999999999', '10e99999999999999999998', '0.1e100000000000000000000'],
    ['1e-99999999999999999999', '0.1e-99999999999999999998'],
    ['100', '1e2', '1.00E2', '1e+02'],
  ])('is the same for the same number, however it is written: %s', (...spellings) => {
    expect(new Set(spellings.map(canonical)).size).toBe(1);
  });

  it('distinguishes numbers that a double cannot', () => {
    const numbers = [
      '9007199254740992',
      '9007199254740993',
      '1e400',
      '1e401',
      '-1e400',
      '0.1',
      '0.1000000000000000055',
    ];
    expect(new Set(numbers.map(canonical)).size).toBe(numbers.length);
    expect(canonical('1e99999999999999999999').length).toBeLessThan(30);
  });

  it('distinguishes different values', () => {
    const texts = [
      ...[
        '{"a":1}',
        '{"a":"1"}',
        '[1]',
        '{"a":[1]}',
        '{"a":{"b":1}}',
        'null',
        '"null"',
        '""',
        '{}',
        '[]',
        '{"a":null}',
      ],
      ...[
        'true',
        '"true"',
        'false',
        '[[]]',
        '[{}]',
        '{"":1}',
        '["a","b"]',
        '["a,b"]',
        '["b","a"]',
        '"\\ud800"',
        '"\\ud801"',
      ],
      ...['"\ufffd"', '{"a":1,"a":2}', '{"a":2,"a":1}', '{"a":2}', '{"\\u0000":1}', '{"__proto__":1}', '{"10":1}'],
    ];
    expect(new Set(texts.map(canonical)).size).toBe(texts.length);
  });

  it('keeps members with the same name in their order and sorts the others, integers as names', () => {
    expect(canonical('{ "b":1, "a":2, "10":3, "9":4, "a":[ 1.0 ,\n{ } ] }')).toBe(
      '{"10":3,"9":4,"a":2,"a":[1,{}],"b":1}',
    );
    expect(canonical('{"\\u0062":1,"a":"\\/\\u0041\\n"}')).toBe('{"a":"/A\\n","b":1}');
  });

  it('agrees with RFC 8785 for any JSON except numbers', () => {
    const value = fc.jsonValue().map((one) => JSON.stringify(withoutNumbers(one)));
    fc.assert(
      fc.property(value, (text) => {
        expect(canonical(text)).toBe(canonicalJson(JSON.parse(text)));
      }),
      { numRuns: 3000, seed: 9 },
    );
  });

  it('is the same for texts that differ in white space, escapes and the order of names', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.integer()), (value) => {
        const entries = Object.entries(value);
        const escaped = (text: string): string =>
          `"${Array.from({ length: text.length }, (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')}"`;
        const one = `{${entries.map(([name, n]) => `${JSON.stringify(name)}:${n}`).join()}}`;
        const other = `{ ${[...entries]
          .reverse()
          .map(([name, n]) => `${escaped(name)} :\n${n}.0 `)
          .join(' , ')}\t}`;
        expect(canonical(other)).toBe(canonical(one));
      }),
      { numRuns: 2000, seed: 9 },
    );
  });

  it('differs exactly if the values differ', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        const [one, other] = [JSON.stringify(a), JSON.stringify(b)];
        expect(canonical(one) === canonical(other)).toBe(canonicalJson(a) === canonicalJson(b));
      }),
      { numRuns: 3000, seed: 9 },
    );
  });
});

function withoutNumbers(value: unknown): unknown {
  if (typeof value === 'number') return `n${value}`;
  if (Array.isArray(value)) return value.map(withoutNumbers);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withoutNumbers(member)]));
}
