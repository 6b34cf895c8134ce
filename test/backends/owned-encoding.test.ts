/** The texts of values between relays: any value arrives as it was, and long texts are not escaped. */
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CallboardError } from '../../src/core/errors.ts';
import { RawJson } from '../../src/core/json.ts';
import { DocumentReading } from '../../src/core/document-reading.ts';
import {
  decode,
  decodeError,
  encode,
  encodeError,
  encodeFirst,
  type Encodable,
} from '../../src/backends/owned/encoding.ts';

/** What arrives of a value: as text, and as bytes in between. */
function sent(value: unknown): unknown {
  return decode(Buffer.from(encode(value)).toString());
}

const long = fc.string({ unit: 'binary', minLength: 200, maxLength: 600 });
const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  long,
  long.map((one) => `${one}\ud800`),
  fc.constant('\ud800'),
);
const leaf = fc.oneof(text, fc.double(), fc.integer(), fc.boolean(), fc.constant(null));
const name = fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor', 'length', 'kind', 'text'));
const values = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'medium' },
    leaf,
    fc.array(fc.oneof(tie('value'), fc.constant(undefined)), { maxLength: 5 }),
    fc.dictionary(name, tie('value'), { maxKeys: 5, noNullPrototype: true }),
    fc.array(fc.tuple(tie('value'), tie('value')), { maxLength: 4 }).map((entries) => new Map(entries)),
    fc.array(tie('value'), { maxLength: 4 }).map((items) => new Set(items)),
  ),
})).value;

describe('the text of a value', () => {
  it('gives back any value of scalars, lists, objects, maps and sets', () => {
    fc.assert(
      fc.property(values, (value) => {
        expect(isDeepStrictEqual(sent(value), value)).toBe(true);
      }),
      { numRuns: 1_000 },
    );
  });

  it('tells undefined from null, except for members, which are left out', () => {
    expect(sent([undefined, null, [undefined]])).toStrictEqual([undefined, null, [undefined]]);
    expect(sent(undefined)).toBe(undefined);
    expect(sent(new Map([['a', undefined]]))).toStrictEqual(new Map([['a', undefined]]));
    expect(sent({ a: undefined, b: null })).toStrictEqual({ b: null });
  });

  it('keeps numbers that JSON has not', () => {
    expect(sent([NaN, Infinity, -Infinity, -0, 0])).toStrictEqual([NaN, Infinity, -Infinity, -0, 0]);
  });

  it('holds long texts as they are, and one that occurs twice once', () => {
    const payload = JSON.stringify({ text: '"\\é'.repeat(1_000), list: [1, 2, 3] });
    const written = encode({ params: payload, kept: { payload, spill: null } });
    expect(written.length).toBeLessThan(payload.length + 200);
    expect(written.endsWith(payload)).toBe(true);
    expect(sent({ params: payload, kept: { payload } })).toEqual({ params: payload, kept: { payload } });
  });

  it('is one line for a value without long texts', () => {
    expect(encode([{ userId: 'a' }, 1])).toBe('[{"userId":"a"},1]');
  });

  it('changes nothing of the value that it is made of', () => {
    const value = { list: [new Map([['a', 'x'.repeat(500)]]), undefined], text: 'y'.repeat(500) };
    const before = structuredClone(value);
    encode(value);
    expect(value).toStrictEqual(before);
  });

  it('lacks the reading of a document, wherever it stands', () => {
    const reading = new DocumentReading();
    expect(sent([{ first: 1, reading }, reading])).toStrictEqual([{ first: 1 }, undefined]);
  });

  it('is refused for other objects and for functions', () => {
    for (const value of [new Date(0), () => 1, new RawJson(JSON.parse('"1"')), Symbol('a'), 1n, new Error('a')])
      expect(() => encode([value]), typeof value).toThrow(TypeError);
  });

  it('is refused if it was cut', () => {
    const written = encode([new Set([1]), 'x'.repeat(300)]);
    expect(() => decode(written.slice(0, 5))).toThrow(SyntaxError);
    expect(() => decode(written.slice(0, written.indexOf('\n') + 3))).toThrow(SyntaxError);
    expect(() => decode('1\n[[[["a","b"],"undefined"]],[]]\n')).toThrow(SyntaxError);
  });
});

