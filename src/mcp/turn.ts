/** The turns that the work for an agent takes with that of others. */
import { AGENT_MESSAGE_CHARS } from '../core/limits.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';

/**
 * Runs a part of the work for a requester when it is the turn of its user. `cost`: in the unit of the costs of
 * documents; absent: that of a step of a list or a search.
 */
export type Turn = <T>(work: () => T, cost?: number) => MaybePromise<T>;

/** Runs the work at once, for a process that serves one agent only. */
export const AT_ONCE: Turn = (work) => work();

/** The characters of a text that can be read for one unit of cost. */
const COST_CHARS = 100;

/** Reads a text in a turn of its own if it is large, otherwise at once. */
export function readingText<T>(turn: Turn, text: string | null, read: () => T): MaybePromise<T> {
  return text === null || text.length <= AGENT_MESSAGE_CHARS ? read() : turn(read, text.length / COST_CHARS);
}
