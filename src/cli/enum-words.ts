/** Translates between GraphQL's enum names and the words that REST and the command line use for them. */
import { ENUM_PLACES, ENUM_WORDS } from '../../generated/cli-enums.ts';
import { usageFailure } from './exit-codes.ts';

type Words = typeof ENUM_WORDS;
type EnumName = keyof Words;
/** The REST word of a value of this enum, such as `outcome_unknown` of `Outcome`. */
type WordOf<Name extends EnumName> = Words[Name][keyof Words[Name]] & string;

/** Returns all words of an enum. */
export function wordsOf(name: EnumName): readonly string[] {
  return Object.values(ENUM_WORDS[name]);
}

/**
 * Returns the text if it is a word of the enum; undefined if it is absent. Throws a usage failure if it is any other
 * text.
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

type WordTable = Readonly<Record<string, string>>;
const WORDS: Readonly<Record<string, WordTable>> = ENUM_WORDS;

/** Returns the variables of an operation, with REST words replaced by GraphQL's enum names. */
export function withNames(operation: string, variables: object): object {
  const namesOf = (words: WordTable): WordTable =>
    Object.fromEntries(Object.entries(words).map(([name, word]) => [word, name]));
  return translate({ ...variables }, ENUM_PLACES[operation]?.variables, namesOf);
}

/** Replaces GraphQL's enum names in the data by REST words, and returns the same object. */
export function withWords<Data>(operation: string, data: Data): Data {
  return translate(data, ENUM_PLACES[operation]?.data, (words) => words);
}

/**
 * Replaces the enum values at the given places in `value`, and returns it. `places`: the name of the enum at each
 * place. `tableOf`: makes the table of replacements from the words of an enum.
 */
function translate<Value>(value: Value, places: WordTable = {}, tableOf: (words: WordTable) => WordTable): Value {
  for (const [place, name] of Object.entries(places)) replaceAt(value, place.split('.'), tableOf(WORDS[name] ?? {}));
  return value;
}

function replaceAt(node: unknown, [name = '', ...rest]: readonly string[], table: WordTable): void {
  if (Array.isArray(node)) return node.forEach((item) => replaceAt(item, [name, ...rest], table));
  if (!isObject(node)) return;
  if (rest.length > 0) replaceAt(node[name], rest, table);
  else if (name in node) node[name] = translated(node[name], table);
}

function translated(value: unknown, table: WordTable): unknown {
  if (Array.isArray(value)) return value.map((item) => translated(item, table));
  return typeof value === 'string' ? (table[value] ?? value) : value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
