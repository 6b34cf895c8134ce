/** Makes the ends of commands from what a handler returned or threw, and writes them as frames. */
import { upFrame } from '../link/frame.ts';
import { jsonOf } from '../link/raw.ts';
import { ActionCancelled, ActionError, messageOf } from './errors.ts';
import { fits } from './limits.ts';

/** The reason why a command's signal was aborted. */
export type Stop = 'cancelled' | 'deadline' | 'timeout' | 'closed';

/** The ends of commands whose handlers stopped for a reason other than a cancel, by that reason. */
const STOPPED: Readonly<Record<Exclude<Stop, 'cancelled'>, EndReport>> = {
  deadline: failure('client_timeout', 'Stopped at the deadline.'),
  timeout: failure('client_timeout', 'Stopped after the time that the client allows for this action.'),
  closed: failure('handler_failed', 'The client closed.'),
};

/** How a command ended at this client: the content of one of the three end frames. */
export type EndReport =
  | { readonly type: 'result' | 'cancelled'; readonly payload: string | null }
  | { readonly type: 'error'; readonly code: string; readonly message: string };

export function failure(code: string, message: string): EndReport {
  return { type: 'error', code, message };
}

export function returned(value: unknown): EndReport {
  const payload = toJson(value);
  return payload === undefined
    ? failure('handler_failed', 'The result cannot be written as JSON.')
    : { type: 'result', payload };
}

/**
 * Returns the end of a command whose handler threw. `stop` is the reason why its signal was aborted; null if it was
 * not.
 */
export function thrown(error: unknown, signal: AbortSignal, stop: Stop | null): EndReport {
  const obeyed = stop !== null && (error === signal.reason || isAbort(error) || error instanceof ActionCancelled);
  if (obeyed) return stop === 'cancelled' ? { type: 'cancelled', payload: partialOf(error) } : STOPPED[stop];
  if (error instanceof ActionError) return failure(error.code, messageOf(error));
  return failure('handler_failed', messageOf(error));
}

/**
 * Returns the frame of an end. The frame has at most `maxBytes` bytes: a result that is too large becomes a failure,
 * and a partial result that is too large is left out.
 */
export function endFrame(commandId: string, end: EndReport, maxBytes: number): string {
  const text =
    end.type === 'error'
      ? upFrame({ type: 'error', command_id: commandId, code: end.code, message: end.message })
      : upFrame({ type: end.type, command_id: commandId }, end.payload);
  if (end.type === 'error' || fits(text, maxBytes)) return text;
  if (end.type === 'cancelled') return endFrame(commandId, { type: 'cancelled', payload: null }, maxBytes);
  return endFrame(commandId, failure('handler_failed', `The result is larger than ${maxBytes} bytes.`), maxBytes);
}

/**
 * Returns a value as JSON text. Returns null for the value undefined, and undefined for a value that JSON cannot
 * express.
 */
export function toJson(value: unknown): string | null | undefined {
  if (value === undefined) return null;
  try {
    return jsonOf(value);
  } catch {
    return undefined;
  }
}

function partialOf(error: unknown): string | null {
  return error instanceof ActionCancelled ? (toJson(error.partial) ?? null) : null;
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}
