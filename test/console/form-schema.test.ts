/** Tests that the form of an action gets a bounded copy of what a client advertises, and keeps what a form can show. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { errorSchemaOf } from '../../src/console/form/field-faults.ts';
import { FORM_FIELDS, FORM_PARTS, choiceIn, formSchemaOf, valueFault } from '../../src/console/form/form-schema.ts';

function formOf(schema: unknown) {
  const form = formSchemaOf(schema);
  if (form.why !== null) throw new Error(form.why);
  return form;
}

/** Counts objects, and fails for what the forms library expands or runs. */
function partsOf(schema: unknown): number {
  if (typeof schema !== 'object' || schema === null) return 0;
  expect(Object.keys(schema)).not.toEqual(expect.arrayContaining(['$ref']));
  for (const name of ['$ref', 'allOf', 'oneOf', 'anyOf', 'if', 'patternProperties', 'dependencies', '$defs'])
    expect(Object.hasOwn(schema, name)).toBe(false);
  const { properties = {}, items, additionalProperties, choices = [] } = schema as Record<string, never>;
  const below = [...Object.values(properties), items, additionalProperties, ...choices];
  return below.reduce<number>((sum, part) => sum + partsOf(part), 1);
}

const KEYWORDS = {
  type: fc.constantFrom('object', 'array', 'string', 'integer', ['string', 'null'], 'nothing', 7),
  title: fc.string(),
  minItems: fc.integer({ min: 0, max: 1e9 }),
  required: fc.array(fc.string()),
  default: fc.jsonValue(),
  enum: fc.array(fc.jsonValue()),
  const: fc.jsonValue(),
  pattern: fc.constantFrom('^(a+)+$', '('),
  format: fc.constantFrom('email', 'constructor', '__proto__'),
  $ref: fc.constantFrom('#', '#/$defs/a', '#/properties/b', '#/$defs/%', 'https://elsewhere.example', '#anchor', 5),
};
const NAME = fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor', 'ui:field', '__errors', 'x/y');
const { schema: SCHEMA } = fc.letrec<{ schema: unknown }>((tie) => {
  const map = fc.array(fc.tuple(NAME, tie('schema')), { maxLength: 3 }).map((entries) => Object.fromEntries(entries));
  const list = fc.array(tie('schema'), { maxLength: 3 });
  return {
    schema: fc.oneof(
      { maxDepth: 2, depthSize: 'small' },
      fc.constantFrom<unknown>(true, false, null, 'text', {}),
      fc.record(
        {
          ...KEYWORDS,
          ...{ properties: map, $defs: map, patternProperties: map, items: tie('schema'), if: tie('schema') },
          ...{ additionalProperties: tie('schema'), oneOf: list, anyOf: list, allOf: list },
        },
        { requiredKeys: [] },
      ),
    ),
  };
});

it('any schema becomes a bounded copy without references and expressions that run, or a reason', () => {
  fc.assert(
    fc.property(SCHEMA, fc.jsonValue(), (schema, value) => {
      const form = formSchemaOf(schema);
      if (form.why !== null) return void expect(form.why.length).toBeLessThan(120);
      expect(partsOf(form.schema)).toBeLessThanOrEqual(FORM_PARTS);
      const fault = valueFault(form, value);
      expect(fault === null || fault.includes(String(FORM_FIELDS))).toBe(true);
      expect(Reflect.get({}, 'polluted')).toBeUndefined();
    }),
    { numRuns: 500 },
  );
});

const chain = (depth: number): object => ({
  $ref: `#/$defs/d${depth}`,
  $defs: {
    d0: { type: 'object' },
    ...Object.fromEntries(
      Array.from({ length: depth }, (_, at) => [
        `d${at + 1}`,
        { allOf: [{ $ref: `#/$defs/d${at}` }, { $ref: `#/$defs/d${at}` }] },
      ]),
    ),
  },
});
const object = (properties: object): object => ({ type: 'object', properties });
const many = (count: number, part: unknown): object =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, part]));
const nested = (depth: number, wrap: (inner: unknown) => unknown): unknown =>
  Array.from({ length: depth }).reduce((inner) => wrap(inner), { type: 'string' });

describe('there is no form', () => {
  it.each([
    ['for many references to itself', object(many(40, { $ref: '#' })), /more than 200 parts/],
    ['for an allOf that doubles', chain(40), /more than a form can show|names and references/],
    ['for a wide allOf', { allOf: Array(10_000).fill({}) }, /names and references/],
    ['for a reference to itself alone', { $ref: '#' }, /more than a form can show/],
    ['for a reference elsewhere', { $ref: 'https://elsewhere.example/s' }, /more than a form can show/],
    ['for many alternatives', object({ one: { anyOf: Array(300).fill({ type: 'string' }) } }), /more than 200 parts/],
    ['for many properties', object(many(10_000, {})), /names and references|parts/],
    ['for a list of many entries', object({ l: { type: 'array', minItems: 5e7, items: {} } }), /more than 400 fields/],
    [
      'for lists that fill lists',
      object({ l: nested(5, (items) => ({ type: 'array', minItems: 20, items })) }),
      /more than 400 fields/,
    ],
    [
      'for a default that fills a list of objects',
      object({ l: { type: 'array', items: object(many(50, { type: 'string' })), default: Array(50).fill({}) } }),
      /more than 400 fields/,
    ],
    [
      'for a default further up that fills a list',
      {
        ...object({ l: { type: 'array', items: object(many(50, { type: 'string' })) } }),
        default: { l: Array(50).fill({}) },
      },
      /more than 400 fields/,
    ],
    ['for many choices', object({ e: { enum: Array.from({ length: 1e5 }, (_, at) => at) } }), /names|characters/],
    ['for a long constant', object({ e: { const: 'x'.repeat(1e6) } }), /16000 characters/],
    ['for a long default', object({ e: { type: 'string', default: 'x'.repeat(1e6) } }), /16000 characters/],
    ['for a deep default', object({ e: { type: 'string', default: nested(50, (inner) => [inner]) } }), /characters/],
    ['for an expression over names', { type: 'object', patternProperties: { '^(a+)+$': {} } }, /can show/],
    ['for what is not a schema', 7, /can show/],
  ])('%s', (_, schema, why) => {
    expect(formSchemaOf(schema).why).toMatch(why);
  });
});

