/** Makes enums of the schema from the words that frames and stores use. */
import { builder } from './builder.ts';

type Values<Word extends string> = Record<string, { readonly value: Word; readonly description: string }>;

/** Returns the GraphQL enum name of a wire value: `user-owned` becomes USER_OWNED. */
export function enumName(word: string): string {
  return word.toUpperCase().replaceAll('-', '_');
}

/**
 * Makes an enum whose internal values are core's own wire values. So resolvers return wire values unchanged, and the
 * schema of REST serializes them as they are. `words` maps each value to its description. A value of core's type that
 * `words` lacks is a compile error.
 */
export function wireEnum<Word extends string>(
  name: string,
  description: string,
  words: Readonly<Record<Word, string>>,
) {
  const values: Values<Word> = {};
  for (const word of keysOf(words)) values[enumName(word)] = { value: word, description: words[word] };
  return builder.enumType(name, { description, values });
}

/** Returns the typed keys of a record. The record must have no other keys, so use it only on object literals. */
export function keysOf<Key extends string>(record: Readonly<Record<Key, unknown>>): readonly Key[] {
  return Object.keys(record) as Key[];
}
