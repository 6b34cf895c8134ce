/** Reads outcomes and refusals from answers of the relay, and checks their form. */
import { textOf, type HttpAnswer } from '../link/relay-request.ts';
import type { Failure, Outcome } from './types.ts';

/** An outcome as received, over HTTP or over a link. `outcome` is null while the command has not ended. */
export type RawOutcome<T> = {
  readonly outcome: string | null;
  readonly result: T;
  readonly error: Failure | null;
};

/** Reads an outcome; null if it is unknown. */
export function readOutcome<T>({ outcome, result, error }: RawOutcome<T>): Outcome<T> | null {
  const failure = error ?? { code: outcome ?? 'internal', message: 'The relay gave no reason.' };
  switch (outcome) {
    case null:
      return { outcome: 'pending' };
    case 'completed':
      return { outcome, result, ...expiredOf(error) };
    case 'cancelled':
      return { outcome, partial: result, ...expiredOf(error) };
    case 'failed':
    case 'expired':
    case 'outcome_unknown':
      return { outcome, error: failure };
    default:
      return null;
  }
}

function expiredOf(error: Failure | null): { readonly code?: 'result_expired' } {
  return error?.code === 'result_expired' ? { code: error.code } : {};
}

/** The outcome of an invocation over HTTP, with its evidence. */
export type HttpOutcome<T> = {
  readonly rpcId: string | null;
  readonly stage: string;
  readonly execution: string;
  readonly outcome: Outcome<T>;
};

/**
 * Reads the outcome from a response of any status, such as 504. Returns `refused` for a response of status 300 or above
 * that has no `outcome`. Returns null if the response does not come from a relay.
 */
export function readHttpOutcome<T>({ status, body }: HttpAnswer): HttpOutcome<T> | 'refused' | null {
  const outcomeText = textOf(body['outcome']);
  if (status >= 300 && outcomeText === null) return 'refused';
  const stage = textOf(body['stage']);
  const execution = textOf(body['execution']);
  if (stage === null || execution === null) return null;
  // The type is the caller's assumption. Nothing checks it.
  const result = (body['result'] ?? null) as T;
  const outcome = readOutcome({ outcome: outcomeText, result, error: failureOf(body) });
  return outcome && { rpcId: textOf(body['rpc_id']), stage, execution, outcome };
}

export type HttpRefusal = {
  readonly code: string;
  readonly message: string;
  readonly by: string | null;
  readonly share: string | null;
};

/** Reads a refusal; null if the response does not come from a relay. */
export function readHttpRefusal({ body }: HttpAnswer): HttpRefusal | null {
  const code = textOf(body['code']);
  if (code === null) return null;
  const message = textOf(body['detail']) ?? textOf(body['title']) ?? code;
  return { code, message, by: textOf(body['by']) ?? textOf(body['refused_by']), share: textOf(body['share']) };
}

function failureOf(body: HttpAnswer['body']): Failure | null {
  const error = body['error'];
  const inner = typeof error === 'object' && error !== null ? { ...error } : body;
  const code: unknown = 'code' in inner ? inner.code : undefined;
  const message: unknown = 'message' in inner ? inner.message : body['detail'];
  return typeof code === 'string' ? { code, message: textOf(message) ?? code } : null;
}
