/** Converts texts of paths and queries into GraphQL variables. */
import { isEnumType, isListType, isNonNullType, isScalarType, type GraphQLInputType } from 'graphql';
import type { ReportFault } from './directive.ts';
import type { Faults } from './faults.ts';
import { leafOf, type Bounds } from './leaf.ts';
import type { JsonSchema } from './named.ts';

/**
 * Converts the text of a path segment or query value into a GraphQL variable. Reports what is wrong to `faults` under
 * the name `at`.
 */
export type TextInput = {
  readonly schema: JsonSchema;
  /** Whether the text holds several values, separated by commas. */
  readonly list: boolean;
  read(raw: string, at: string, faults: Faults): unknown;
};

const NOTHING: TextInput = { schema: {}, list: false, read: () => undefined };

/** Returns the text form of an input type: scalars, enums by their wire words, and comma-separated lists of either. */
export function textInput(type: GraphQLInputType, bounds: Bounds, report: ReportFault): TextInput {
  if (isNonNullType(type)) return textInput(type.ofType, bounds, report);
  if (isListType(type)) return listInput(textInput(type.ofType, bounds, report), bounds);
  if (isScalarType(type) || isEnumType(type)) {
    const leaf = leafOf(type, bounds);
    if (leaf?.fromText) return leafInput(leaf.fromText, leaf.schema, leaf.expected);
  }
  report(`the type ${String(type)} has no form in a path or a query`);
  return NOTHING;
}

/**
 * Returns the decoded pairs of a query string. A name without `=` has an empty value. Pairs that cannot be decoded are
 * left out and reported to `faults`.
 */
export function* queryPairs(query: string, faults: Faults): Generator<readonly [name: string, value: string]> {
  for (const part of query.split('&')) {
    if (part === '') continue;
    const cut = part.indexOf('=');
    const name = decode(cut < 0 ? part : part.slice(0, cut), true);
    const value = decode(cut < 0 ? '' : part.slice(cut + 1), true);
    if (name === null || value === null) faults.add(name ?? part, 'not valid percent-encoding');
    else yield [name, value];
  }
}

/** Decodes percent-encoding. Null when the text is not valid percent-encoded UTF-8. */
export function decode(text: string, plusIsSpace = false): string | null {
  const spaced = plusIsSpace ? text.replaceAll('+', ' ') : text;
  if (!spaced.includes('%')) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    return null;
  }
}

function leafInput(fromText: (raw: string) => unknown, schema: JsonSchema, expected: string): TextInput {
  return {
    schema,
    list: false,
    read(raw, at, faults) {
      const value = fromText(raw);
      if (value === undefined) faults.add(at, `expected ${expected}`);
      return value;
    },
  };
}

function listInput(item: TextInput, { form }: Bounds): TextInput {
  return {
    schema: { type: 'array', items: item.schema, minItems: 1, ...form?.list },
    list: true,
    read: (raw, at, faults) => raw.split(',').map((one) => item.read(one, at, faults)),
  };
}
