/** The exit codes of commands, and the errors that carry them. */
import { CODES } from '../protocol/codes.ts';

/**
 * The exit codes. If `callboard call` exits with 5 or 7, nothing has run, so it may be repeated. After 8, look up the
 * command before you repeat it.
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

/** The exit code of a relay that ended because of an uncaught error (EX_SOFTWARE in sysexits.h). */
export const CRASHED = 70;

/** An error that ends a command with an exit code. */
export class CommandError extends Error {
  readonly exit: ExitCode;

  constructor(message: string, exit: ExitCode = EXIT.failed) {
    super(message);
    this.exit = exit;
  }
}

/** The error for wrong arguments of a command. */
export class UsageError extends CommandError {
  constructor(message: string) {
    super(message, EXIT.usage);
  }
}

/** An error that ends an operator's command. `code`: one of the relay's codes, or one of the command line's own. */
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

/** Returns the exit code for the state of a command in a relay's answer; null if the answer describes no command. */
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
/** The codes of server errors after which it is certain that nothing was admitted or done. */
const REFUSALS: readonly string[] = ['draining', 'store_full', 'audit_unavailable'];

/** Returns the exit code for a problem document that describes no command. */
export function exitOfProblem(status: number, code: string): ExitCode {
  if (REFUSALS.includes(code)) return EXIT.refused;
  return BY_STATUS[status] ?? EXIT.failed;
}

/** Returns the exit code for the code of a GraphQL error or a refusal. */
export function exitOfCode(code: string): ExitCode {
  return exitOfProblem(Object.entries(CODES).find(([known]) => known === code)?.[1] ?? 500, code);
}

/** Returns the result of a mutation. Throws OperatorFailure if it is a refusal. */
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
