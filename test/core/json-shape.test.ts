/** Tests reading the members of a JSON text without parsing the payloads in it. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { inOneLine, ownSlice, RawJson, trustJson, writeJson, readShaped, type Shape } from '../../src/core/json.ts';
const raw = (text: string): RawJson => new RawJson(trustJson(text));
const read = (text: string, shape: Shape, most = 1000): unknown => {
  const built = readShaped(trustJson(text), shape, most);
  return typeof built === 'string' ? undefined : built.value;
};
const members = (entries: Record<string, Shape>, others: 'plain' | 'skipped' = 'plain'): Shape => ({
  members: new Map(Object.entries(entries)),
  others,
});

describe('the value built from a JSON text', () => {
  it('equals that of JSON.parse if all of it is plain', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(read(text, 'plain')).toEqual(JSON.parse(text));
        expect(read(text, { item: 'plain' })).toEqual(JSON.parse(text));
      }),
      { numRuns: 2000, seed: 9 },
    );
  });

  it('keeps the text of every part that the shape marks as text', () => {
    const shape = members({ input: members({ params: 'text', list: { item: members({ payload: 'text' }) } }) });
    const text =
      '{ "input" : {"params": {"9":1.0, "a":1e400 } ,"list":[{"payload":[ -0 ]},{"payload":null},{"n":1}], "n":1}, "x":[1]}';
    expect(read(text, shape)).toEqual({
      input: {
        params: raw('{"9":1.0, "a":1e400 }'),
        list: [{ payload: raw('[ -0 ]') }, { payload: null }, { n: 1 }],
        n: 1,
      },
      x: [1],
    });
  });

  it('treats a single value as a list of one item, and a value that is not an object as plain', () => {
    expect(read('{"p":1.0}', { item: members({ p: 'text' }) })).toEqual({ p: raw('1.0') });
    expect(read('[1]', members({ p: 'text' }))).toEqual([1]);
    expect(read('"x"', members({ p: 'text' }))).toBe('x');
  });

  it('uses the last of repeated members, and treats __proto__ as an ordinary name', () => {
    const built = read('{"a":1,"__proto__":{"x":1},"a":2}', members({ a: 'text' }));
    expect(Object.keys(Object(built))).toEqual(['a', '__proto__']);
    expect(Object.getPrototypeOf(built)).toBe(Object.prototype);
    expect(built).toHaveProperty('a', raw('2'));
  });

  it('builds nothing of skipped parts, and stops before it builds too much', () => {
    const many = (count: number): string => `{${Array.from({ length: count }, (_, i) => `"k${i}":1`).join()}}`;
    expect(read(many(5000), members({ k7: 'plain' }, 'skipped'), 10)).toEqual({ k7: 1 });
    expect(read(`{"t":${many(5000)}}`, members({ t: 'text' }), 10)).toEqual({ t: raw(many(5000)) });
    expect(read(many(10), members({}), 10)).toEqual(JSON.parse(many(10)));
    for (const over of [many(11), `{"a":[${'1,'.repeat(20)}1]}`, `{"a":{"b":${many(20)}}}`])
      expect(readShaped(trustJson(over), members({}), 10)).toBe('members');
    expect(readShaped(trustJson(`[${'1,'.repeat(20)}1]`), { item: 'text' }, 10)).toBe('members');
  });
});

describe('writing JSON', () => {
  it('equals that of JSON.stringify, with each raw text in its place', () => {
    fc.assert(
      fc.property(fc.anything({ withDate: true, withNullPrototype: true }), (value) => {
        expect(writeJson(value)).toBe(JSON.stringify(value));
      }),
      { numRuns: 3000, seed: 9 },
    );
    expect(writeJson({ a: [raw('1.0'), undefined], b: undefined, c: raw('{ "9":1e400 }') })).toBe(
      '{"a":[1.0,null],"c":{ "9":1e400 }}',
    );
  });

  it('folds line breaks between tokens and changes nothing else', () => {
    expect(inOneLine('{"a":\r\n 1,\n\n"b":"\\n"}')).toBe('{"a":  1, "b":"\\n"}');
  });
});

it('a short part of a long text does not keep the whole text in memory', () => {
  const part = ownSlice(`"${'x'.repeat(100_000)}"`, 10, 30);
  expect(part).toBe('x'.repeat(20));
  expect(ownSlice('abc', 1, 2)).toBe('b');
});
