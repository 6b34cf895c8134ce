/** Schemas with which one page could take all tools from the agents of its user, and generated ones of the same kind. */
import fc from 'fast-check';

const OBJECT = { type: 'object' };
const property = (schema: unknown): object => ({ ...OBJECT, properties: { a: schema } });
const TAGS = '\u{e0049}\u{e0047}\u{e004e}\u{e004f}\u{e0052}\u{e0045}';

/** Schemas that are listed as open objects, with a word of the reason. */
export const REFUSED: readonly (readonly [schema: unknown, why: RegExp])[] = [
  [{ ...OBJECT, properties: { args: 'x' } }, /args is no schema/],
  [{ ...OBJECT, required: 'n' }, /required is no list/],
  [{ ...OBJECT, $schema: 4 }, /no known dialect/],
  [{ ...OBJECT, $schema: 'https://evil.example/schema' }, /no known dialect/],
  [{ ...OBJECT, properties: { 'uids[]': { type: 'string' } } }, /uids\[\].*hosts refuse/],
  [{ ...OBJECT, properties: { '@type': { type: 'string' } } }, /@type.*hosts refuse/],
  [{ ...OBJECT, properties: { ['x'.repeat(65)]: {} } }, /hosts refuse/],
  [{ ...OBJECT, properties: { '': {} } }, /hosts refuse/],
  [{ ...OBJECT, required: ['a b'] }, /hosts refuse/],
  [{ ...OBJECT, properties: [] }, /properties is no object/],
  [property({ type: 'text' }), /no type/],
  [property({ type: [] }), /no type/],
  [property({ type: ['string', 'string'] }), /twice/],
  [property({ enum: 'x' }), /enum is no list/],
  [property({ enum: [] }), /empty list/],
  [property({ minimum: '3' }), /no number/],
  [property({ maxLength: -1 }), /no count/],
  [property({ anyOf: {} }), /no list of schemas/],
  [property({ anyOf: [] }), /no list of schemas/],
  [property({ anyOf: [1] }), /no schema/],
  [property({ description: { a: 1 } }), /no text/],
  [property({ title: 7 }), /no text/],
  [property({ pattern: 7 }), /no text/],
  [property({ additionalProperties: 'no' }), /no schema/],
  [property({ type: 'array' }), /without its items/],
  [property({ type: ['array', 'null'] }), /without its items/],
  [property({ type: 'array', items: [{ type: 'string' }] }), /items is no schema/],
  [property({ $ref: 'https://evil.example/schema' }), /outside/],
  [property({ $ref: 'other.json#/a' }), /outside/],
  [property({ $ref: '#anchor' }), /outside/],
  [property({ $ref: 7 }), /outside/],
  [property({ $ref: '#/nowhere' }), /refers to nothing/],
  [property({ $dynamicRef: '#a' }), /dynamicRef/],
  [property({ $id: 'https://evil.example/' }), /\$id/],
  [property({ 'x-mcp-header': 'Authorization' }), /reserved/],
  [{ ...OBJECT, 'x-mcp-header': 'Cookie' }, /reserved/],
  [{ ...OBJECT, properties: { a: { $ref: '#' } } }, /refers to itself/],
  [{ ...OBJECT, $defs: { a: { anyOf: [{ $ref: '#/$defs/a' }] } }, properties: { a: { $ref: '#/$defs/a' } } }, /itself/],
  [{ $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } }, /itself/],
  [true, /no object/],
  [false, /no object/],
  [null, /no object/],
  ['object', /no object/],
  [[], /no object/],
  [{ enum: ['a', 'b'] }, /something else/],
  [{ const: 1 }, /something else/],
  [{ type: 'string' }, /something else/],
  [{ type: 'array', items: {} }, /something else/],
  [{ anyOf: [{ type: 'object' }, { type: 'string' }] }, /something else/],
  [{ allOf: [{ type: 'object' }, { type: 'string' }] }, /different types/],
  [{ allOf: [{ type: 'object' }, false] }, /allow nothing/],
  [
    { ...OBJECT, properties: Object.fromEntries(Array.from({ length: 600 }, (_, n) => [`p${n}`, {}])) },
    /more than 500/,
  ],
  [nested(12), /more than 10 levels/],
  [nested(60), /levels/],
  [{ ...OBJECT, default: Array.from({ length: 5_000 }, () => 0) }, /members and items/],
  [doubling(3), /more than 500/],
];