describe('the text of a value with a long list', () => {
  const LONG = 'x'.repeat(1_000);
  const first = (items: readonly unknown[], chars: number): unknown =>
    decode(encodeFirst({ name: 'rows', items, chars }, (count) => ({ count, seen: new Set(items.slice(0, count)) })));

  it('has the whole list if it is short', () => {
    const items = [{ id: 1, text: LONG }, undefined, new Map([['a', LONG]]), -0, 'y'.repeat(500)];
    expect(first(items, 10_000)).toStrictEqual({ rows: items, count: 5, seen: new Set(items) });
    expect(first([], 10)).toStrictEqual({ rows: [], count: 0, seen: new Set() });
  });

  it('has the first items of a longer list, at least one, and nothing of the others', () => {
    const items = ['a', 'b', 'c'].map((letter) => ({ id: letter, text: letter.repeat(1_000) }));
    const [one, two] = items;
    expect(first(items, 2_500)).toStrictEqual({ rows: [one, two], count: 2, seen: new Set([one, two]) });
    expect(first(items, 10)).toStrictEqual({ rows: [one], count: 1, seen: new Set([one]) });
    const text = encodeFirst({ name: 'rows', items, chars: 2_500 }, (count) => ({ count }));
    expect(text).not.toContain('ccc');
    expect(text.length).toBeLessThan(2_500);
  });

  it('reads each item once, up to the first one that has no room', () => {
    const reads: number[] = [];
    const items = [0, 1, 2, 3].map((id) => ({
      get text() {
        reads.push(id);
        return LONG;
      },
    }));
    encode(items[0]);
    const once = reads.splice(0).length;
    // The long text of the first one counts once for both.
    const list = [items[0], items[1], { text: 'z'.repeat(1_000) }, items[2]];
    encodeFirst({ name: 'rows', items: list, chars: 1_500 }, (count) => ({ count }));
    expect(reads).toEqual([...Array<number>(once).fill(0), ...Array<number>(once).fill(1)]);
  });
});

describe('the type of what can be encoded', () => {
  it('has no part that is lost on the way', () => {
    const carries = <T>(value: [T] extends [Encodable<T>] ? T : never): T => value;
    expect(carries<readonly (string | undefined)[]>(['a'])).toEqual(['a']);
    expect(carries<ReadonlyMap<string | null, number>>(new Map())).toEqual(new Map());
    // @ts-expect-error: a date is none
    carries<{ at: Date }>({ at: new Date(0) });
    // @ts-expect-error: nor is a function, deep inside
    carries<{ list: readonly (() => void)[] }>({ list: [] });
    // @ts-expect-error: nor is a bigint
    carries<Map<string, bigint>>(new Map());
    // @ts-expect-error: nor is an error
    carries<Error | null>(null);
    // @ts-expect-error: nor is a value of which nothing is known
    carries<{ value: unknown }>({ value: 1 });
  });
});

describe('the text of an error', () => {
  it('gives back a CallboardError without its cause', () => {
    const details = {
      retryAfterMs: 5,
      errors: [{ parameter: 'a', detail: 'b' }],
      share: 'marks',
      cause: new Error('x'),
    };
    const error = decodeError(encodeError(new CallboardError('share_exceeded', 'No room.', details)));
    const { cause: _, ...kept } = details;
    expect(error).toBeInstanceOf(CallboardError);
    expect(error).toMatchObject({ code: 'share_exceeded', message: 'No room.', details: kept });
    expect(error.cause).toBe(undefined);
  });

  it('gives back the name and message of other errors', () => {
    expect(decodeError(encodeError(new RangeError('far')))).toMatchObject({ name: 'RangeError', message: 'far' });
    expect(decodeError(encodeError('text'))).toMatchObject({ name: 'Error', message: 'text' });
    expect(decodeError('null').message).toContain('cannot be read');
  });
});
