import { CallerError } from './errors.ts';
import { readOutcome, type RawOutcome } from './outcome.ts';
import type { Evidence, Handle, Invocation, Receipt } from './types.ts';

/** An answer as it came, over whichever wire. */
export type Answer<T> = Evidence & RawOutcome<T>;

/** Throws CallerError `bad_answer` for an outcome that there is not. */
export function toInvocation<T>({ outcome, result, error, ...evidence }: Answer<T>): Invocation<T> {
  const end = readOutcome({ outcome, result, error });
  if (end) return { ...evidence, ...end };
  throw new CallerError('bad_answer', `There is no outcome ${outcome}.`, { handle: evidence.handle });
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
