/**
 * Translates between the names of GraphQL's enum values and the words that REST writes for them. The command line shows
 * the words.
 */
import { ENUM_PLACES, ENUM_WORDS } from '../../generated/cli-enums.ts';
import { usageFailure } from './failure.ts';

type Words = typeof ENUM_WORDS;
export type EnumName = keyof Words;
/** A word of this enum in REST, such as `outcome_unknown` of `Outcome`. */
export type WordOf<Name extends EnumName> = Words[Name][keyof Words[Name]] & string;

/** Returns all words of an enum. */
export function wordsOf(name: EnumName): readonly string[] {
  return Object.values(ENUM_WORDS[name]);
}

/**
 * Returns the text as a word of the enum; undefined if there is no text. Throws a usage failure for a text that is not
 * such a word.
 */
export function readWord<Name extends EnumName>(name: Name, text: string): WordOf<Name>;
export function readWord<Name extends EnumName>(name: Name, text: string | undefined): WordOf<Name> | undefined;
export function readWord<Name extends EnumName>(name: Name, text: string | undefined): WordOf<Name> | undefined {
  if (text === undefined || isWord(name, text)) return text;
  throw usageFailure(`expected ${wordsOf(name).join(', ')}, got "${text}"`);
}

function isWord<Name extends EnumName>(name: Name, text: string): text is WordOf<Name> {
  return wordsOf(name).includes(text);
}

/** Returns the variables of an operation with GraphQL's enum names in place of the words of REST. */
export function withNames(operation: string, variables: object): Readonly<Record<string, unknown>> {
  const places = ENUM_PLACES[operation]?.variables ?? {};
  return Object.fromEntries(
    Object.entries(variables).map(([name, value]) => {
      const words = wordTable(places[name]);
      return [name, words ? translated(value, (word) => nameOf(words, word)) : value];
    }),
  );
}

/**
 * Returns the data of an operation with the words of REST in place of GraphQL's enum names. Changes the given object.
 */
export function withWords<Data>(operation: string, data: Data): Data {
  for (const [place, name] of Object.entries(ENUM_PLACES[operation]?.data ?? {})) {
    const words = wordTable(name);
    if (words) replaceAt(data, place.split('.'), (found) => words[found] ?? found);
  }
  return data;
}

type WordTable = Readonly<Record<string, string>>;

function wordTable(name: string | undefined): WordTable | undefined {
  return Object.entries<WordTable>(ENUM_WORDS).find(([known]) => known === name)?.[1];
}

function nameOf(words: WordTable, word: string): string {
  return Object.entries(words).find(([, known]) => known === word)?.[0] ?? word;
}

function translated(value: unknown, translate: (text: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => translated(item, translate));
  return typeof value === 'string' ? translate(value) : value;
}

function replaceAt(node: unknown, [name, ...rest]: readonly string[], translate: (text: string) => string): void {
  if (Array.isArray(node)) return node.forEach((item) => replaceAt(item, [name ?? '', ...rest], translate));
  if (!isObject(node) || name === undefined) return;
  if (rest.length > 0) replaceAt(node[name], rest, translate);
  else if (name in node) node[name] = translated(node[name], translate);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
