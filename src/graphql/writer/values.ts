/** The types of writers of JSON text, and the writers of leaves: scalars and enums. A writer must not throw or reject. */
import {
  GraphQLID,
  GraphQLString,
  getNullableType,
  isEnumType,
  type GraphQLLeafType,
  type GraphQLOutputType,
} from 'graphql';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import { isJsonScalar } from '../schema/builder.ts';
import type { Values } from '../variables.ts';

/** The state of one execution of one operation. */
export type Run = {
  readonly context: unknown;
  readonly variables: Values;
  /** The arguments of fields by field number, each created when it is first needed. */
  readonly args: unknown[];
  readonly note: TextInfo;
};

/** What is known of a text that was written. `nonAscii`: it may contain characters beyond ASCII. */
export type TextInfo = {
  nonAscii: boolean;
  chosen?: Chosen;
  /**
   * The bytes that the text refers to (web/reply.ts). Absent: the text must not refer to bytes. Null: the part that
   * is written now must not refer to bytes, because it is cached.
   */
  inserts?: Buffer[] | null;
};

/** The object type of the first value of a union or interface type, and what its members resolve to. */
export type Chosen = { readonly type: string; member(key: string): unknown };

/** A piece of JSON text. Null: the operation must be executed by graphql-js. */
export type Text = string | null;

/** Writes a value that a resolver returned. Never throws and never rejects. */
export type WriteValue = (value: unknown, run: Run) => MaybePromise<Text>;

/**
 * How an object type is written. `listCache` adds a cache to the writer of a list of the type; null when such lists
 * cannot be cached.
 */
export type ObjectWriter = {
  readonly write: WriteValue;
  readonly listCache: ((writeList: WriteValue) => WriteValue) | null;
};

export function leafWriter(type: GraphQLLeafType): WriteValue {
  if (isJsonScalar(type)) return writeJsonText;
  const write: WriteValue = (value, run) => {
    if (value === null || value === undefined || value instanceof Error) return null;
    try {
      return textOf(type.coerceOutputValue(value), run);
    } catch {
      return null;
    }
  };
  return isEnumType(type) ? wordWriter(write) : write;
}

/** A value of the JSON scalar is JSON text already, and is written unchanged. */
const writeJsonText: WriteValue = (value, { note }) => {
  if (typeof value !== 'string') return null;
  note.nonAscii ||= isNonAscii(value);
  return value;
};

/** Returns the text that JSON.stringify gives. Null for null and undefined, which graphql-js reports as errors. */
function textOf(coerced: unknown, { note }: Run): Text {
  if (coerced === null || coerced === undefined) return null;
  if (typeof coerced === 'string' && isPlain(coerced)) return `"${coerced}"`;
  if (typeof coerced === 'boolean') return coerced ? 'true' : 'false';
  const text = JSON.stringify(coerced) ?? null;
  if (typeof coerced !== 'number' && text !== null) note.nonAscii ||= isNonAscii(text);
  return text;
}

/** Whether a text holds characters beyond ASCII. */
export function isNonAscii(text: string): boolean {
  return Buffer.byteLength(text) !== text.length;
}

/**
 * Creates a writer that caches the text of each value: an enum has few values, and the text of a value never changes.
 */
function wordWriter(write: WriteValue): WriteValue {
  const words = new Map<unknown, string>();
  return (value, run) => {
    const known = words.get(value);
    if (known !== undefined) return known;
    const text = write(value, run);
    if (typeof text === 'string' && typeof value === 'string' && !isNonAscii(text)) words.set(value, text);
    return text;
  };
}

/** Whether a type's string values are written unchanged, apart from JSON quoting. */
export function holdsTexts(type: GraphQLOutputType): boolean {
  const named = getNullableType(type);
  return named === GraphQLString || named === GraphQLID;
}

const PLAIN = /^[ !#-[\]-\x7f]*$/;

/** Whether a text consists of ASCII characters that JSON does not escape. */
export function isPlain(text: string): boolean {
  return PLAIN.test(text);
}

/** Whether graphql-js would await the value. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
