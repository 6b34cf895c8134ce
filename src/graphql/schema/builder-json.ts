/** The scalar JSON: payloads pass through as text, so numbers and the order of members stay as they were sent. */
import { GraphQLError, Kind, type GraphQLNamedInputType, type GraphQLNamedOutputType, type ValueNode } from 'graphql';
import { checkedJson, RawJson, toJson, writeJson, type JsonText } from '../../core/json.ts';
import { JSON_DEPTH } from '../../core/limits.ts';

/**
 * The scalar `JSON`, whose text passes through unchanged. Resolvers receive a RawJson and return JSON text. In results
 * of graphql-js the value is a RawJson, which `writeJson` serializes; the writer (writer/compile.ts) writes the text
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

/** Whether this is the scalar `JSON`, of the GraphQL schema or of that for REST. */
export function isJsonScalar({ extensions }: GraphQLNamedInputType | GraphQLNamedOutputType): boolean {
  return extensions['jsonText'] === true;
}

/** Returns the JSON text of an input; null if it was omitted or null. */
export function textOfJson(given: RawJson | null | undefined): JsonText | null {
  return given?.text ?? null;
}

/** Returns the JSON text of a variable's value. Empty, so invalid, for a value that cannot be serialized. */
function textOfValue(value: unknown): string {
  try {
    return toJson(value) ?? 'null';
  } catch {
    // The value is cyclic, or nested deeper than the stack allows.
    return '';
  }
}

/**
 * Returns the text as RawJson. Throws a GraphQLError for JSON nested deeper than JSON_DEPTH, which could overflow the
 * stack of a program that reads it later, and for a text that is not JSON.
 */
function rawOf(text: string): RawJson {
  const json = checkedJson(text);
  if (json === null) throw new GraphQLError(`JSON may be nested at most ${JSON_DEPTH} levels deep.`);
  return new RawJson(json);
}

/**
 * Returns a literal as JSON text, with numbers as the document spells them. Undefined for a variable without a value.
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
    default:
      return JSON.stringify(node.value);
  }
}

function memberText(name: string, text: string | undefined): string | null {
  return text === undefined ? null : `${JSON.stringify(name)}:${text}`;
}
