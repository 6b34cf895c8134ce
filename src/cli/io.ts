/**
 * Defines what a command may use of the process: output, stop signals, a clock and questions to a person. Also has what
 * all commands share: exit codes and which answers they stand for, errors, the limits of the heap's growth, the split
 * of flags, and the first words.
 */
import { homedir } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import type { Clock } from '../clients/link/platform.ts';
import { visibleLine, visibleText } from '../protocol/visible-text.ts';
import { CODES } from '../protocol/codes.ts';

/** The parts of the process that a command may use. bin.ts provides them; tests provide their own. */
export type Io = {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes the output of a command to standard output. */
  readonly print: (text: string) => void;
  /** Writes errors to standard error. */
  readonly complain: (text: string) => void;
  /** Registers a callback for the first stop signal; the second signal ends the process at once. */
  readonly onStop: (stop: () => void) => void;
  /**
   * Registers what happens after an error that nothing caught: an exception, or a rejected promise. Afterwards the
   * process exits with the code CRASHED. Absent: nothing is registered.
   */
  readonly onCrash?: (end: (error: unknown) => Promise<void>) => void;
  /** Ends the process at once with the code 0, whatever is still in progress. */
  readonly endNow?: () => void;
  /** The clock of the operators' commands. Absent: the system's clock. */
  readonly clock?: Clock;
  /** Whether standard output is a terminal, whose screen may be cleared. */
  readonly screen?: boolean;
  /** Clears the screen of the terminal. Absent if standard output is not a terminal. `main` provides it. */
  readonly clearScreen?: () => void;
  /** Asks a person and resolves with the line that was typed. Absent if no person can be asked. */
  readonly ask?: (question: string) => Promise<string>;
};

/** Returns the home directory of the user; null without `HOME` for a user whom the system does not know. */
export function homeOf(env: Io['env']): string | null {
  if (env['HOME']) return env['HOME'];
  try {
    return homedir();
  } catch {
    return null;
  }
}

/** The control sequence that moves to the first line of the terminal and clears everything below. */
const CLEAR = '\u001b[H\u001b[J';

/**
 * Returns `io` with outputs that show hidden characters as their codes, such as `\u202e`. Clients choose many of the
 * texts that a command prints, and a control sequence among them would steer the terminal.
 */
export function withVisibleText(io: Io): Io {
  const { print, complain, ask, screen } = io;
  return {
    ...io,
    print: (text) => print(visibleText(text)),
    complain: (text) => complain(visibleText(text)),
    ...(ask && { ask: (question: string) => ask(visibleLine(question)) }),
    ...(screen && { clearScreen: () => print(CLEAR) }),
  };
}

/**
 * The exit codes. Of a call, 5 and 7 prove that nothing ran, so it may be repeated. After 8, look at the command before
 * repeating it.
 */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  notAllowed: 4,
  refused: 5,
  clientFailed: 6,
  expired: 7,
  unknown: 8,
  running: 9,
  unreachable: 11,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The exit code of a relay that ended because of an error that nothing caught (EX_SOFTWARE of sysexits.h). */
export const CRASHED = 70;

/** The error that ends a command with this exit code. */
export class CommandError extends Error {
  readonly exit: ExitCode;

  constructor(message: string, exit: ExitCode = EXIT.failed) {
    super(message);
    this.exit = exit;
  }
}

export function isHttpUrl(text: string): boolean {
  return /^https?:$/.test(URL.parse(text)?.protocol ?? '');
}

/** Returns the message of a thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The error for wrong usage of the command line. */
export class UsageError extends CommandError {
  constructor(message: string) {
    super(message, EXIT.usage);
  }
}

/**
 * Keeps V8's space for new objects at its initial size. Nearly all objects that the start creates stay in use. V8 would
 * therefore enlarge that space repeatedly, by 30 MB in all. An idle relay does not use these 30 MB.
 */
export function holdHeapGrowth(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
}

/** Lets the space for new objects grow again, because traffic needs it. The factor 2 is V8's default. */
export function allowHeapGrowth(): void {
  setFlagsFromString('--semi-space-growth-factor=2');
}

// Separates the flags of a command from the flags that are settings of the relay.

type Split = { readonly own: ReadonlyMap<string, string>; readonly rest: readonly string[] };

/**
 * Separates a command's own flags from its other arguments, which the caller then reads as settings. Flags named in
 * `values` are written `--user alice` or `--user=alice`. Flags named in `switches` have no value. Throws UsageError
 * when a value is missing.
 */
