import { CallerError } from './errors.ts';
import type { Evidence, Failure, Handle, Invocation, Receipt } from './types.ts';

/** An answer as it came, over whichever wire. `outcome` null: the command lives. */
export type Answer<T> = Evidence & {
  readonly outcome: string | null;
  readonly result: T;
  readonly error: Failure | null;
};

/** Throws CallerError `bad_answer` for an outcome that there is not. */
export function toInvocation<T>({ outcome, result, error, ...evidence }: Answer<T>): Invocation<T> {
  const failure = error ?? { code: outcome ?? 'internal', message: 'The relay gave no reason.' };
  switch (outcome) {
    case null:
      return { ...evidence, outcome: 'pending' };
    case 'completed':
      return { ...evidence, outcome, result };
    case 'cancelled':
      return { ...evidence, outcome, partial: result };
    case 'failed':
    case 'expired':
    case 'outcome_unknown':
      return { ...evidence, outcome, error: failure };
    default:
      throw new CallerError('bad_answer', `There is no outcome ${outcome}.`, { handle: evidence.handle });
  }
}

/** Throws CallerError `bad_answer` for a state that there is not. */
export function toReceipt(handle: Handle, state: unknown): Receipt {
  if (state === 'cancelled' || state === 'requested' || state === 'too_late') return { handle, state };
  throw new CallerError('bad_answer', 'The relay gave no receipt.', { handle });
}

/** How long an invocation may wait by its own budgets, milliseconds. */
export function budgetOf(options: { readonly connectWithinMs?: number; readonly respondWithinMs?: number }): number {
  return (options.connectWithinMs ?? 0) + (options.respondWithinMs ?? 30_000);
}

export const AWAIT_WITHIN_MS = 30_000;
/** What a wait gets on top of its budget before the caller gives the relay up. */
export const GRACE_MS = 15_000;
