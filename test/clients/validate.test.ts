/** Tests the runtime's schema validator, which generates no code. Its verdicts are compared with those of ajv. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FORMATS } from '../../src/clients/runtime/limits.ts';
import { compileSchema } from '../../src/clients/runtime/json-schema.ts';

type Schema = Readonly<Record<string, unknown>> | boolean;

const tree = {
  type: 'object',
  required: ['name'],
  properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: '#' } } },
  unevaluatedProperties: false,
};
const shape = {
  $defs: { id: { type: 'string', pattern: '^[a-z]+$' }, size: { $anchor: 'size', type: 'integer', minimum: 1 } },
  properties: { id: { $ref: '#/$defs/id' }, size: { $ref: '#size' } },
  dependentRequired: { size: ['id'] },
  propertyNames: { maxLength: 11 },
};
const either = {
  if: { properties: { kind: { const: 'a' } }, required: ['kind'] },
  then: { required: ['a'] },
  else: { oneOf: [{ required: ['b'] }, { required: ['c'] }], not: { required: ['d'] } },
};

/** Schemas, each with values that match it and values that do not. */
const CASES: readonly (readonly [schema: Schema, values: readonly string[]])[] = [
  [true, ['{}', 'null']],
  [false, ['{}']],
  [{}, ['{}', '[1]']],
  [tree, ['{}', '{"name":"a"}', '{"name":"a","children":[{"name":1}]}', '{"name":"a","children":[{"name":"b"}]}']],
  [tree, ['{"name":"a","more":1}', '{"name":"a","children":[{"name":"b","more":1}]}']],
  [shape, ['{}', '{"id":"a"}', '{"id":"A"}', '{"size":1}', '{"size":1,"id":"a"}', '{"size":0,"id":"a"}']],
  [shape, ['{"size":1.5,"id":"a"}', '{"far too long":1}']],
  [either, ['{"kind":"a"}', '{"kind":"a","a":1}', '{"b":1}', '{"b":1,"c":1}', '{"b":1,"d":1}', '{}']],
  [{ required: ['toString', 'constructor'] }, ['{}', '{"toString":1,"constructor":1}']],
  [{ properties: { constructor: { type: 'string' } } }, ['{}', '{"constructor":"a"}', '{"constructor":1}']],
  [{ additionalProperties: false }, ['{}', '{"__proto__":{}}', '{"constructor":1}']],
  [{ additionalProperties: { type: 'null' }, patternProperties: { '^x': true } }, ['{"x":1,"y":null}', '{"y":1}']],
  [{ enum: [{ a: [1] }, 2] }, ['{"a":[1]}', '{"a":[2]}', '2', '3']],
  [{ const: null }, ['null', '0']],
  [{ prefixItems: [{ type: 'integer' }], items: false }, ['[]', '[1]', '[1,2]', '["a"]']],
  [
    { contains: { type: 'null' }, minContains: 2, maxContains: 3 },
    ['[null]', '[null,1,null]', '[null,null,null,null]'],
  ],
  [{ uniqueItems: true, minItems: 1, maxItems: 3 }, ['[]', '[{"a":1},{"a":1}]', '[1,"1"]', '[1,2,3,4]']],
  [{ prefixItems: [true], unevaluatedItems: { type: 'string' } }, ['[1,"a"]', '[1,2]']],
  [{ type: ['integer', 'null'], multipleOf: 3 }, ['null', '9', '10', '9.5']],
  [{ exclusiveMinimum: 1, maximum: 5 }, ['1', '1.1', '5', '6']],
  [{ minLength: 2, maxLength: 3 }, ['"a"', '"ab"', '"😀😀😀"', '"abcd"']],
  [{ anyOf: [{ type: 'string' }, { minimum: 3 }], allOf: [{ maximum: 9 }] }, ['"a"', '2', '3', '10']],
  [{ minProperties: 1, maxProperties: 2 }, ['{}', '{"a":1}', '{"a":1,"b":1,"c":1}']],
  [{ format: 'email' }, ['"a@b.cd"', '"a"', '1']],
  [{ format: 'date-time' }, ['"2026-02-28T10:00:00Z"', '"2026-02-30T10:00:00Z"', '"2026"']],
  [{ format: 'date' }, ['"2024-02-29"', '"2025-02-29"']],
  [{ format: 'uuid' }, ['"123e4567-e89b-12d3-a456-426614174000"', '"123"']],
  [{ format: 'uri' }, ['"https://a.test/b?c"', '"b c"']],
  [{ format: 'ipv4' }, ['"127.0.0.1"', '"127.0.0.256"']],
  [{ format: 'ipv6' }, ['"::1"', '"::g"']],
  [{ format: 'hostname' }, ['"a.test"', '"-a"']],
  [{ format: 'duration' }, ['"P1DT2H"', '"1 day"']],
  [{ format: 'regex' }, ['"^a$"', '"("']],
  [{ format: 'of-my-own' }, ['"a"']],
  [{ format: 'time' }, ['"10:00:00Z"', '"24:00:00Z"', '"10:00:00+01:30"']],
  [{ format: 'uri' }, ['"urn:a:b"', '"//a.test/b"', '"http://[::1]:80/"', '"http://[::g]/"', '"http://a b/"']],
  [{ format: 'uri-reference' }, ['""', '"a/b?c#d"', '"//a.test"', '"a b"', '"%zz"', '"#a#b"']],
  [{ format: 'uri-template' }, ['"/a/{b}{?c,d*}"', '"/a/{b"', '"/a/{b:10}"']],
  [{ format: 'email' }, ['"a..b@c.de"', '".a@b.cd"', '"a@-b.cd"', '"a+b@c.de"', '"@b.cd"']],
  [{ format: 'ipv6' }, ['"::ffff:1.2.3.4"', '"1::2::3"', '"1:2:3:4:5:6:7:8"', '"1:2:3:4:5:6:7"', '"::1]"']],
  [{ format: 'duration' }, ['"P1W"', '"P"', '"PT"', '"P1Y2M3DT4H5M6S"', '"P1S"']],
  [{ format: 'json-pointer' }, ['""', '"/a~1b"', '"/a~2"', '"a"']],
  [{ format: 'relative-json-pointer' }, ['"0"', '"1/a"', '"0#"', '"01"']],
  [{ $id: 'https://a.test/b', $defs: { c: { $id: 'c', type: 'null' } }, $ref: 'c' }, ['null', '1']],
  [{ $id: 'urn:a:b', $defs: { c: { type: 'null' } }, items: { $ref: 'urn:a:b#/$defs/c' } }, ['[null]', '[1]']],
  [{ $defs: { 'a/b %': { const: 1 } }, $ref: '#/$defs/a~1b%20%25' }, ['1', '2']],
  [{ allOf: [{ properties: { a: true } }], unevaluatedProperties: false }, ['{"a":1}', '{"b":1}']],
  [{ properties: { a: true }, allOf: [{ unevaluatedProperties: false }] }, ['{}', '{"a":1}']],
  [{ anyOf: [{ properties: { a: { const: 1 } } }, true], unevaluatedProperties: false }, ['{"a":1}', '{"a":2}']],
  [{ dependentSchemas: { a: { required: ['b'] } } }, ['{}', '{"a":1}', '{"a":1,"b":1}']],
];