export function splitFlags(
  argv: readonly string[],
  { values = [], switches = [] }: { readonly values?: readonly string[]; readonly switches?: readonly string[] },
): Split {
  const own = new Map<string, string>();
  const rest: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const [name = '', ...more] = (argv[i] ?? '').split('=');
    if (switches.includes(name) && more.length === 0) own.set(name, 'true');
    else if (!values.includes(name)) rest.push(argv[i] ?? '');
    else own.set(name, more.length > 0 ? more.join('=') : (argv[++i] ?? missing(name)));
  }
  return { own, rest };
}

function missing(name: string): never {
  throw new UsageError(`${name}: needs a value`);
}

/** The help text of each first word of the operators' commands, by the word. */
export const NOUNS: Readonly<Record<string, string>> = {
  status: 'State of the deployment',
  top: 'Rates and the busiest clients, again and again',
  clients: 'Connected clients',
  users: 'Users',
  actions: 'Actions that clients advertise',
  places: 'Execution contexts and browser windows',
  sites: 'Cooperative sites',
  call: 'Invoke an action',
  preflight: 'What would refuse a call',
  calls: 'Calls and their ends',
  waits: 'Callers that wait',
  streams: 'Streams of retained messages',
  messages: 'Retained messages',
  audit: 'What administrators did',
  revoke: 'Revoke tokens',
  revocations: 'Tokens that are revoked',
  nodes: 'Nodes of the deployment',
  capacity: 'Admission scopes',
  policy: 'Checks of a policy file before it is used',
  context: 'Relays, and where their tokens come from',
  doctor: 'Checks of settings, token and relay',
  mcp: 'An MCP server for agents, on standard input and output',
  conformance: 'Checks of an own client against PROTOCOL.md',
  completion: 'Completion for shells',
};

/** The error that ends a command with an exit code. `code` is one of the relay's, or of the command line's own. */
export class OperatorFailure extends CommandError {
  readonly code: string;
  /** The relay's problem document, if it sent one. */
  readonly problem: Readonly<Record<string, unknown>> | null;

  constructor(exit: ExitCode, code: string, message: string, problem: Readonly<Record<string, unknown>> | null = null) {
    super(message, exit);
    this.code = code;
    this.problem = problem;
  }
}

export function usageFailure(message: string): OperatorFailure {
  return new OperatorFailure(EXIT.usage, 'invalid_usage', message);
}

const BY_OUTCOME: Readonly<Record<string, ExitCode>> = {
  completed: EXIT.done,
  failed: EXIT.clientFailed,
  cancelled: EXIT.clientFailed,
  expired: EXIT.expired,
  outcome_unknown: EXIT.unknown,
};

/** Returns the exit code for a command as the relay describes it; null for a body that describes no command. */
export function exitOfCommand(body: Readonly<Record<string, unknown>>): ExitCode | null {
  const { outcome } = body;
  if (outcome === null && typeof body['stage'] === 'string') return EXIT.running;
  return typeof outcome === 'string' ? (BY_OUTCOME[outcome] ?? EXIT.failed) : null;
}

const BY_STATUS: Readonly<Record<number, ExitCode>> = {
  400: EXIT.usage,
  401: EXIT.notAllowed,
  403: EXIT.notAllowed,
  404: EXIT.notFound,
  409: EXIT.refused,
  413: EXIT.refused,
  429: EXIT.refused,
};
/** The codes of server errors that prove that nothing was admitted or done. */
const REFUSALS: readonly string[] = ['draining', 'store_full', 'audit_unavailable'];

/** Returns the exit code for a problem document that describes no command. */
export function exitOfProblem(status: number, code: string): ExitCode {
  if (REFUSALS.includes(code)) return EXIT.refused;
  return BY_STATUS[status] ?? EXIT.failed;
}

/** Returns the exit code for the code of a GraphQL error or of a refusal. */
export function exitOfCode(code: string): ExitCode {
  return exitOfProblem(Object.entries(CODES).find(([known]) => known === code)?.[1] ?? 500, code);
}

/** Returns the answer of a mutation. Throws OperatorFailure if the answer is a refusal. */
export function accepted<Answer extends object>(answer: Answer): Exclude<Answer, RefusedAnswer> {
  if (!isRefused(answer)) return answer as Exclude<Answer, RefusedAnswer>;
  const problem = { code: answer.code, detail: answer.message, by: answer.by };
  throw new OperatorFailure(exitOfCode(answer.code), answer.code, answer.message, problem);
}

type RefusedAnswer = { readonly code: string; readonly message: string; readonly by: string };

function isRefused(answer: object): answer is RefusedAnswer {
  return 'code' in answer && 'by' in answer && 'message' in answer;
}

export function notFound(message: string): OperatorFailure {
  return new OperatorFailure(EXIT.notFound, 'not_found', message);
}
