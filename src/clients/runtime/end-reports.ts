/** Makes the end of a command from the value that its handler returned or the error that it threw. */
import { deeperThan, longerThan } from '../../protocol/bounds.ts';
import type { LinkBounds } from '../link/link-status.ts';
import { RawJson, jsonOf } from '../link/raw-json.ts';
import { upFrame } from '../link/session.ts';
import { ActionCancelled, ActionError, boundedMessage, messageOf } from './action-errors.ts';

/** Why a command's signal was aborted. */
export type Stop = 'cancelled' | 'deadline' | 'timeout' | 'closed';

/** The ends of commands whose handlers stopped because of an abort other than a cancel. */
const STOPPED: Readonly<Record<Exclude<Stop, 'cancelled'>, EndReport>> = {
  deadline: failure('client_timeout', 'The deadline has passed.'),
  timeout: failure('client_timeout', 'The time of the action is over.'),
  closed: failure('handler_failed', 'The client closed.'),
};

/** The end of a command at this client: the content of one of the three end frames. */
export type EndReport =
  | { readonly type: 'result' | 'cancelled'; readonly payload: string | null }
  | { readonly type: 'error'; readonly code: string; readonly message: string };

export function failure(code: string, message: string): EndReport {
  return { type: 'error', code, message };
}

/**
 * Returns the end of a command whose handler returned this value. If JSON cannot represent the value, the end is
 * `result_unavailable`, because the handler ran.
 */
export function returned(value: unknown): EndReport {
  const payload = toJson(value);
  // JSON writes maps, sets and promises as `{}`, so the value is searched for them only if its text contains `{}`.
  const fault = payload === undefined || payload?.includes('{}') ? unwritable(value) : null;
  if (payload !== undefined && fault === null) return { type: 'result', payload };
  return failure('result_unavailable', boundedMessage(`JSON cannot hold the result: ${fault ?? 'it'}.`));
}

/**
 * Finds the first part of a value that JSON cannot represent. Returns its path and kind, such as `/rows/3 is a Map`;
 * null if there is none. `around`: the objects that contain the value.
 */
function unwritable(value: unknown, path = '', around: readonly object[] = []): string | null {
  const kind = Object.prototype.toString.call(value).slice(8, -1);
  if (/^(BigInt|Symbol|Function|AsyncFunction|Promise|(Weak)?(Map|Set))$/.test(kind))
    return `${path || 'it'} is a ${kind}`;
  if (!(value instanceof Object) || value instanceof RawJson) return null;
  if (around.includes(value)) return `${path} is an object that contains itself`;
  const inner = [...around, value];
  if (inner.length > DEPTH) return `${path.slice(0, 100)} is nested too deeply`;
  try {
    const shown: unknown = 'toJSON' in value && typeof value.toJSON === 'function' ? value.toJSON() : value;
    if (shown !== value) return unwritable(shown, path, inner);
    for (const [name, member] of Object.entries(value)) {
      // JSON leaves out members that are functions, symbols or undefined.
      if (typeof member === 'function' || typeof member === 'symbol') continue;
      const fault = unwritable(member, `${path}/${name}`, inner);
      if (fault !== null) return fault;
    }
    return null;
  } catch (error) {
    return `${path || 'it'} throws: ${messageOf(error)}`;
  }
}

/** How deeply `unwritable` searches: as deep as a relay accepts JSON. */
const DEPTH = 200;

/** Returns the end of a command whose handler threw. `stop`: why the signal was aborted; null if it was not. */
export function thrown(error: unknown, signal: AbortSignal, stop: Stop | null): EndReport {
  const aborted = error === signal.reason || (error instanceof Error && error.name === 'AbortError');
  if (stop !== null && (aborted || error instanceof ActionCancelled))
    return stop === 'cancelled' ? { type: 'cancelled', payload: partialOf(error) } : STOPPED[stop];
  if (error instanceof ActionError) return failure(error.code, messageOf(error));
  return failure('handler_failed', messageOf(error));
}

/**
 * Returns the frame of an end. If a result exceeds a bound of the relay, the end is `result_unavailable` instead,
 * because the handler ran.
 */
export function endFrame(commandId: string, end: EndReport, bounds: LinkBounds): string {
  const { type } = end;
  if (type === 'error') return upFrame({ type, command_id: commandId, code: end.code, message: end.message });
  const text = upFrame({ type, command_id: commandId }, end.payload);
  const fault = faultOfPayload(text, end.payload ?? '', bounds);
  return fault === null ? text : endFrame(commandId, failure('result_unavailable', `The result is ${fault}.`), bounds);
}

function faultOfPayload(frame: string, payload: string, { maxFrameBytes, maxDepth }: LinkBounds): string | null {
  if (longerThan(frame, maxFrameBytes)) return `larger than ${maxFrameBytes} bytes`;
  return deeperThan(payload, maxDepth) ? `nested deeper than ${maxDepth} levels` : null;
}

/** Returns a value as JSON text; null for undefined; undefined if JSON cannot represent the value. */
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