/** Schemas and values of few names and numbers, so that they often concern each other. */
const name = fc.constantFrom('a', 'b', 'c');
const few = fc.integer({ min: 0, max: 3 });
const { value: anyValue } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.oneof(few, fc.constantFrom(null, true, 1.5), name),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(name, tie('value'), { maxKeys: 3, noNullPrototype: true }),
  ),
}));
const { schema: anySchema } = fc.letrec<{ schema: Schema }>((tie) => {
  const schema = tie('schema');
  const list = fc.array(schema, { minLength: 1, maxLength: 3 });
  const map = fc.dictionary(name, schema, { maxKeys: 3, noNullPrototype: true });
  const names = fc.uniqueArray(name, { maxLength: 2 });
  const parts = fc.record(
    {
      ...{ type: fc.constantFrom('string', 'integer', 'number', 'object', 'array', 'null', ['boolean', 'string']) },
      ...{ const: anyValue, enum: fc.array(anyValue, { minLength: 1, maxLength: 3 }), uniqueItems: fc.boolean() },
      ...{ minimum: few, exclusiveMaximum: few, minLength: few, maxItems: few, minProperties: few },
      ...{
        required: names,
        dependentRequired: fc.dictionary(name, names, { noNullPrototype: true }),
        pattern: name,
        patternProperties: map,
      },
      ...{ properties: map, additionalProperties: schema, propertyNames: schema, dependentSchemas: map },
      ...{ prefixItems: list, items: schema, contains: schema.filter(mayFail), minContains: few, maxContains: few },
      ...{ allOf: list, anyOf: list, oneOf: list, not: schema, if: schema, then: schema, else: schema },
      ...{ unevaluatedProperties: schema },
    },
    { requiredKeys: [] },
  );
  return { schema: fc.oneof({ maxDepth: 3 }, fc.boolean(), parts) };
});

