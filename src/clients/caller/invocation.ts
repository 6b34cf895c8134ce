/** Builds the public Invocation and Receipt from parsed answers. Both kinds of caller use it. */
import { CallerError } from './errors.ts';
import { readOutcome, type RawOutcome } from './outcome.ts';
import type { Evidence, Handle, Invocation, Receipt } from './types.ts';

/** The content of an answer of the relay, received over HTTP or over a link. */
export type ParsedAnswer<T> = Evidence & RawOutcome<T>;

/** Converts an answer to an Invocation. Throws CallerError `bad_answer` for an unknown outcome. */
export function toInvocation<T>({ outcome, result, error, ...evidence }: ParsedAnswer<T>): Invocation<T> {
  const end = readOutcome({ outcome, result, error });
  if (end) return { ...evidence, ...end };
  throw new CallerError('bad_answer', `Unknown outcome: ${outcome}.`, { handle: evidence.handle });
}

/** Creates a Receipt with the state of an answer. Throws CallerError `bad_answer` for an unknown state. */
export function toReceipt(handle: Handle, state: unknown): Receipt {
  if (state === 'cancelled' || state === 'requested' || state === 'too_late') return { handle, state };
  throw new CallerError('bad_answer', 'The relay gave no receipt.', { handle });
}

/** Returns the total time of an invocation, in milliseconds: its connect budget plus its response budget. */
export function budgetOf(options: { readonly connectWithinMs?: number; readonly respondWithinMs?: number }): number {
  return (options.connectWithinMs ?? 0) + (options.respondWithinMs ?? 30_000);
}

export const AWAIT_WITHIN_MS = 30_000;
