/** Tests that the scanner of JSON text accepts what JSON.parse accepts, and finds the same members. */
import * as fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import {
  checkedJson,
  countParts,
  isArrayText,
  isEmptyObject,
  isObjectText,
  itemsOf,
  jsonFault,
  memberOf,
  membersOf,
  readMembers,
  trustJson,
  readShaped,
} from '../../src/core/json.ts';
import { JSON_DEPTH } from '../../src/core/limits.ts';
import { endOfChecked, endOfValue } from '../../src/protocol/json-scan.ts';

/** The options of random runs: enough runs to reach every rule, and a fixed seed, which makes the result repeatable. */
const RUNS = { numRuns: 20_000, seed: 9 };

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const space = fc.constantFrom('', '', '', ' ', '\n', '\t', '\r\n', '  \n ');
const number = fc.constantFrom(
  ...['0', '-0', '1', '-12', '1.5', '1E5', '1e+5', '0.1000000000000000055', '9007199254740993', '1e400', '1e-99999'],
);
const string = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 6 }).map((text) => JSON.stringify(text)),
  fc.constantFrom('"\\u0041\\/"', '"\\ud800"', '"__proto__"', '"10"', '"9"', '""', '"\u2028\u007f"'),
);
const leaf = fc.oneof(number, string, fc.constantFrom('true', 'false', 'null'));

/** JSON text as an attacker might write it. */
const json = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    leaf,
    fc
      .tuple(fc.array(tie('value'), { maxLength: 4 }), space)
      .map(([items, gap]) => `[${gap}${items.join(`${gap},${gap}`)}${gap}]`),
    fc
      .tuple(fc.array(fc.tuple(string, tie('value')), { maxLength: 4 }), space)
      .map(
        ([members, gap]) =>
          `{${gap}${members.map(([name, value]) => `${name}${gap}:${gap}${value}`).join(`${gap},${gap}`)}${gap}}`,
      ),
  ),
})).value;

/** Texts that replace a part of a valid text. */
const scrap = fc.constantFrom(
  ...[
    '',
    ' ',
    ',',
    ':',
    '"',
    '\\',
    '{',
    '}',
    '[',
    ']',
    '0',
    '-',
    '+',
    '.',
    'e',
    'E',
    'u',
    'tru',
    'null',
    'NaN',
    '\u0000',
  ],
  ...['\u001f', '\u00a0', '\ufeff', '\u2028', '\ud800', "'", '//', '01', '1.', '.1', '-', '\\u12', '\\x41', '\v', '\f'],
);
const mutated = fc
  .tuple(json, fc.array(fc.tuple(fc.nat(), fc.nat(2), scrap), { minLength: 1, maxLength: 3 }))
  .map(([text, edits]) =>
    edits.reduce((whole, [place, length, put]) => {
      const at = place % (whole.length + 1);
      return whole.slice(0, at) + put + whole.slice(at + length);
    }, text),
  );

