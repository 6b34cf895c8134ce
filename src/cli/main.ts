/** Chooses the command that the arguments name, and runs it. */
import { CallboardError } from '../core/errors.ts';
import { VERSION } from '../version.ts';
import { helpText } from './help.ts';
import { EXIT, UsageError, withVisibleText, type Io } from './io.ts';
import { NOUNS } from './operator/nouns.ts';

type Run = (argv: readonly string[], io: Io) => Promise<void>;

/** The commands of the relay, each loaded on demand, so that `token` does not load the server. */
const COMMANDS: Readonly<Record<string, () => Promise<Run>>> = {
  serve: async () => (await import('./serve.ts')).serve,
  demo: async () => (await import('./demo.ts')).demo,
  console: async () => (await import('./console.ts')).consoleLink,
  token: async () => (await import('./token.ts')).token,
  'spill-clean': async () => (await import('./spill-clean.ts')).spillClean,
  healthcheck: async () => (await import('./healthcheck.ts')).healthcheck,
  audit: async () => (await import('./audit.ts')).audit,
  schema: async () => (await import('./schema.ts')).schema,
};

/** The first words that a shell's completion proposes besides the operators' commands. */
const OTHERS = [...Object.keys(COMMANDS), 'help', 'version'];

/**
 * Runs one command to its end and returns the exit code: 0, 1 on failure, 2 for wrong usage. The operator's commands
 * have further codes. Never throws.
 */
export async function main(argv: readonly string[], process: Io): Promise<number> {
  const io = withVisibleText(process);
  const [name = 'help', ...rest] = argv;
  if (isOperators(argv)) return (await import('./operator/app.ts')).runOperator(argv, io);
  if (name === '__complete') return complete(rest, io);
  if (name === 'help' || rest.includes('--help') || name === '--help' || name === '-h') return print(io, helpText());
  if (name === '--version' || name === 'version') return print(io, `${VERSION}\n`);
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  try {
    if (!command) throw new UsageError(`There is no command "${name}".`);
    await (
      await command()
    )(rest, io);
    return EXIT.ok;
  } catch (error) {
    return report(error, io);
  }
}

/**
 * Whether the arguments are a command for operators. `audit verify` is not: it reads the settings of a relay. Every
 * other `audit` command asks a relay.
 */
function isOperators([noun = '', verb]: readonly string[]): boolean {
  return Object.hasOwn(NOUNS, noun) && !(noun === 'audit' && verb === 'verify');
}

/** Prints proposals for the next word of a line, one proposal a line. The scripts of `callboard completion` run it. */
async function complete(words: readonly string[], io: Io): Promise<number> {
  const { completions } = await import('./operator/app.ts');
  const found = await completions(words, io);
  const [first = ''] = words;
  const others = words.length <= 1 ? OTHERS.filter((name) => name.startsWith(first)) : [];
  return print(io, [...found, ...others].map((proposal) => `${proposal}\n`).join(''));
}

function print(io: Io, text: string): number {
  io.print(text);
  return EXIT.ok;
}

function report(error: unknown, io: Io): number {
  if (error instanceof UsageError || (error instanceof CallboardError && error.code === 'invalid_argument')) {
    io.complain(`Invalid usage or configuration:\n${indent(error.message)}\nSee "callboard help".\n`);
    return EXIT.usage;
  }
  if (error instanceof CallboardError && error.code === 'store_unavailable') {
    io.complain(`callboard cannot start: ${error.message} (${reasonOf(error.cause)})\n`);
    return EXIT.failed;
  }
  if (error instanceof Error && error.name === 'UncheckedAuditError') {
    io.complain(`${error.message}\n`);
    return EXIT.unknown;
  }
  if (error instanceof Error && (error.name === 'HealthError' || error.name === 'AuditError')) {
    io.complain(`${error.message}\n`);
    return EXIT.failed;
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  io.complain(isTaken(error) ? `${error.message}\n` : `callboard failed: ${text}\n`);
  return EXIT.failed;
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : 'unknown reason';
}

function isTaken(error: unknown): error is Error {
  return (
    error instanceof Error && 'code' in error && ['EADDRINUSE', 'EACCES', 'EADDRNOTAVAIL'].includes(`${error.code}`)
  );
}

function indent(text: string): string {
  return text.replaceAll(/^/gm, '  ');
}
