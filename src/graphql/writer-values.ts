import {
  GraphQLID,
  GraphQLString,
  getNullableType,
  isEnumType,
  isLeafType,
  isListType,
  isNonNullType,
  type GraphQLLeafType,
  type GraphQLOutputType,
} from 'graphql';
import type { VariableValues } from 'graphql';
import type { Maybe } from '../core/maybe.ts';
import { isJsonScalar } from './builder-json.ts';

/** One run of one operation. */
export type Run = {
  readonly context: unknown;
  readonly variables: VariableValues;
  /** Arguments of fields, made once a run. By the field's number. */
  readonly args: unknown[];
  readonly note: Note;
};

/** What becomes known of a text while it is written. `wide`: it may hold characters beyond ASCII. */
export type Note = { wide: boolean };

/** A piece of JSON text; null: given up, so the operation must be run in the ordinary way. */
export type Text = string | null;

/** Writes a value that a resolver gave. Never throws and never rejects. */
export type WriteValue = (value: unknown, run: Run) => Maybe<Text>;

/** How an object type is written; `kept`: how lists of it may be kept as one text. */
export type ObjectWriter = {
  readonly write: WriteValue;
  readonly kept: ((writeList: WriteValue) => WriteValue) | null;
};

/**
 * The writer of a type's values, as graphql-js completes them; anything that it would make an error of is given up. `ofObject` writes the
 * object types in it; null where one cannot be written.
 */
export function valueWriter(
  type: GraphQLOutputType,
  ofObject: (type: GraphQLOutputType) => ObjectWriter | null,
): WriteValue | null {
  if (isNonNullType(type)) return nullableWriter(type.ofType, ofObject);
  const some = nullableWriter(type, ofObject);
  return some && ((value, run) => (value === null || value === undefined ? 'null' : some(value, run)));
}

function nullableWriter(
  type: GraphQLOutputType,
  ofObject: (type: GraphQLOutputType) => ObjectWriter | null,
): WriteValue | null {
  if (isListType(type)) {
    let kept: ObjectWriter['kept'] = null;
    const item = valueWriter(type.ofType, (below) => {
      const object = ofObject(below);
      if (object && getNullableType(type.ofType) === below) kept = object.kept;
      return object;
    });
    return item && listWriter(item, kept);
  }
  return isLeafType(type) ? leafWriter(type) : (ofObject(type)?.write ?? null);
}

function listWriter(writeItem: WriteValue, kept: ObjectWriter['kept']): WriteValue {
  const write = plainListWriter(writeItem);
  return kept ? kept(write) : write;
}

function plainListWriter(writeItem: WriteValue): WriteValue {
  return (value, run) => {
    if (!Array.isArray(value)) return null;
    const pieces: Maybe<Text>[] = [];
    let text = '[';
    let later = false;
    for (let i = 0; i < value.length; i++) {
      const item: unknown = value[i];
      const piece = isThenable(item) ? settle(item, writeItem, run) : writeItem(item, run);
      if (piece === null) return null;
      later ||= typeof piece !== 'string';
      if (later) pieces.push(piece);
      else text += i === 0 ? piece : `,${piece}`;
    }
    return later ? joined(text, pieces, value.length > pieces.length) : `${text}]`;
  };
}

async function joined(start: string, pieces: readonly Maybe<Text>[], begun: boolean): Promise<Text> {
  let text = start;
  let first = !begun;
  for (const piece of await Promise.all(pieces)) {
    if (piece === null) return null;
    text += first ? piece : `,${piece}`;
    first = false;
  }
  return `${text}]`;
}

function leafWriter(type: GraphQLLeafType): WriteValue {
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

/** JSON text stands for itself. */
const writeJsonText: WriteValue = (value, { note }) => {
  if (typeof value !== 'string') return null;
  note.wide ||= isWide(value);
  return value;
};

/** As JSON.stringify gives it. */
function textOf(coerced: unknown, { note }: Run): Text {
  if (coerced === null || coerced === undefined) return null;
  if (typeof coerced === 'string' && isPlain(coerced)) return `"${coerced}"`;
  if (typeof coerced === 'boolean') return coerced ? 'true' : 'false';
  const text = JSON.stringify(coerced) ?? null;
  if (typeof coerced !== 'number' && text !== null) note.wide ||= isWide(text);
  return text;
}

/** Whether a text holds characters beyond ASCII. */
export function isWide(text: string): boolean {
  return Buffer.byteLength(text) !== text.length;
}

/** An enum has few values, and each is always the same text. */
function wordWriter(write: WriteValue): WriteValue {
  const words = new Map<unknown, string>();
  return (value, run) => {
    const known = words.get(value);
    if (known !== undefined) return known;
    const text = write(value, run);
    if (typeof text === 'string' && typeof value === 'string' && !isWide(text)) words.set(value, text);
    return text;
  };
}

/** Whether a type's values, where they are texts, are written as they are. */
export function holdsTexts(type: GraphQLOutputType): boolean {
  const named = getNullableType(type);
  return named === GraphQLString || named === GraphQLID;
}

const PLAIN = /^[ !#-[\]-\x7f]*$/;

/** Whether a text is of ASCII characters alone that JSON writes as they are. */
export function isPlain(text: string): boolean {
  return PLAIN.test(text);
}

/** What graphql-js waits for. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** Waits, then writes; what failed is given up. */
export async function settle(value: PromiseLike<unknown>, write: WriteValue, run: Run): Promise<Text> {
  try {
    return await write(await value, run);
  } catch {
    return null;
  }
}
