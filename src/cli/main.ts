/** Chooses and runs a command of the command line. */
import { CallboardError } from '../core/errors.ts';
import { VERSION } from '../version.ts';
import { helpText } from './help.ts';
import { EXIT, UsageError, type Io } from './io.ts';

type Run = (argv: readonly string[], io: Io) => Promise<void>;

/** Commands are loaded on demand, so that `token` does not load the server. */
const COMMANDS: Readonly<Record<string, () => Promise<Run>>> = {
  serve: async () => (await import('./serve.ts')).serve,
  demo: async () => (await import('./demo.ts')).demo,
  token: async () => (await import('./token.ts')).token,
  'spill-clean': async () => (await import('./spill-clean.ts')).spillClean,
  healthcheck: async () => (await import('./healthcheck.ts')).healthcheck,
  schema: async () => (await import('./schema.ts')).schema,
};

/** Runs one command to its end and returns the exit code: 0, 1 on failure, 2 for wrong usage. Never throws. */
export async function main(argv: readonly string[], io: Io): Promise<number> {
  const [name = 'help', ...rest] = argv;
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
  if (error instanceof Error && error.name === 'HealthError') {
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