describe('the form keeps', () => {
  it('references, with a title beside them, as what they name', () => {
    const { schema, uiSchema } = formOf({
      ...object({ one: { $ref: '#/$defs/line~1row', title: 'One' } }),
      $defs: { 'line/row': { type: 'integer', title: 'Row', minimum: 1 } },
    });
    expect([schema.properties, uiSchema]).toEqual([
      { one: { type: 'integer', title: 'One', minimum: 1 } },
      { one: {} },
    ]);
  });

  it('the members of an allOf as one object, and as JSON when two of them have the same name', () => {
    const two = (name: string) => ({
      type: 'object',
      allOf: [
        { properties: { a: { type: 'string' } }, required: ['a'] },
        { properties: { [name]: { type: 'integer' } }, required: [name] },
      ],
    });
    expect(formOf(two('b')).schema).toMatchObject({
      properties: { a: { type: 'string' }, b: { type: 'integer' } },
      required: ['a', 'b'],
    });
    expect(formOf(object({ one: two('a') })).uiSchema).toEqual({ one: { 'ui:field': 'JsonField' } });
  });

  it('a schema that refers to itself down to a depth, below which it is JSON', () => {
    const { uiSchema } = formOf(object({ below: { type: 'array', items: { $ref: '#' } } }));
    expect(JSON.stringify(uiSchema).match(/below/g)).toHaveLength(5);
    expect(JSON.stringify(uiSchema)).toContain('JsonField');
  });

  it('choices, ranges, defaults and alternatives; it cuts long texts', () => {
    const kept = {
      type: 'object',
      properties: {
        n: { type: 'integer', minimum: 1, maximum: 20, default: 3 },
        e: { enum: ['a', 'b'] },
        l: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 3, default: ['x'] },
      },
      required: ['n'],
      additionalProperties: false,
    };
    // A new entry of the list is an empty text, not null.
    const l = { ...kept.properties.l, items: { type: 'string', default: '' } };
    expect(formOf(kept).schema).toEqual({ ...kept, properties: { ...kept.properties, l } });
    const alternatives = [{ type: 'string' }, { type: 'object', properties: { k: { const: 'x' } } }];
    const { o = {} } = formOf(object({ o: { title: 'O', minLength: 1, oneOf: alternatives } })).schema.properties ?? {};
    // The forms library does not see the alternatives, and each has what the schema has itself.
    expect(o).toEqual({
      title: 'O',
      $comment: 'a choice',
      choices: [
        { type: 'string', minLength: 1 },
        { type: 'object', minLength: 1, properties: { k: { const: 'x', default: 'x' } } },
      ],
    });
    expect(formOf(object({ t: { type: 'string', title: 'T'.repeat(1e6) } })).schema.properties).toMatchObject({
      t: { title: `${'T'.repeat(120)}…` },
    });
  });

  it('an object with names that the forms library cannot hold as JSON', () => {
    for (const name of ['__proto__', 'constructor', 'ui:field', '__errors']) {
      const inner = JSON.parse(`{"type":"object","properties":{"${name}":{"type":"string"}}}`);
      expect(formOf(object({ one: inner })).uiSchema).toEqual({ one: { 'ui:field': 'JsonField' } });
    }
  });
});

it('a value with more entries than a form shows has no form', () => {
  const form = formOf(object({ l: { type: 'array', items: object(many(10, { type: 'string' })) } }));
  expect(valueFault(form, { l: Array(20).fill({}) })).toBeNull();
  expect(valueFault(form, { l: Array(60).fill({}) })).toMatch(/400 fields/);
});

it('a fault at a name of the prototype is shown for the whole value, and changes no prototype', () => {
  const faults = ['__proto__.polluted', 'constructor.prototype.polluted', 'a.0'].map((at) => ({
    at,
    text: at,
    syntax: false,
  }));
  expect(errorSchemaOf(faults)).toMatchObject({
    __errors: [faults[0]?.text, faults[1]?.text],
    a: { 0: { __errors: ['a.0'] } },
  });
  expect(Reflect.get({}, 'polluted')).toBeUndefined();
});

describe('the alternative of a value', () => {
  const one = {
    type: 'object',
    required: ['kind', 'to'],
    properties: { kind: { const: 'one' }, to: { type: 'string' } },
  };
  const { o: choice } = formOf(object({ o: { anyOf: [one, { type: 'integer', minimum: 5 }, { const: 'x' }] } })).schema
    .properties as Record<string, object>;

  it.each([
    [{ kind: 'one', to: 'bob' }, 0],
    [{ kind: 'one' }, 0],
    [3, 1],
    ['x', 2],
    [{ kind: 'two' }, -1],
    [null, -1],
  ])('%j is the one at %i', (value, at) => expect(choiceIn(choice ?? {}, value)).toBe(at));
});
