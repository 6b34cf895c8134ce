/** Reads the options of a program of this folder. A wrong option ends the program with one sentence and its help. */
import { parseArgs, type ParseArgsConfig } from 'node:util';

type Options = NonNullable<ParseArgsConfig['options']>;
type Values<T extends Options> = ReturnType<typeof parseArgs<{ options: T }>>['values'];

/** A value on the command line that the program does not accept. Its message is for the person at the terminal. */
export class UsageError extends Error {}

/**
 * Reads the options with `read`, which may throw a UsageError. Prints `help` and exits with 0 if `--help` is given. For
 * an unknown option or a UsageError prints the reason and `help` to standard error, and exits with 2.
 */
export function readOptions<const T extends Options, R>(
  { help, options }: { readonly help: string; readonly options: T },
  read: (values: Values<T>) => R,
): R {
  try {
    if (process.argv.includes('--help')) exit(0, help);
    return read(parseArgs({ options }).values as Values<T>);
  } catch (error) {
    if (!(error instanceof UsageError) && !isParseError(error)) throw error;
    return exit(2, `${error.message}\n\n${help}`);
  }
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

/** Reads names separated by commas, each of which must be known. Returns all known names if `text` is undefined. */
export function namesOf<N extends string>(name: string, text: string | undefined, known: readonly N[]): readonly N[] {
  if (text === undefined) return known;
  return text.split(',').map((given) => {
    const found = known.find((one) => one.toLowerCase() === given.toLowerCase());
    if (found === undefined) throw new UsageError(`--${name} has no "${given}". It takes some of ${known.join(', ')}.`);
    return found;
  });
}
