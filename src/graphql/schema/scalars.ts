/** Defines the GraphQL scalars DateTime and JSON: how their values are parsed and printed. */
import { GraphQLError, Kind, type GraphQLNamedInputType, type GraphQLNamedOutputType, type ValueNode } from 'graphql';
import { RawJson, checkedJson, toJson, writeJson, type JsonText } from '../../core/json.ts';
import { FIRST_EPOCH_MS, JSON_DEPTH } from '../../core/limits.ts';

const RFC_3339 = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/i;
const MAX_EPOCH_MS = 8.64e15;

/**
 * Formats epoch milliseconds in UTC as RFC 3339 with milliseconds. Throws a RangeError for a value that is not a time.
 */
export function printTime(epochMs: number): string {
  if (epochMs >= last.from && epochMs < last.from + HOUR_MS && Number.isInteger(epochMs)) return inHour(epochMs);
  const text = new Date(epochMs).toISOString();
  last = { from: Math.floor(epochMs / HOUR_MS) * HOUR_MS, head: text.slice(0, -'00:00.000Z'.length) };
  return text;
}

const HOUR_MS = 3_600_000;
const MINUTES = numbered(60, 2, ':');
const SECONDS = numbered(60, 2, '.');
const MILLISECONDS = numbered(1_000, 3, 'Z');

/** The text before the minutes of the last time. It is cached because most times of one answer are in the same hour. */
let last = { from: 0, head: '1970-01-01T00:' };

function inHour(epochMs: number): string {
  const ms = epochMs - last.from;
  const seconds = Math.floor(ms / 1_000);
  const minute = MINUTES[Math.floor(seconds / 60)] ?? '';
  return last.head + minute + (SECONDS[seconds % 60] ?? '') + (MILLISECONDS[ms % 1_000] ?? '');
}

function numbered(count: number, digits: number, end: string): readonly string[] {
  return Array.from({ length: count }, (_, n) => String(n).padStart(digits, '0') + end);
}

/**
 * Parses a time to epoch milliseconds: RFC 3339 with any offset, or a number of epoch milliseconds (0, or
 * FIRST_EPOCH_MS and later). Throws a GraphQLError for anything else.
 */
export function parseTime(value: unknown): number {
  if (typeof value === 'number' && value !== 0 && Math.abs(value) < FIRST_EPOCH_MS)
    throw new GraphQLError('Expected an RFC 3339 time or epoch milliseconds; the number looks like seconds.');
  const time = typeof value === 'string' ? parseText(value) : value;
  if (typeof time === 'number' && Number.isInteger(time) && Math.abs(time) <= MAX_EPOCH_MS) return time;
  throw new GraphQLError('Expected an RFC 3339 time or epoch milliseconds.');
}

function parseText(text: string): number {
  const [, year, month, day] = RFC_3339.exec(text) ?? [];
  if (year === undefined) return Number.NaN;
  // Date.parse accepts a day that the month does not have, and returns a day of the next month.
  const inMonth = Number(day) <= new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  return inMonth ? Date.parse(text) : Number.NaN;
}

// The scalar JSON passes payloads through as text, so that numbers and the order of members stay as they were sent.

/**
 * The scalar `JSON`. Resolvers receive a RawJson, and return JSON text that is passed through unchanged. In results of
 * graphql-js the value is a RawJson, which `writeJson` serializes. The writer (writer/compile.ts) writes the text
 * directly.
 */
export const jsonScalar = {
  extensions: { jsonText: true },
  serialize: (text: JsonText): RawJson => new RawJson(text),
  parseValue: (value: unknown): RawJson => (value instanceof RawJson ? value : rawOf(textOfValue(value))),
  parseLiteral: (node: ValueNode, variables?: Variables | null): RawJson =>
    rawOf(literalText(node, variables) ?? 'null'),
};

type Variables = Readonly<Record<string, unknown>>;

/** Whether a type is the scalar `JSON`, of the GraphQL schema or of the REST schema. */
export function isJsonScalar({ extensions }: GraphQLNamedInputType | GraphQLNamedOutputType): boolean {
  return extensions['jsonText'] === true;
}

/** Returns the JSON text of an input; null if the input was omitted or null. */
export function textOfJson(given: RawJson | null | undefined): JsonText | null {
  return given?.text ?? null;
}

/**
 * Returns the JSON text of a variable's value. For a value that cannot be serialized, returns an empty text, which is
 * invalid JSON.
 */
function textOfValue(value: unknown): string {
  try {
    return toJson(value) ?? 'null';
  } catch {
    // The value contains itself, or is nested deeper than the stack allows.
    return '';
  }
}

/**
 * Returns the text as RawJson. Throws a GraphQLError if the text is not JSON, or is nested deeper than JSON_DEPTH,
 * which could overflow the stack of a program that reads it later.
 */
function rawOf(text: string): RawJson {
  const json = checkedJson(text);
  if (json === null) throw new GraphQLError(`JSON may be nested at most ${JSON_DEPTH} levels deep.`);
  return new RawJson(json);
}

/**
 * Returns a literal as JSON text, in which numbers are spelled as in the document. Undefined for a variable without a
 * value.
 */
function literalText(node: ValueNode, variables: Variables | null | undefined): string | undefined {
  switch (node.kind) {
    case Kind.INT:
    case Kind.FLOAT:
      return node.value;
    case Kind.LIST:
      return `[${node.values.map((item) => literalText(item, variables) ?? 'null').join(',')}]`;
    case Kind.OBJECT: {
      const members = node.fields.map(({ name, value }) => memberText(name.value, literalText(value, variables)));
      return `{${members.filter((text) => text !== null).join(',')}}`;
    }
    case Kind.VARIABLE:
      return writeJson(variables?.[node.name.value]);
    case Kind.NULL:
      return 'null';
    case Kind.STRING:
    case Kind.BOOLEAN:
    case Kind.ENUM:
      return JSON.stringify(node.value);
  }
}

function memberText(name: string, text: string | undefined): string | null {
  return text === undefined ? null : `${JSON.stringify(name)}:${text}`;
}
