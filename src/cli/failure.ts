/** Defines the exit codes of the operators' commands, and the error that carries one. */
import { CODES } from '../protocol/codes.ts';

/**
 * The exit codes of the operators' commands. 5 and 7 prove that nothing ran, so the call may be repeated. After 8, look
 * at the command before repeating it.
 */
export const OPERATOR_EXIT = {
  done: 0,
  unexpected: 1,
  usage: 2,
  notFound: 3,
  notAllowed: 4,
  refused: 5,
  failed: 6,
  expired: 7,
  unknown: 8,
  running: 9,
  unreachable: 11,
  interrupted: 130,
} as const;

export type OperatorExit = (typeof OPERATOR_EXIT)[keyof typeof OPERATOR_EXIT];

/**
 * The error that ends a command with an exit code. `code` is an error code of the relay, or one of the command line's
 * own.
 */
export class OperatorFailure extends Error {
  override readonly name = 'OperatorFailure';
  readonly exit: OperatorExit;
  readonly code: string;
  /** The relay's problem document, if it sent one. */
  readonly problem: Readonly<Record<string, unknown>> | null;

  constructor(
    exit: OperatorExit,
    code: string,
    message: string,
    problem: Readonly<Record<string, unknown>> | null = null,
  ) {
    super(message);
    this.exit = exit;
    this.code = code;
    this.problem = problem;
  }
}

export function usageFailure(message: string): OperatorFailure {
  return new OperatorFailure(OPERATOR_EXIT.usage, 'invalid_usage', message);
}

const BY_OUTCOME: Readonly<Record<string, OperatorExit>> = {
  completed: OPERATOR_EXIT.done,
  failed: OPERATOR_EXIT.failed,
  cancelled: OPERATOR_EXIT.failed,
  expired: OPERATOR_EXIT.expired,
  outcome_unknown: OPERATOR_EXIT.unknown,
};

/** Returns the exit code for a command as the relay describes it; null for a body that describes no command. */
export function exitOfCommand(body: Readonly<Record<string, unknown>>): OperatorExit | null {
  const { outcome } = body;
  if (outcome === null && typeof body['stage'] === 'string') return OPERATOR_EXIT.running;
  return typeof outcome === 'string' ? (BY_OUTCOME[outcome] ?? OPERATOR_EXIT.unexpected) : null;
}

const BY_STATUS: Readonly<Record<number, OperatorExit>> = {
  400: OPERATOR_EXIT.usage,
  401: OPERATOR_EXIT.notAllowed,
  403: OPERATOR_EXIT.notAllowed,
  404: OPERATOR_EXIT.notFound,
  409: OPERATOR_EXIT.refused,
  413: OPERATOR_EXIT.refused,
  429: OPERATOR_EXIT.refused,
};
/** The codes of server errors that prove that nothing was admitted or done. */
const REFUSALS: readonly string[] = ['draining', 'store_full', 'audit_unavailable'];

/** Returns the exit code for a problem document that describes no command. */
export function exitOfProblem(status: number, code: string): OperatorExit {
  if (REFUSALS.includes(code)) return OPERATOR_EXIT.refused;
  return BY_STATUS[status] ?? OPERATOR_EXIT.unexpected;
}

/** Returns the exit code for the code of a GraphQL error or of a refusal. */
export function exitOfCode(code: string): OperatorExit {
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
  return new OperatorFailure(OPERATOR_EXIT.notFound, 'not_found', message);
}
