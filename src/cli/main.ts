/** Finds and runs the command that the arguments name, reports its error, and prints the text of `callboard help`. */
import { CallboardError } from '../core/errors.ts';
import { FILE_SETTINGS } from '../settings/setting-files.ts';
import { SETTING_NAMES, SWITCHES } from '../settings.ts';
import { VERSION } from '../version.ts';
import { CommandError, EXIT, UsageError } from './exit-codes.ts';
import { NOUNS } from './flags.ts';
import { withVisibleText, type Io } from './io.ts';

type Run = (argv: readonly string[], io: Io) => Promise<void>;

/** The commands about the relay itself. Each is loaded only when it runs, so that `token` does not load the server. */
const COMMANDS: Readonly<Record<string, () => Promise<Run>>> = {
  serve: async () => (await import('./serve.ts')).serve,
  demo: async () => (await import('./serve.ts')).demo,
  init: async () => (await import('./init.ts')).init,
  console: async () => (await import('./tools.ts')).consoleLink,
  token: async () => (await import('./tools.ts')).token,
  data: async () => (await import('./data.ts')).data,
  'spill-clean': async () => (await import('./tools.ts')).spillClean,
  healthcheck: async () => (await import('./tools.ts')).healthcheck,
  audit: async () => (await import('./data.ts')).audit,
  schema: async () => (await import('./tools.ts')).schema,
};

/** The first words that shell completion proposes besides the operators' commands. */
const OTHERS = [...Object.keys(COMMANDS), 'help', 'version'];

/**
 * Runs one command until it ends, and returns the exit code: 0, 1 for a failure, or 2 for wrong arguments. Operators'
 * commands and `audit verify` have further codes.
 */
export async function main(argv: readonly string[], process: Io): Promise<number> {
  const io = withVisibleText(process);
  const [name = '', ...rest] = startsRelay(argv) ? ['serve', ...argv] : argv;
  if (isOperators(argv)) return (await import('./operator.ts')).runOperator(argv, io);
  if (name === '__complete') return complete(rest, io);
  if (name === 'help' || rest.includes('--help') || name === '--help' || name === '-h') return print(io, helpText());
  if (name === '--version' || name === 'version') return print(io, `${VERSION}\n`);
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  try {
    if (!command) throw new UsageError(`There is no command "${name}".`);
    const run = await command();
    await run(rest, io);
    return EXIT.done;
  } catch (error) {
    return report(error, io);
  }
}

/**
 * Whether the arguments name no command. They are then arguments of `serve`, so that `npx callboard` starts a relay.
 */
function startsRelay([name]: readonly string[]): boolean {
  return name === undefined || (name.startsWith('--') && name !== '--help' && name !== '--version');
}

/**
 * Whether the arguments are an operator's command, which asks a relay. `audit verify` is not, although other `audit`
 * commands are: it reads the settings of a relay.
 */
function isOperators([noun = '', verb]: readonly string[]): boolean {
  return Object.hasOwn(NOUNS, noun) && !(noun === 'audit' && verb === 'verify');
}

/** Prints proposals for the next word of a line, one per line. The scripts of `callboard completion` run this. */
async function complete(words: readonly string[], io: Io): Promise<number> {
  const { completions } = await import('./operator.ts');
  const found = await completions(words, io);
  const [first = ''] = words;
  const others = words.length <= 1 ? OTHERS.filter((name) => name.startsWith(first)) : [];
  return print(io, [...found, ...others].map((proposal) => `${proposal}\n`).join(''));
}

function print(io: Io, text: string): number {
  io.print(text);
  return EXIT.done;
}

function report(error: unknown, io: Io): number {
  if (error instanceof UsageError || (error instanceof CallboardError && error.code === 'invalid_argument')) {
    io.complain(`Invalid usage or configuration:\n${error.message.replaceAll(/^/gm, '  ')}\nSee "callboard help".\n`);
    return EXIT.usage;
  }
  if (error instanceof CallboardError && error.code === 'store_unavailable') {
    const reason = error.cause instanceof Error ? error.cause.message : 'unknown reason';
    io.complain(`callboard cannot start: ${error.message} (${reason})\n`);
    return EXIT.failed;
  }
  if (error instanceof CommandError) {
    io.complain(`${error.message}\n`);
    return error.exit;
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  io.complain(isRefusedAddress(error) ? `${error.message}\n` : `callboard failed: ${text}\n`);
  return EXIT.failed;
}

function isRefusedAddress(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && ['EACCES', 'EADDRNOTAVAIL'].includes(`${error.code}`);
}

/** Returns the text that `callboard help` prints. */
function helpText(): string {
  const flags = SETTING_NAMES.map((name) => {
    const flag = `--${name.toLowerCase().replaceAll('_', '-')}`;
    return SWITCHES.has(name) ? flag : `${flag} <value>`;
  });
  return `callboard relays commands between callers and connected clients.

  callboard [serve] [--json] [--fresh] [flags]
                                      start the relay (127.0.0.1:4400); --fresh: with new credentials, if it makes its own
  callboard init [<folder>] [--ts|--js]
                                      write a small project: a server, a client, a caller and a page
  callboard demo [--pace <calls per second>] [--browser <program>|none] [--fresh] [flags]
                                      start a relay with demo clients and traffic
  callboard console [--name <operator>] [--url <address>] [flags]
                                      print a link that signs in to the console, once
  callboard token --user <user> [--scope connect,invoke,host] [--ttl <seconds>] [--actions <patterns>] [flags]
                                      sign a user's token with the configured secret
  callboard token --mcp --user <user> [--actions 'tab.*'] [--tools builtin|actions] [--prefix tab_] [--ttl <seconds>] [flags]
                                      the same, for an agent: it may call these actions over MCP, and nothing else
  callboard spill-clean [flags]       remove expired payloads from the spill directory
  callboard data check|accept-loss [flags]
  callboard data backup --to <directory> [flags]
                                      look at the data directory, repair it by giving up what is damaged, or copy it
  callboard healthcheck [--within <ms>] [flags]
                                      exit 0 if the relay of these settings is ready, otherwise 1
  callboard audit verify [--file <path>|--url <relay>] [flags]
                                      check the chain of the audit (token of an administrator: CALLBOARD_TOKEN)
  callboard schema                    print the GraphQL schema
  callboard help | --version

Commands for operators of a running relay; callboard <command> --help shows more:

${nouns()}
Each [flags] is also an environment variable: --max-body-bytes is CALLBOARD_MAX_BODY_BYTES. Flags take precedence.
A file can hold the text of ${FILE_SETTINGS.map((name) => `CALLBOARD_${name}`).join(', ')}: append _FILE to the variable, or -file to the flag.
${columns(flags)}
`;
}

function nouns(): string {
  const width = widthOf(Object.keys(NOUNS));
  return Object.entries(NOUNS)
    .map(([noun, brief]) => `  callboard ${noun.padEnd(width)}${brief}`)
    .join('\n');
}

/** Returns the width of a column with these words. */
function widthOf(words: readonly string[]): number {
  return Math.max(...words.map(({ length }) => length)) + 2;
}

function columns(flags: readonly string[]): string {
  const width = widthOf(flags);
  const rows: string[] = [];
  for (let i = 0; i < flags.length; i += 3) {
    const row = flags.slice(i, i + 3).map((flag) => flag.padEnd(width));
    rows.push(`  ${row.join('').trimEnd()}`);
  }
  return rows.join('\n');
}