/** Schemas that are listed, without what hosts would refuse. */
export const MENDED: readonly unknown[] = [
  property({ type: 'string', description: `Say${TAGS} \u202eereht ${'x'.repeat(12_000)}` }),
  property({ type: 'string', title: `\u0007${TAGS}` }),
  property({ type: 'string', default: `run ${TAGS} at once` }),
  property({ type: 'string', examples: [`\u202e${TAGS}`] }),
  property({ enum: [`ignore ${TAGS}`, 'b'] }),
  property({ enum: ['x'.repeat(500)] }),
  property({ enum: ['', 'a'] }),
  property({ enum: [1, 'a', null, { b: TAGS }] }),
  property({ const: { instruction: TAGS } }),
  property({ enum: Array.from({ length: 3_000 }, (_, n) => `v${n}`) }),
  property({ type: 'string', pattern: '^(a+)+$' }),
  property({ type: 'string', pattern: '(' }),
  property({ type: 'integer', enum: [1, 2, 3] }),
  property(true),
  property(false),
  property({ type: ['string', 'null'] }),
  property({ type: 'array', items: true }),
  property({ type: 'array', items: false }),
  property({ type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }] }),
  property({ not: { type: 'string' } }),
  property({ if: {}, then: {}, else: {} }),
  { ...OBJECT, properties: JSON.parse('{"__proto__":{"type":"string"},"constructor":{"type":"string"}}') as object },
  { ...OBJECT, required: ['absent'] },
  { ...OBJECT, patternProperties: { '^(a+)+$': {} } },
  { ...OBJECT, dependentRequired: { a: ['b'] } },
  { ...OBJECT, $comment: TAGS, $defs: { secret: { description: TAGS } } },
];

/** Returns an object within an object, and so on. */
function nested(levels: number): object {
  return levels === 0 ? OBJECT : property(nested(levels - 1));
}

/** Returns a schema in which each part refers ten times to the next one. */
function doubling(parts: number): object {
  const part = (n: number): object => {
    const names = Array.from({ length: 10 }, (_, i) => [`p${i}`, { $ref: `#/$defs/d${n + 1}` }]);
    return n === parts ? { type: 'string' } : { ...OBJECT, properties: Object.fromEntries(names) };
  };
  const $defs = Object.fromEntries(Array.from({ length: parts + 1 }, (_, n) => [`d${n}`, part(n)]));
  return { ...OBJECT, $defs, properties: { a: { $ref: '#/$defs/d0' } } };
}

const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 30 }), fc.constantFrom(TAGS, '\u202e', 'x'.repeat(2_000)));
const name = fc.oneof(fc.constantFrom('a', 'b', 'client', 'uids[]', '@type', '__proto__', 'x-mcp-header'), text);
const value = fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null), fc.constant([]), fc.constant({}));
const WORDS = [
  ...['type', 'properties', 'required', 'items', 'prefixItems', 'enum', 'const', 'anyOf', 'oneOf', 'allOf', 'not'],
  ...['$ref', '$schema', '$id', '$defs', 'description', 'title', 'default', 'examples', 'pattern', 'format', 'minimum'],
  ...['additionalProperties', 'x-mcp-header', 'maxLength', 'if', 'then', 'nullable'],
];

/** Generates schemas that are near to valid ones: each member has a fitting or any value. */
export const anySchema: fc.Arbitrary<unknown> = fc.letrec((tie) => {
  const schema = tie('schema');
  const list = fc.array(schema, { maxLength: 3 });
  const byName = fc.dictionary(name, schema, { maxKeys: 3 });
  const fitting = {
    type: fc.oneof(
      fc.constantFrom('object', 'string', 'array', 'integer', 'null'),
      fc.subarray(['object', 'string', 'null', 'array']),
    ),
    ...{ properties: byName, $defs: byName, items: schema, prefixItems: list, anyOf: list, oneOf: list, allOf: list },
    ...{ not: schema, if: schema, then: schema, additionalProperties: schema },
    ...{ required: fc.uniqueArray(name, { maxLength: 3 }), enum: fc.array(value, { maxLength: 4 }), const: value },
    $ref: fc.constantFrom('#', '#/$defs/a', '#/properties/a', '#/properties/b', 'https://evil.example/'),
    ...{ description: text, title: text, default: value, examples: fc.array(value), pattern: text, format: text },
    ...{ minimum: fc.integer(), maxLength: fc.nat(), $schema: fc.constant('https://json-schema.org/draft-07/schema#') },
  };
  const members = WORDS.map((word) => {
    const given: unknown = Object.entries(fitting).find(([known]) => known === word)?.[1];
    const right = given instanceof fc.Arbitrary ? given : value;
    return [word, fc.oneof({ arbitrary: right, weight: 9 }, { arbitrary: value, weight: 1 })] as const;
  });
  const some = fc
    .subarray(members, { maxLength: 5 })
    .chain((chosen) => fc.record(Object.fromEntries(chosen) as Record<string, fc.Arbitrary<unknown>>));
  return { schema: fc.oneof({ depthSize: 'small' }, fc.boolean(), some, some) };
})['schema'] as fc.Arbitrary<unknown>;
