/**
 * Reads the command-line options of the programs in this folder. For an invalid option, the program prints one sentence
 * and its help, and ends.
 */
import { parseArgs } from 'node:util';

/**
 * An option of parseArgs with its line in the help. `takes`: a name for the option's value; a flag has none. `says`:
 * the text of the help without the default, which is appended.
 */
export type Option =
  | { readonly type: 'string'; readonly takes: string; readonly says: string; readonly default?: string }
  | { readonly type: 'boolean'; readonly says: string; readonly default: false };
type Options = Readonly<Record<string, Option>>;
type Values<T extends Options> = ReturnType<typeof parseArgs<{ options: T }>>['values'];

/** Describes a program for its help. `about`: further information besides the options, or null. */
type Usage<T extends Options> = {
  readonly program: string;
  readonly about: string | null;
  readonly options: T;
};

/** An error about a value on the command line. Its message is shown to the person at the terminal. */
export class UsageError extends Error {}

/**
 * Reads the options with `read`, which may throw a UsageError. With `--help`, prints the help and exits with 0. For an
 * unknown option or a UsageError, prints the reason and the help to standard error, and exits with 2.
 */
export function readOptions<const T extends Options, R>(usage: Usage<T>, read: (values: Values<T>) => R): R {
  const help = helpOf(usage);
  try {
    if (process.argv.includes('--help')) exit(0, help);
    return read(parseArgs({ options: usage.options }).values as Values<T>);
  } catch (error) {
    if (!(error instanceof UsageError) && !isParseError(error)) throw error;
    return exit(2, `${error.message}\n\n${help}`);
  }
}

function helpOf({ program, about, options }: Usage<Options>): string {
  const rows = Object.entries(options).map(([name, option]) => ({
    form: option.type === 'string' ? `--${name} ${option.takes}` : `--${name}`,
    says: option.type === 'string' && option.default ? `${option.says} (${option.default})` : option.says,
  }));
  const width = Math.max(...rows.map(({ form }) => form.length));
  const lines = rows.map(({ form, says }) => `  ${form.padEnd(width)}   ${says}\n`);
  return `${program} [-- <options>]\n\n${about ? `${about}\n` : ''}${lines.join('')}`;
}

function exit(code: number, text: string): never {
  (code === 0 ? process.stdout : process.stderr).write(text);
  process.exit(code);
}

function isParseError(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS');
}

/** Reads a whole number that is not negative. */
export function wholeNumber(name: string, text: string): number {
  if (!/^\d+$/.test(text)) throw new UsageError(`--${name} takes a whole number, not "${text}".`);
  return Number(text);
}

/** Reads a number above 0. */
export function positiveNumber(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new UsageError(`--${name} takes a number above 0, not "${text}".`);
  return value;
}

/** Reads known names that are separated by commas. Returns all known names if `text` is undefined. */
export function namesOf<N extends string>(name: string, text: string | undefined, known: readonly N[]): readonly N[] {
  if (text === undefined) return known;
  return text.split(',').map((given) => {
    const found = known.find((one) => one.toLowerCase() === given.toLowerCase());
    if (found === undefined) throw new UsageError(`--${name} has no "${given}". It takes some of ${known.join(', ')}.`);
    return found;
  });
}
