/** Defines the error of operators' commands, and finds the exit code of an answer. */
import { CODES } from '../protocol/codes.ts';
import { CommandError, EXIT, type ExitCode } from './io.ts';

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
