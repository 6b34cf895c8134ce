import { upFrame } from '../link/frame.ts';
import { jsonOf } from '../link/raw.ts';
import { ActionCancelled, ActionError, messageOf } from './errors.ts';
import { fits } from './limits.ts';

/** Why a command's signal was aborted. */
export type Stop = 'cancelled' | 'deadline' | 'timeout' | 'closed';

/** How a handler that stopped for another reason than a cancel failed. */
const STOPPED: Readonly<Record<Exclude<Stop, 'cancelled'>, End>> = {
  deadline: failure('client_timeout', 'Stopped at the deadline.'),
  timeout: failure('client_timeout', 'Stopped after the time that the client allows for this action.'),
  closed: failure('handler_failed', 'The client closed.'),
};

/** How a command ended here: one of the three end frames. */
export type End =
  | { readonly type: 'result' | 'cancelled'; readonly payload: string | null }
  | { readonly type: 'error'; readonly code: string; readonly message: string };

export function failure(code: string, message: string): End {
  return { type: 'error', code, message };
}

export function returned(value: unknown): End {
  const payload = toJson(value);
  return payload === undefined
    ? failure('handler_failed', 'The result cannot be written as JSON.')
    : { type: 'result', payload };
}

/** What a handler threw, seen with why it was told to stop, if it was. */
export function thrown(error: unknown, signal: AbortSignal, stop: Stop | null): End {
  const obeyed = stop !== null && (error === signal.reason || isAbort(error) || error instanceof ActionCancelled);
  if (obeyed) return stop === 'cancelled' ? { type: 'cancelled', payload: partialOf(error) } : STOPPED[stop];
  if (error instanceof ActionError) return failure(error.code, messageOf(error));
  return failure('handler_failed', messageOf(error));
}

/** The end's frame. An end that does not fit into one fails instead. */
export function endFrame(commandId: string, end: End, maxBytes: number): string {
  const text =
    end.type === 'error'
      ? upFrame({ type: 'error', command_id: commandId, code: end.code, message: end.message })
      : upFrame({ type: end.type, command_id: commandId }, end.payload);
  if (end.type === 'error' || fits(text, maxBytes)) return text;
  if (end.type === 'cancelled') return endFrame(commandId, { type: 'cancelled', payload: null }, maxBytes);
  return endFrame(commandId, failure('handler_failed', `The result is larger than ${maxBytes} bytes.`), maxBytes);
}

/** Null for undefined; undefined for what is no JSON. */
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
