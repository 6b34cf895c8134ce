/** Tests that faults of arguments are said in a few words of the console, once, for the alternative that was meant. */
import { Validator, type Schema } from '@cfworker/json-schema';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { faultsOf } from '../../src/console/invoke/fault-texts.ts';

function said(schema: Schema, value: unknown): readonly string[] {
  const { errors } = new Validator(schema, '2020-12', false).validate(value);
  return faultsOf(errors).map(({ at, text }) => (at === '' ? text : `${at}: ${text}`));
}

const closed = (properties: object, required: string[] = []): Schema => ({
  type: 'object',
  additionalProperties: false,
  properties: { ...properties },
  required,
});
const printer = closed({ kind: { const: 'printer' }, tray: { type: 'string' } }, ['kind']);
const email = closed({ kind: { const: 'email' }, to: { type: 'string' } }, ['kind', 'to']);

it.each<readonly [string, Schema, unknown, readonly string[]]>([
  ['a bound', closed({ copies: { type: 'integer', maximum: 20 } }), { copies: 24 }, ['copies: At most 20.']],
  ['a bound with a fraction', { minimum: 0.5 }, 0.25, ['At least 0.5.']],
  ['a negative bound', { exclusiveMaximum: -1 }, 3, ['Less than -1.']],
  ['a small bound', { minimum: 1e-7 }, 0, ['At least 1e-7.']],
  ['a length', { minLength: 1 }, '', ['At least 1 character.']],
  ['a list', { minItems: 2 }, [1], ['At least 2 entries.']],
  ['equal entries', { uniqueItems: true }, [1, 2, 1], ['Entries 1 and 3 are equal.']],
  ['a type of several', { type: ['string', 'null'] }, 7, ['Must be text or null.']],
  ['a missing member', closed({ to: { type: 'string' } }, ['to']), {}, ['to: Required.']],
  ['a member that is not allowed', closed({}), { 'a/b': 1 }, ['a/b: The schema has no such name.']],
  ['a member with a fault of its own', closed({ one: { type: 'string' } }), { one: 1 }, ['one: Must be text.']],
  ['a deep fault', closed({ one: closed({ two: { const: 1 } }) }), { one: { two: 2 } }, ['one.two: Must be 1.']],
  ['a constant', { const: 'a."b".' }, 'c', ['Must be "a.\\"b\\".".']],
  ['a choice', { enum: ['80 mm', 'A4'] }, 'A5', ['One of "80 mm", "A4".']],
  ['constants to choose from', { oneOf: [{ const: 'a' }, { const: 'b' }] }, 'c', ['One of "a", "b".']],
  [
    'types to choose from',
    { anyOf: [{ type: 'integer' }, { type: 'null' }] },
    'c',
    ['Must be a whole number or null.'],
  ],
  ['the alternative that was meant', { oneOf: [printer, email] }, { kind: 'email' }, ['to: Required.']],
  ['a member of the alternative', { oneOf: [printer, email] }, { kind: 'printer', tray: 1 }, ['tray: Must be text.']],
  ['no alternative', { oneOf: [printer, email] }, { kind: 'fax' }, ['kind: One of "printer", "email".']],
  [
    'two alternatives',
    { oneOf: [{ type: 'number' }, { minimum: 1 }] },
    5,
    ['Fits several alternatives, and must fit one.'],
  ],
  [
    'an alternative in an entry',
    { items: { anyOf: [printer, email] } },
    [{ kind: 'printer' }, { kind: 'email', to: 5 }],
    ['1.to: Must be text.'],
  ],
  ['what a list must contain', { contains: { const: 3 } }, [1], ['No entry is of the kind that the schema asks for.']],
  [
    'a reference',
    { $defs: { n: { maximum: 2 } }, properties: { n: { $ref: '#/$defs/n' } } },
    { n: 3 },
    ['n: At most 2.'],
  ],
])('%s', (_, schema, value, texts) => {
  expect(said(schema, value)).toEqual(texts);
});

it('has a text for every fault, and none of the library', () => {
  const parts: readonly Schema[] = [{ maximum: 1 }, { const: 1 }, { oneOf: [{ const: 1 }] }, printer, email];
  const part = fc.constantFrom<Schema>(...parts, { type: 'string' }, { not: {} });
  const schemas: fc.Arbitrary<Schema> = fc.record(
    {
      ...{ properties: fc.dictionary(fc.constantFrom('a', 'kind', 'to'), part), items: part, contains: part },
      ...{ additionalProperties: fc.oneof(part, fc.boolean()), propertyNames: part, not: part },
      ...{ anyOf: fc.array(part, { minLength: 1 }), oneOf: fc.array(part, { minLength: 1 }) },
      ...{ dependentRequired: fc.constant<Record<string, string[]>>({ a: ['b'] }) },
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(schemas, fc.jsonValue({ maxDepth: 2 }), (schema, value) => {
      const { valid, errors } = new Validator(schema, '2020-12', false).validate(value);
      const faults = faultsOf(errors);
      expect(faults.length > 0).toBe(!valid);
      for (const { text } of faults) expect(text).not.toMatch(/Instance |Property "|boolean/);
    }),
  );
});