/** Whether a schema has a rule. Beside `unevaluatedProperties`, ajv lets an empty list contain what each value is. */
function mayFail(schema: Schema): boolean {
  return typeof schema === 'object' ? Object.keys(schema).length > 0 : !schema;
}

/** Schemas that no validator of draft 2020-12 can apply. */
const INVALID: readonly unknown[] = [
  { type: 'nonsense' },
  { type: [] },
  { required: 'a' },
  { properties: [] },
  { properties: { a: { minimum: '1' } } },
  { allOf: [] },
  { items: [{}] },
  { pattern: '(' },
  { patternProperties: { '(': true } },
  { multipleOf: 0 },
  { minLength: -1 },
  { $ref: '#/$defs/none' },
  { properties: { a: { $ref: 'https://elsewhere.test/schema' } } },
  { $schema: 'http://json-schema.org/draft-07/schema#' },
  { id: 'old' },
  null,
  [],
  'text',
];

function reference(): Ajv2020 {
  const ajv = new Ajv2020({ strict: false, logger: false, ownProperties: true });
  ajvFormats.default(ajv);
  return ajv;
}

function isTextOrNull(value: unknown): boolean {
  return value === null || typeof value === 'string';
}

function invalid(value: unknown): Schema {
  // An untyped program may pass any value.
  return JSON.parse(JSON.stringify(value));
}

