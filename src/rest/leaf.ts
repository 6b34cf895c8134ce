/** The JSON form and the JSON Schema of scalars and enums. */
import { isEnumType, type GraphQLEnumType, type GraphQLScalarType } from 'graphql';

/** A JSON Schema (2020-12, as OpenAPI 3.1 takes it). */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** The bounds that an argument or field of the schema carries in its extensions. Both are inclusive. */
export type Bounds = { readonly minimum?: number; readonly maximum?: number };

/**
 * The REST form of one scalar or enum. `fromText` and `fromJson` return the value for a GraphQL variable, or undefined
 * when the text or JSON value is not of this type.
 */
export type Leaf = {
  readonly schema: JsonSchema;
  readonly expected: string;
  /** Null: the type has no form in a path or a query. */
  readonly fromText: ((raw: string) => unknown) | null;
  readonly fromJson: (value: unknown) => unknown;
  /** What `fromJson` receives: a parsed value, or JSON text where the value passes through. */
  readonly shape: 'plain' | 'text';
};

const INT32 = 2_147_483_647;
const ID_CHARS = 512;
/** Long enough for a cursor that contains the longest names. */
const TEXT_CHARS = 4096;
/** The last millisecond of the year 9999: RFC 3339 years have four digits. */
const LAST_TIME = 253_402_300_799_999;
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/i;

const SCALARS: Readonly<Record<string, (bounds: Bounds) => Leaf>> = {
  Int: intLeaf,
  Boolean: () => ({
    schema: { type: 'boolean' },
    expected: 'true or false',
    fromText: (raw) => (raw === 'true' ? true : raw === 'false' ? false : undefined),
    fromJson: (value) => (typeof value === 'boolean' ? value : undefined),
    shape: 'plain',
  }),
  ID: () => textLeaf(ID_CHARS),
  String: () => textLeaf(TEXT_CHARS),
  DateTime: () => ({
    schema: {
      anyOf: [
        { type: 'string', format: 'date-time' },
        { type: 'integer', minimum: 0, maximum: LAST_TIME },
      ],
    },
    expected: 'an RFC 3339 time or epoch milliseconds',
    fromText: (raw) => (/^\d{1,15}$/.test(raw) ? fromEpoch(Number(raw)) : fromRfc3339(raw)),
    fromJson: (value) =>
      typeof value === 'number' ? fromEpoch(value) : typeof value === 'string' ? fromRfc3339(value) : undefined,
    shape: 'plain',
  }),
  JSON: () => ({ schema: {}, expected: 'JSON', fromText: null, fromJson: (value) => value, shape: 'text' }),
};

/** Null when REST has no form for the scalar. */
export function leafOf(type: GraphQLScalarType | GraphQLEnumType, bounds: Bounds = {}): Leaf | null {
  if (isEnumType(type)) return enumLeaf(type);
  return Object.hasOwn(SCALARS, type.name) ? (SCALARS[type.name]?.(bounds) ?? null) : null;
}

/** The wire word of each enum value, by its GraphQL name. The wire word is the internal value. */
export function wireWords(type: GraphQLEnumType): ReadonlyMap<string, string> {
  return new Map(type.getValues().map(({ name, value }) => [name, String(value)]));
}

/** GraphQL variables take enum names; a request carries wire words. */
function enumLeaf(type: GraphQLEnumType): Leaf {
  const names = new Map([...wireWords(type)].map(([name, word]) => [word, name]));
  const words = [...names.keys()];
  return {
    schema: { type: 'string', enum: words },
    expected: `one of ${words.join(', ')}`,
    fromText: (raw) => names.get(raw),
    fromJson: (value) => (typeof value === 'string' ? names.get(value) : undefined),
    shape: 'plain',
  };
}

function intLeaf({ minimum = -INT32 - 1, maximum = INT32 }: Bounds): Leaf {
  const bounded = minimum > -INT32 - 1 || maximum < INT32;
  const check = (value: number) =>
    Number.isInteger(value) && value >= minimum && value <= maximum ? value : undefined;
  return {
    schema: { type: 'integer', ...(bounded ? { minimum, maximum } : { format: 'int32' }) },
    expected: bounded ? `an integer, ${minimum} to ${maximum}` : 'an integer',
    fromText: (raw) => (/^-?\d{1,10}$/.test(raw) ? check(Number(raw)) : undefined),
    fromJson: (value) => (typeof value === 'number' ? check(value) : undefined),
    shape: 'plain',
  };
}

function textLeaf(longest: number): Leaf {
  const check = (text: string) => (text.length > 0 && text.length <= longest && text.isWellFormed() ? text : undefined);
  return {
    schema: { type: 'string', minLength: 1, maxLength: longest },
    expected: `1 to ${longest} characters`,
    fromText: check,
    fromJson: (value) => (typeof value === 'string' ? check(value) : undefined),
    shape: 'plain',
  };
}

function fromEpoch(ms: number): string | undefined {
  return Number.isInteger(ms) && ms >= 0 && ms <= LAST_TIME ? new Date(ms).toISOString() : undefined;
}

function fromRfc3339(text: string): string | undefined {
  if (!RFC3339.test(text)) return undefined;
  const ms = Date.parse(text.toUpperCase());
  // `Date.parse` reads 30 February as 2 March. A date that does not exist is refused, because it would silently move a
  // bound.
  const day = text.slice(0, 10);
  const exists = !Number.isNaN(Date.parse(day)) && new Date(`${day}T00:00:00Z`).toISOString().startsWith(day);
  return Number.isNaN(ms) || !exists || ms < -62_135_596_800_000 || ms > LAST_TIME
    ? undefined
    : new Date(ms).toISOString();
}
