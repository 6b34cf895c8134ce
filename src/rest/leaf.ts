/** Gives the JSON form and the JSON Schema of GraphQL scalars and enums. */
import { isEnumType, type GraphQLEnumType, type GraphQLScalarType } from 'graphql';
import { hasAtMost } from '../core/ids.ts';
import type { Form } from './forms.ts';
import { named, type JsonSchema } from './named.ts';

/**
 * What is required of an argument or field in addition to its GraphQL type: the inclusive bounds in its extensions, and
 * the form that core checks.
 */
export type Bounds = { readonly minimum?: number; readonly maximum?: number; readonly form?: Form | undefined };

/**
 * The REST form of one scalar or enum. `fromText` and `fromJson` return the value for a GraphQL variable, or undefined
 * when the text or JSON value is not of this type.
 */
export type Leaf = {
  readonly schema: JsonSchema;
  readonly expected: string;
  /** Reads the text of a path segment or a query value. Null: the type has no form in a path or a query. */
  readonly fromText: ((raw: string) => unknown) | null;
  readonly fromJson: (value: unknown) => unknown;
  /** What `fromJson` receives: a parsed value, or JSON text where the value passes through. */
  readonly shape: 'plain' | 'text';
};

/** The greatest Int of GraphQL. */
const INT32 = 2_147_483_647;
/** The most characters of an id. */
const ID_CHARS = 512;
/** The most characters of a text: long enough for a cursor that contains the longest names. */
const TEXT_CHARS = 4096;
/** The last and the first accepted time, in epoch milliseconds: RFC 3339 years have four digits. */
const LAST_TIME = 253_402_300_799_999;
const FIRST_TIME = -62_135_596_800_000;
/** Matches times of the years 0001 to 9999, without leap seconds, with at most nanoseconds and any offset. */
const TIME_PATTERN =
  '^(?!0000)\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])[Tt]([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?([Zz]|[+-]([01]\\d|2[0-3]):[0-5]\\d)$';
const RFC3339 = new RegExp(TIME_PATTERN);
const TIME_SCHEMA = named('TimeInput', {
  description: 'An RFC 3339 time with any offset, or epoch milliseconds.',
  anyOf: [
    { type: 'string', format: 'date-time', pattern: TIME_PATTERN },
    { type: 'integer', minimum: 0, maximum: LAST_TIME },
  ],
});

const SCALARS: Readonly<Record<string, (bounds: Bounds) => Leaf>> = {
  Int: intLeaf,
  Boolean: () => ({
    schema: { type: 'boolean' },
    expected: 'true or false',
    fromText: (raw) => (raw === 'true' ? true : raw === 'false' ? false : undefined),
    fromJson: (value) => (typeof value === 'boolean' ? value : undefined),
    shape: 'plain',
  }),
  ID: ({ form }) => textLeaf(ID_CHARS, form),
  String: ({ form }) => textLeaf(TEXT_CHARS, form),
  DateTime: () => ({
    schema: TIME_SCHEMA,
    expected: 'an RFC 3339 time or epoch milliseconds',
    fromText: (raw) => (/^\d{1,15}$/.test(raw) ? fromEpoch(Number(raw)) : fromRfc3339(raw)),
    fromJson: (value) =>
      typeof value === 'number' ? fromEpoch(value) : typeof value === 'string' ? fromRfc3339(value) : undefined,
    shape: 'plain',
  }),
  JSON: ({ form }) => ({
    schema: form?.schema ?? {},
    expected: 'JSON',
    fromText: null,
    fromJson: (value) => value,
    shape: 'text',
  }),
};

/** Returns the REST form of a scalar or enum. Null when REST has no form for it. */
export function leafOf(type: GraphQLScalarType | GraphQLEnumType, bounds: Bounds = {}): Leaf | null {
  if (isEnumType(type)) return enumLeaf(type);
  return Object.hasOwn(SCALARS, type.name) ? (SCALARS[type.name]?.(bounds) ?? null) : null;
}

/** Returns the wire word of each enum value, by its GraphQL name. The wire word is the internal value. */
export function wireWords(type: GraphQLEnumType): ReadonlyMap<string, string> {
  return new Map(type.getValues().map(({ name, value }) => [name, String(value)]));
}

export function enumSchema(type: GraphQLEnumType): JsonSchema {
  const description = type.description ? { description: type.description } : {};
  return { type: 'string', ...description, enum: [...wireWords(type).values()] };
}

/** Creates the form of an enum. GraphQL variables take enum names; a request carries wire words. */
function enumLeaf(type: GraphQLEnumType): Leaf {
  const names = new Map([...wireWords(type)].map(([name, word]) => [word, name]));
  const words = [...names.keys()];
  return {
    schema: named(type.name, enumSchema(type)),
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

/** Creates the form of a text. It checks the length only; core checks the rest. */
function textLeaf(longest: number, form: Form | undefined): Leaf {
  const check = (text: string) =>
    text.length > 0 && hasAtMost(text, longest) && text.isWellFormed() ? text : undefined;
  return {
    schema: form?.schema ?? { type: 'string', minLength: 1, maxLength: longest },
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
  // An offset can move a time of the first or the last day out of the years that have four digits.
  return exists ? new Date(Math.min(Math.max(ms, FIRST_TIME), LAST_TIME)).toISOString() : undefined;
}