describe('the interpreting validator', () => {
  test.each(CASES)('agrees with ajv about %j', (schema, values) => {
    const check = compileSchema(schema);
    const expected = reference().compile(schema);
    const own = values.map((text) => [text, check(JSON.parse(text)) === null]);
    expect(own).toEqual(values.map((text) => [text, expected(JSON.parse(text))]));
  });

  test('agrees with ajv about any schema', () => {
    const ajv = reference();
    fc.assert(
      fc.property(anySchema, fc.array(anyValue, { minLength: 5 }), (schema, values) => {
        const [check, expected] = [compileSchema(schema), ajv.compile(schema)];
        expect(values.map((value) => check(value) === null)).toEqual(values.map((value) => expected(value)));
      }),
    );
  });

  test.each(INVALID)('refuses %j as ajv does', (schema) => {
    expect(() => reference().compile(invalid(schema))).toThrow();
    expect(() => compileSchema(invalid(schema))).toThrow();
  });

  test('refuses the dynamic references that it cannot follow, instead of ignoring them', () => {
    expect(() => compileSchema({ $dynamicRef: '#node' })).toThrow(/dynamicRef/);
    expect(() => compileSchema({ properties: { a: { items: { $dynamicRef: '#node' } } } })).toThrow();
  });

  test('checks a member with the name of the prototype, which ajv skips', () => {
    const check = compileSchema({ properties: { ['__proto__']: { type: 'string' } } });
    expect(['{}', '{"__proto__":"a"}', '{"__proto__":1}'].map((text) => check(JSON.parse(text)) === null)).toEqual([
      ...[true, true, false],
    ]);
  });

  test('accepts a frozen schema, one used twice and one that shares parts, and does not change them', () => {
    const part = Object.freeze({ $ref: '#/$defs/t' });
    const schema = Object.freeze({ $defs: { t: { type: 'string' } }, properties: { a: part, b: part } });
    const before = JSON.stringify(schema);
    for (const check of [compileSchema(schema), compileSchema(schema)])
      expect(check({ a: 'a', b: 1 })).toMatch(/^\/b:/);
    expect(JSON.stringify(schema)).toBe(before);
    expect(Object.getOwnPropertyNames(part)).toEqual(['$ref']);
  });

  test('names the place and the fault', () => {
    const check = compileSchema({
      required: ['to'],
      properties: { to: { properties: { name: { type: 'string' } }, additionalProperties: false } },
    });
    expect(check({})).toBe('params: to is missing');
    expect(check({ to: { name: 1 } })).toBe('/to/name: number given, string expected');
    expect(check({ to: { nom: 1 } })).toBe('/to/nom: not allowed');
  });

  test('refuses params nested too deeply for its schema, and does not throw', () => {
    const depth = 20_000;
    const check = compileSchema({ additionalProperties: { $ref: '#' } });
    expect(check(JSON.parse('{"a":'.repeat(depth) + '1' + '}'.repeat(depth)))).not.toBeNull();
  });

  test('answers at once for texts that cost a format exponential time', () => {
    const check = compileSchema({ format: 'url' });
    expect(check(`http://${'a'.repeat(100)}!`)).toBeNull();
  });

  test.each([...FORMATS.keys()])('checks the format %s in steps that do not multiply', (format) => {
    const check = compileSchema({ format });
    // If each character doubled the steps, no such check would end.
    for (const part of ['a', '1', 'a.', '/', ':', 'a@', '{a}', '%41', '1Y', '1:', '~0', '(a', '\\'])
      for (const end of ['', '!', '\n']) expect(check(part.repeat(5_000) + end)).toSatisfy(isTextOrNull);
  });

  test('follows a reference to a member that is no keyword, and checks its form', () => {
    const check = compileSchema({ $ref: '#/parts/to', parts: { to: { type: 'string' } } });
    expect([check('a'), check(1)]).toEqual([null, 'params: number given, string expected']);
    expect(() => compileSchema({ $ref: '#/parts/to', parts: { to: { type: 'text' } } })).toThrow(TypeError);
  });

  test('knows that an empty list contains nothing, where ajv is wrong', () => {
    const schema = { prefixItems: [{ unevaluatedProperties: false }], contains: {} };
    expect(reference().compile(schema)([])).toBe(true);
    expect([[], [1]].map((value) => compileSchema(schema)(value) === null)).toEqual([false, true]);
  });

  test('knows which items a list contains, and that fractions of two are not exact, where ajv is wrong', () => {
    const check = compileSchema({ contains: { const: 1 }, unevaluatedItems: { const: 2 } });
    expect([[1], [1, 2], [1, 3], [2]].map((value) => check(value) === null)).toEqual([true, true, false, false]);
    const multiple = compileSchema({ multipleOf: 0.01 });
    expect([0.07, 4.35, 0.005, 1e300].map((value) => multiple(value) === null)).toEqual([true, true, false, true]);
  });

  test.each(['http://a.test/"', 'http://a.test:b/'])('refuses the URI %s, which RFC 3986 does not allow', (uri) => {
    expect(compileSchema({ format: 'uri' })(uri)).not.toBeNull();
  });

  test('refuses two schemas of one name', () => {
    const two = { a: { $anchor: 'x' }, b: { $anchor: 'x' } };
    expect(() => compileSchema({ $defs: two })).toThrow(/two schemas are named/);
  });

  test('compares objects without regard to the order of their members', () => {
    const check = compileSchema({ uniqueItems: true, contains: { const: { a: { b: 1, toString: 2 }, c: [] } } });
    expect(check([{ c: [], a: { toString: 2, b: 1 } }])).toBeNull();
    expect(check(['ab', { a: 1, b: 2 }, { b: 2, a: 1 }])).not.toBeNull();
  });
});
