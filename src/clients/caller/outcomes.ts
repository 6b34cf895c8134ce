/** Reads the relay's answers to calls, and checks their format. */
import { CANCEL_STATES, EXECUTIONS, STAGES, type Code } from '../../protocol/codes.ts';
import { isRecord } from '../../protocol/json.ts';
import { badAnswer, refusalIn, textOf, type AnswerRefusal, type HttpAnswer } from '../link/library-error.ts';
import { type Evidence, type Outcome, type Handle, type Receipt, CallerError } from './caller.ts';

/** An outcome in the format of the relay, from a response or from a frame. */
type WireOutcome = Readonly<Record<string, unknown>>;
/** The members of an outcome that are in different places over HTTP and over a link. */
type OutcomeFields<T> = {
  readonly result: T;
  readonly error: { readonly code: string; readonly message: string } | null;
};

export type Ended<T> = Omit<Evidence, 'handle'> & Outcome<T>;

/**
 * Reads an outcome. Null if it has a word that this version does not know. If the member `outcome` is absent, the
 * command has not ended.
 */
export function readOutcome<T>(wire: WireOutcome, { result, error }: OutcomeFields<T>): Ended<T> | null {
  const stage = wordOf(STAGES, wire['stage']);
  const execution = wordOf(EXECUTIONS, wire['execution']);
  if (stage === undefined || execution === undefined) return null;
  const outcome = textOf(wire['outcome']);
  // If the command has not ended, the stage that it has reached is proven.
  const lastProvenStage = wordOf(STAGES, wire['last_proven_stage']) ?? (outcome === null ? stage : null);
  const evidence = { rpcId: textOf(wire['rpc_id']), stage, lastProvenStage, execution };
  // A newer relay may send a code that is not among the types of this version.
  const code = (error?.code ?? outcome ?? 'internal') as Code;
  const failure = { code, message: error?.message ?? 'The relay gave no reason.' };
  const expired: { code?: 'result_expired' } = code === 'result_expired' ? { code } : {};
  switch (outcome) {
    case null:
      return { ...evidence, outcome: 'pending' };
    case 'completed':
      return { ...evidence, outcome, result, ...expired };
    case 'cancelled':
      return { ...evidence, outcome, partial: result, ...expired };
    case 'failed':
    case 'expired':
    case 'outcome_unknown':
      return { ...evidence, outcome, error: failure };
    default:
      return null;
  }
}

/**
 * Reads the outcome in a response, whatever its status, such as 504. If the response is a refusal, throws
 * `errorOf(refusal)`. If it does not come from a relay, throws `errorOf` with the code `bad_answer`.
 */
export function readHttpOutcome<T>(answer: HttpAnswer, errorOf: (refusal: AnswerRefusal) => Error): Ended<T> {
  const { status, body } = answer;
  if (status >= 300 && textOf(body['outcome']) === null) throw errorOf(refusalIn(answer));
  // The type of the result is what the caller expects; it is not checked.
  const read = readOutcome(body, { result: (body['result'] ?? null) as T, error: failureOf(body) });
  if (read === null) throw errorOf(badAnswer(status));
  return read;
}

/** Returns the value if it is one of the words; undefined otherwise. */
export function wordOf<T extends string>(words: readonly T[], value: unknown): T | undefined {
  return words.find((word) => word === value);
}

function failureOf(body: HttpAnswer['body']): { readonly code: string; readonly message: string } | null {
  const error = isRecord(body['error']) ? body['error'] : body;
  const code = textOf(error['code']);
  return code === null ? null : { code, message: textOf(error['message'] ?? body['detail']) ?? code };
}

/** Makes a Receipt from the state in an answer. Throws CallerError `bad_answer` if the state is unknown. */
export function toReceipt(handle: Handle, state: unknown): Receipt {
  const word = wordOf(CANCEL_STATES, state);
  if (word !== undefined) return { handle, state: word };
  throw answerWithout(handle, 'receipt');
}

/** Makes the error for an answer that does not contain what was expected. */
export function answerWithout(handle: Handle, expected: string, cause?: unknown): CallerError {
  return new CallerError('bad_answer', `The relay gave no ${expected}.`, { handle, cause });
}
