import { builder } from './builder.ts';

type Values<Word extends string> = Record<string, { readonly value: Word; readonly description: string }>;

/** The GraphQL name of a wire word: `user-owned` is USER_OWNED. */
export function enumName(word: string): string {
  return word.toUpperCase().replaceAll('-', '_');
}

/**
 * An enum whose internal values are core's own words, so that resolvers hand them through and the wire schema puts them out as they
 * are. `words` maps each word to its description; a word that core has and the enum lacks does not compile.
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

/** The keys of a record that holds no others: made in one place by a literal, as every table of words is. */
export function keysOf<Key extends string>(record: Readonly<Record<Key, unknown>>): readonly Key[] {
  return Object.keys(record) as Key[];
}
