/** Tests canonical JSON against the examples of RFC 8785, and the scanner of JSON text. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson, fromJson, toJson, trustJson, utf8Length } from '../../src/core/json.ts';

describe('canonical JSON', () => {
  it('writes the example of RFC 8785, section 3.2.2', () => {
    const text = `{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\"\\/",
      "literals": [null, true, false]
    }`;
    expect(canonicalJson(JSON.parse(text))).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    );
  });

  it('sorts members by UTF-16 code units, as section 3.2.3 shows', () => {
    const value = {
      '\u20ac': 'Euro Sign',
      '\r': 'Carriage Return',
      '\ufb33': 'Hebrew Letter Dalet With Dagesh',
      '1': 'One',
      '\ud83d\ude00': 'Emoji: Grinning Face',
      '\u0080': 'Control',
      '\u00f6': 'Latin Small Letter O With Diaeresis',
    };
    const names = [...canonicalJson(value).matchAll(/:"([^"]*)"/g)].map(([, text]) => text);
    expect(names).toEqual([
      'Carriage Return',
      'One',
      'Control',
      'Latin Small Letter O With Diaeresis',
      'Euro Sign',
      'Emoji: Grinning Face',
      'Hebrew Letter Dalet With Dagesh',
    ]);
  });

  it.each([
    [0, '0'],
    [-0, '0'],
    [5e-324, '5e-324'],
    [-5e-324, '-5e-324'],
    [1.7976931348623157e308, '1.7976931348623157e+308'],
    [9007199254740992, '9007199254740992'],
    [295147905179352830000, '295147905179352830000'],
    [9.999999999999997e22, '9.999999999999997e+22'],
    [1e23, '1e+23'],
    [0.000001, '0.000001'],
    [333333333.3333332, '333333333.3333332'],
  ])('writes the number %d as appendix B does', (value, text) => {
    expect(canonicalJson(value)).toBe(text);
  });

  it('is the same for values that differ only in the order of members', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = canonicalJson(value);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(canonicalJson(reversed(JSON.parse(text)))).toBe(text);
      }),
    );
  });

  it('distinguishes what JSON distinguishes', () => {
    const texts = [{ a: 1 }, { a: '1' }, [1], { a: [1] }, { a: { b: 1 } }, null, '', {}, [], { a: null }].map(
      canonicalJson,
    );
    expect(new Set(texts).size).toBe(texts.length);
  });
});

describe('JSON text', () => {
  it('is null only without a value', () => {
    expect(toJson(undefined)).toBeNull();
    expect(toJson(null)).toBe('null');
    expect(fromJson(null)).toBeNull();
    expect(fromJson(trustJson('{"a":[1,null]}'))).toEqual({ a: [1, null] });
  });

  it('is measured in bytes of UTF-8', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(utf8Length(text)).toBe(Buffer.byteLength(text));
      }),
      { numRuns: 2000 },
    );
    const units = fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 8 });
    fc.assert(
      fc.property(units, (codes) => {
        const text = String.fromCharCode(...codes);
        expect(utf8Length(text)).toBe(Buffer.byteLength(text));
      }),
      { numRuns: 5000 },
    );
    for (const text of ['\ud800', '\udc00', '\ud83d\ude00', 'a\ud800b', '\ud800\ud83d\ude00', '\u07ff\u0800\uffff']) {
      expect(utf8Length(text)).toBe(Buffer.byteLength(text));
    }
  });
});

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, reversed(member)]),
  );
}
