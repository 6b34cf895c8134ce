/** Lets the work for one agent take turns with the work for other users. */
import { AGENT_MESSAGE_CHARS } from '../core/limits.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';

/**
 * Runs a part of the work when the requester's user has its turn. `cost`: in the unit of a document's cost; absent: the
 * cost of one step of a list or a search.
 */
export type Turn = <T>(work: () => T, cost?: number) => MaybePromise<T>;

/** Runs the work at once. For a process that serves only one agent. */
export const AT_ONCE: Turn = (work) => work();

/** The number of characters that can be read for one unit of cost. */
const COST_CHARS = 100;

/** Reads a text: in a turn of its own if the text is large, otherwise at once. */
export function readingText<T>(turn: Turn, text: string | null, read: () => T): MaybePromise<T> {
  return text === null || text.length <= AGENT_MESSAGE_CHARS ? read() : turn(read, text.length / COST_CHARS);
}
