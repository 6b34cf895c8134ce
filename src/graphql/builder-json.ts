import { GraphQLError, Kind, type GraphQLNamedInputType, type GraphQLNamedOutputType, type ValueNode } from 'graphql';
import { checkedJson, RawJson, toJson, writeJson, type JsonText } from '../core/json.ts';
import { JSON_DEPTH } from '../core/limits.ts';

/**
 * The scalar `JSON`, which passes through as it is written. Resolvers are given a RawJson and give JSON text. What graphql-js puts out is a RawJson,
 * which `writeJson` writes; the writer of plans puts the text out itself.
 */
export const jsonScalar = {
  extensions: { jsonText: true },
  serialize: (text: JsonText): RawJson => new RawJson(text),
  parseValue: (value: unknown): RawJson => (value instanceof RawJson ? value : rawOf(textOfValue(value))),
  parseLiteral: (node: ValueNode, variables?: Variables | null): RawJson =>
    rawOf(literalText(node, variables) ?? 'null'),
};

type Variables = Readonly<Record<string, unknown>>;

/** Whether this is the scalar `JSON`, in whichever schema. */
export function isJsonScalar({ extensions }: GraphQLNamedInputType | GraphQLNamedOutputType): boolean {
  return extensions['jsonText'] === true;
}

/** The text of a value that was given; null where none was, or null. */
export function textOfJson(given: RawJson | null | undefined): JsonText | null {
  return given?.text ?? null;
}

/** Of a program's own variables. */
function textOfValue(value: unknown): string {
  try {
    return toJson(value) ?? 'null';
  } catch {
    // It is nested beyond the stack, or in itself.
    return '';
  }
}

/** What is nested deeper could overflow the stack of a program that reads it later. */
function rawOf(text: string): RawJson {
  const json = checkedJson(text);
  if (json === null) throw new GraphQLError(`JSON may be nested ${JSON_DEPTH} deep.`);
  return new RawJson(json);
}

/** A literal as JSON: numbers as they are written in the document. Undefined: a variable that was left out. */
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
