/** Tests serializing values that hold JSON text. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RawJson, trustJson, writeJson } from '../../src/core/json.ts';

const raw = (text: string): RawJson => new RawJson(trustJson(text));

describe('writeJson', () => {
  it('writes each text unchanged, at any place', () => {
    expect(writeJson(raw('1.50'))).toBe('1.50');
    expect(writeJson({ a: raw('{ "x":1e400 }'), b: [raw('1.0'), undefined, raw('"\\u0041"')], c: undefined })).toBe(
      '{"a":{ "x":1e400 },"b":[1.0,null,"\\u0041"]}',
    );
    expect(writeJson({ when: { toJSON: () => 'then' }, n: 1, nothing: null })).toBe(
      '{"when":"then","n":1,"nothing":null}',
    );
    expect(writeJson(undefined)).toBeUndefined();
    expect(JSON.stringify({ a: raw('1.50') })).toBe('{"a":1.5}');
  });

  it('keeps its place among values that look like it', () => {
    const nul = '\0';
    const held = { [nul]: nul, a: raw('1.0'), b: `"${nul}`, c: [nul, raw('2.0'), `${nul}"`, { d: `"${nul}"` }] };
    const text = writeJson(held) ?? '';
    expect(text).toContain('"a":1.0');
    expect(JSON.parse(text)).toEqual({ [nul]: nul, a: 1, b: `"${nul}`, c: [nul, 2, `${nul}"`, { d: `"${nul}"` }] });
  });

  it('gives what JSON.stringify gives, with the text in place of the parsed value', () => {
    const texts = fc.constantFrom('1.0', '"\\u0000"', '{ "a":\t[1e2] }', '"\\"\\u0000\\""', 'null');
    const strings = fc.string({ unit: fc.constantFrom('\0', '"', '\\', 'u', '0', 'a', 'é', ',') });
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { depthSize: 'small' },
        strings,
        fc.double(),
        fc.constant(null),
        texts.map((text) => raw(text)),
        fc.array(tie('tree')),
        fc.dictionary(strings, tie('tree')),
      ),
    }));
    fc.assert(
      fc.property(tree, (value) => {
        const text = writeJson(value) ?? '';
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
        let at = 0;
        for (const one of textsIn(value)) expect((at = text.indexOf(one, at))).toBeGreaterThanOrEqual(0);
      }),
    );
  });

  it('leaves no trace when a value cannot be written', () => {
    const cyclic: Record<string, unknown> = { text: raw('1.0') };
    cyclic['self'] = cyclic;
    expect(() => writeJson(cyclic)).toThrow();
    expect(JSON.stringify(raw('1.0'))).toBe('1');
  });
});

function textsIn(value: unknown): readonly string[] {
  if (value instanceof RawJson) return [value.text];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}