describe('the scanner', () => {
  it('accepts what JSON.parse accepts', () => {
    fc.assert(
      fc.property(json, space, (text, gap) => {
        expect(parses(text)).toBe(true);
        expect(checkedJson(gap + text + gap)).toBe(gap + text + gap);
      }),
      RUNS,
    );
  });

  it('refuses what JSON.parse refuses', () => {
    let refused = 0;
    fc.assert(
      fc.property(mutated, (text) => {
        if (!parses(text)) refused++;
        expect(jsonFault(text)).toBe(parses(text) ? null : 'syntax');
      }),
      RUNS,
    );
    expect(refused).toBeGreaterThan(RUNS.numRuns / 3);
  });

  it('agrees with JSON.parse for any few characters', () => {
    const characters = fc.constantFrom(...'{}[]":,\\/ -+.0123456789eEtrufalsn\n\u0000x');
    fc.assert(
      fc.property(fc.array(characters, { maxLength: 7 }), (list) => {
        const text = list.join('');
        expect(jsonFault(text) === null).toBe(parses(text));
      }),
      { ...RUNS, numRuns: 50_000 },
    );
  });

  it('agrees with JSON.parse beyond the lengths that one match of its expressions covers', () => {
    const escape = fc.constantFrom('\\n', '\\u0041', '\\\\');
    const run = fc.tuple(escape, fc.integer({ min: 990, max: 2_010 })).map(([one, times]) => one.repeat(times));
    const longString = fc.tuple(run, run).map(([one, two]) => `"${one} plain ${two}"`);
    const value = fc.oneof({ weight: 30, arbitrary: leaf }, longString, fc.constantFrom('{}', '[[1]]', '{"a":{}}'));
    const spoilt = fc.tuple(run, fc.constantFrom('\\x', '\n', '\\')).map(([one, last]) => `"${one}${last}"`);
    const wrong = fc.oneof(spoilt, fc.constantFrom('', '01', 'x', '1 2', '{', ']', '1,'));
    const texts = fc
      .tuple(fc.array(value, { minLength: 195, maxLength: 420 }), fc.nat(), fc.option(wrong), fc.boolean())
      .map(([values, place, fault, isObject]) => {
        const all = fault === null ? values : values.with(place % values.length, fault);
        const inside = all.map((text, i) => (isObject ? `"k${i}": ${text}` : text)).join(' ,\n');
        return isObject ? `{${inside}}` : `[${inside}]`;
      });
    const verdicts = { good: 0, bad: 0 };
    fc.assert(
      fc.property(texts, (text) => {
        verdicts[parses(text) ? 'good' : 'bad']++;
        expect(jsonFault(text)).toBe(parses(text) ? null : 'syntax');
      }),
      { ...RUNS, numRuns: 400 },
    );
    expect(verdicts.good).toBeGreaterThan(20);
    expect(verdicts.bad).toBeGreaterThan(20);
  });

  it('reads long texts without an error of the stack, whatever they consist of', () => {
    const long = 3_000_000;
    const texts = ['x', '\\n', '\\u0041', '\u00e9'].map((part) => part.repeat(long / part.length));
    for (const text of texts) {
      expect(jsonFault(`["${text}",{"a":"${text}","b":[]}]`)).toBeNull();
      expect(jsonFault(`["${text}`)).toBe('syntax');
    }
    // As many escapes as the stack of V8's regular expressions does not hold.
    expect(jsonFault(`["${'\\n'.repeat(12_000_000)}"]`)).toBeNull();
    expect(jsonFault(`[${'1'.repeat(long)},0.${'1'.repeat(long)}${' '.repeat(long)}]`)).toBeNull();
  });

  it('bounds the depth, and reports it', () => {
    const nest = (levels: number, open = '[', close = ']'): string => open.repeat(levels) + close.repeat(levels);
    expect(jsonFault(nest(JSON_DEPTH))).toBeNull();
    expect(jsonFault(nest(JSON_DEPTH + 1))).toBe('depth');
    expect(jsonFault(nest(500_000))).toBe('depth');
    expect(jsonFault('{"a":'.repeat(JSON_DEPTH) + '1' + '}'.repeat(JSON_DEPTH))).toBeNull();
    expect(jsonFault('{"a":'.repeat(JSON_DEPTH + 1) + '1' + '}'.repeat(JSON_DEPTH + 1))).toBe('depth');
    expect(jsonFault(`"${nest(300)}"`)).toBeNull();
    expect(jsonFault(`[${Array.from({ length: 500 }, () => '[]').join()}]`)).toBeNull();
  });

  it('cuts members and items as JSON.parse sees them, unchanged', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(string, json), { maxLength: 6 }), space, (given, gap) => {
        const object = trustJson(`${gap}{${given.map(([name, value]) => `${gap}${name}:${value}${gap}`).join()}}`);
        const expected = new Map(given.map(([name, value]) => [String(JSON.parse(name)), value]));
        expect(membersOf(object, Infinity)).toEqual(expected);
        expect(readMembers(object, Infinity)).toEqual(expected);
        for (const [name, value] of expected) expect(memberOf(object, name)).toBe(value);
        expect(memberOf(object, 'there is none')).toBeUndefined();
        const array = trustJson(`${gap}[${given.map(([, value]) => gap + value + gap).join()}]`);
        expect(itemsOf(array, Infinity)).toEqual(given.map(([, value]) => value));
        expect([isObjectText(object), isArrayText(object), isObjectText(array), isArrayText(array)]).toEqual([
          ...[true, false, false, true],
        ]);
        expect(isEmptyObject(object)).toBe(given.length === 0);
      }),
      { ...RUNS, numRuns: 3000 },
    );
  });

  it('stops at the first member or item too many, wherever the text breaks after it', () => {
    const members = Array.from({ length: 1001 }, (_, i) => `"k${i}":1`).join();
    expect(readMembers(`{${members}}`, 1001)).toHaveProperty('size', 1001);
    expect(readMembers(`{${members}}`, 1000)).toBe('members');
    expect(readMembers(`{${members},`, 1000)).toBe('members');
    expect(readMembers(`{${members},`, 2000)).toBe('syntax');
    expect(readMembers('{"a":1} x', 2)).toBe('syntax');
    expect(readMembers('[1]', 2)).toBeNull();
    expect(readMembers('[1', 2)).toBe('syntax');
    expect(itemsOf(trustJson('[1,2,3]'), 3)).toEqual(['1', '2', '3']);
    expect(itemsOf(trustJson('[1,2,3]'), 2)).toBeNull();
  });

  it('counts members and items at every level, and nothing inside strings', () => {
    expect(countParts(trustJson('[{"a":1,"b":[1,2]},",,,{"]'), 100)).toBe(3);
    expect(countParts(trustJson(JSON.stringify('",",'.repeat(100))), 100)).toBe(0);
    expect(countParts(trustJson(`[${'1,'.repeat(500)}1]`), 10)).toBe(11);
  });
});

describe('the end of a value in a checked text', () => {
  it('is where a check finds it', () => {
    fc.assert(
      fc.property(json, space, fc.constantFrom('', ',1]', '}', ' ,"a":2}'), (value, gap, rest) => {
        fc.pre(parses(value));
        const text = `${gap}${value.trim()}${rest}`;
        expect(endOfChecked(text, gap.length)).toBe(endOfValue(text, gap.length, 0));
      }),
      RUNS,
    );
  });

  it('is found without the expressions of a check, which run once for each text that arrives', () => {
    // No expression matches more than two levels, so a check needs one for each item.
    const checked = trustJson(`{"a":[${'[[1]],{"b":["\\"c"]},'.repeat(500)}[]]}`);
    const tests = vi.spyOn(RegExp.prototype, 'test');
    expect(jsonFault(checked)).toBe(null);
    const once = tests.mock.calls.length;
    expect(once).toBeGreaterThan(500);
    expect(once).toBeLessThan(4_000);
    tests.mockClear();
    membersOf(checked, 10);
    memberOf(checked, 'a');
    readShaped(checked, { members: new Map([['a', 'text']]), others: 'skipped' }, 10);
    readShaped(checked, { members: new Map(), others: 'skipped' }, 10);
    const again = tests.mock.calls.length;
    tests.mockRestore();
    expect(again).toBeLessThan(50);
  });
});
