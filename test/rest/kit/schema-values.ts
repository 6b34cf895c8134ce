/** Makes values that fit a JSON Schema of the OpenAPI document. */
import fc from 'fast-check';

/** A JSON Schema of the OpenAPI document, its references included. */
export type Schema = { readonly [keyword: string]: any };

/** Finds the schema that a `$ref` of the document names. */
export function resolverOf(document: Schema): (schema: Schema) => Schema {
  const resolve = (schema: Schema): Schema => {
    const { $ref, ...rest } = schema;
    if ($ref === undefined) return schema;
    const parts = String($ref).slice('#/'.length).split('/');
    const found: Schema = parts.reduce((at: Schema, part) => at[part], document);
    return { ...resolve(found), ...rest };
  };
  return resolve;
}

const LOOKAHEAD = /\(\?[=!](?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)/g;

/** Draws values that the schema allows; often the shortest and the longest ones. */
export function allowed(schema: Schema, resolve: (schema: Schema) => Schema): fc.Arbitrary<unknown> {
  const whole = resolve(schema);
  const inner = (one: Schema): fc.Arbitrary<unknown> => allowed(one, resolve);
  if ('const' in whole) return fc.constant(whole['const']);
  if (whole['anyOf']) return fc.oneof(...whole['anyOf'].map(inner));
  if (whole['enum']) return fc.constantFrom(...whole['enum']);
  const types: readonly string[] = [whole['type'] ?? []].flat();
  if (types.length === 0) return fc.jsonValue({ maxDepth: 3 });
  return fc.oneof(...types.map((type) => ofType(type, whole, inner)));
}

function ofType(type: string, schema: Schema, inner: (schema: Schema) => fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  switch (type) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer': {
      const { minimum = -(2 ** 31), maximum = 2 ** 31 - 1 } = schema;
      return fc.oneof(fc.integer({ min: minimum, max: maximum }), fc.constantFrom(minimum, maximum));
    }
    case 'string':
      return ofString(schema);
    case 'array': {
      const { minItems = 0, maxItems = 20 } = schema;
      const item = inner(schema['items']);
      const most = fc.array(item, { minLength: maxItems, maxLength: maxItems, size: 'max' });
      return fc.oneof(
        { weight: 9, arbitrary: fc.array(item, { minLength: minItems, maxLength: Math.min(maxItems, minItems + 5) }) },
        { weight: 1, arbitrary: most },
      );
    }
    case 'object':
      return ofObject(schema, inner);
    default:
      throw new Error(`no values of type ${type}`);
  }
}

function ofString({ format, pattern, minLength = 0, maxLength = 600 }: Schema): fc.Arbitrary<string> {
  if (format === 'date-time') return ofTime(new RegExp(pattern, 'u'));
  const fits = (text: string): boolean => [...text].length >= minLength && [...text].length <= maxLength;
  const characters = { unit: 'binary', minLength, maxLength } as const;
  const free = fc.oneof(
    fc.string({ ...characters, maxLength: Math.min(maxLength, minLength + 10) }),
    fc.string({ ...characters, minLength: maxLength, size: 'max' }),
    fc.string({ minLength, maxLength, unit: 'grapheme-ascii' }),
  );
  if (pattern === undefined) return free;
  const whole = new RegExp(pattern, 'u');
  const matching = fc.stringMatching(new RegExp(pattern.replaceAll(LOOKAHEAD, ''), 'u'));
  // A search for free texts that match takes minutes for a narrow pattern, so one try has to do.
  const tried = fc.tuple(free, matching).map(([text, sure]) => (whole.test(text) ? text : sure));
  return fc.oneof(matching, tried).filter((text) => fits(text) && whole.test(text));
}

function ofTime(pattern: RegExp): fc.Arbitrary<string> {
  const range = { min: new Date('0001-01-02T00:00:00Z'), max: new Date('9999-12-30T00:00:00Z'), noInvalidDate: true };
  const offset = fc.stringMatching(/^([+-]([01]\d|2[0-3]):[0-5]\d|[zZ])$/);
  const fraction = fc.stringMatching(/^(\.\d{1,9})?$/);
  const made = fc.tuple(fc.date(range), fraction, offset, fc.constantFrom('T', 't'));
  const edges = fc.constantFrom(
    '0001-01-01T00:00:00+23:59',
    '9999-12-31T23:59:59.999999999-23:59',
    '2024-02-29T00:00:00Z',
  );
  return fc
    .oneof(
      made.map(([date, part, zone, t]) => date.toISOString().slice(0, 19).replace('T', t) + part + zone),
      edges,
    )
    .filter((text) => pattern.test(text));
}

function ofObject(schema: Schema, inner: (schema: Schema) => fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const { properties, required = [], propertyNames } = schema;
  if (properties === undefined) {
    const names = propertyNames ? new RegExp(propertyNames['pattern'], 'u') : /^/;
    return fc.dictionary(
      fc.string().filter((name) => names.test(name)),
      fc.jsonValue({ maxDepth: 2 }),
    );
  }
  const members = Object.entries<Schema>(properties).map(([name, one]) => [name, inner(one)] as const);
  return fc.record(Object.fromEntries(members), { requiredKeys: required });
}

const ODD_TEXTS: readonly string[] = [
  ...[
    '',
    ' ',
    '/',
    'a b',
    'a\u0000b',
    'é/',
    '.',
    '..',
    'callboard.x',
    'error',
    'clients/a',
    '9',
    'no-such-word',
    '1.5',
  ],
  ...[128, 256, 1032, 4096].map((length) => 'x'.repeat(length + 1)),
];

/**
 * Returns values that the schema may not allow: values of other types, values just outside of its limits, and lists
 * with too many items. The caller removes the values that the schema does allow.
 */
export function odd(schema: Schema, resolve: (schema: Schema) => Schema): readonly unknown[] {
  const whole = resolve(schema);
  const parts: readonly Schema[] = [whole, ...(whole['anyOf'] ?? []).map(resolve)];
  const bounds = parts.flatMap(({ minimum, maximum }) => [minimum - 1, maximum + 1]).filter(Number.isFinite);
  const lists = parts.flatMap(({ items, minItems = 0, maxItems }) => {
    if (maxItems === undefined) return [];
    const [one] = fc.sample(allowed(items, resolve), 1);
    const most: unknown[] = Array.from({ length: maxItems + 1 }, () => one);
    return minItems > 0 ? [most, []] : [most];
  });
  const params = [{ __cooperative_site_id: 1 }, { __COOPERATIVE_site_x: null }];
  return [...ODD_TEXTS, ...bounds, ...lists, ...params, 1.5, true, { a: 1 }, [{}]];
}
