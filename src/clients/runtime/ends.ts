/** Makes the ends of commands from what a handler returned or threw. */
import { deeperThan, longerThan } from '../../protocol/bounds.ts';
import type { LinkBounds } from '../link/link-status.ts';
import { RawJson, jsonOf } from '../link/raw-json.ts';
import { upFrame } from '../link/session.ts';
import { ActionCancelled, ActionError, boundedMessage, messageOf } from './action-errors.ts';

/** The reason why a command's signal was aborted. */
export type Stop = 'cancelled' | 'deadline' | 'timeout' | 'closed';

/** The ends of commands whose handlers stopped for a reason other than a cancel, by that reason. */
const STOPPED: Readonly<Record<Exclude<Stop, 'cancelled'>, EndReport>> = {
  deadline: failure('client_timeout', 'The deadline has passed.'),
  timeout: failure('client_timeout', 'The time of the action is over.'),
  closed: failure('handler_failed', 'The client closed.'),
};

/** How a command ended at this client: the content of one of the three end frames. */
export type EndReport =
  | { readonly type: 'result' | 'cancelled'; readonly payload: string | null }
  | { readonly type: 'error'; readonly code: string; readonly message: string };

export function failure(code: string, message: string): EndReport {
  return { type: 'error', code, message };
}

/** Returns the end of a command whose handler returned this value. It ran, also if JSON cannot hold the value. */
export function returned(value: unknown): EndReport {
  const payload = toJson(value);
  // JSON writes maps, sets and promises as `{}`, so they are looked for only where that occurs.
  const fault = payload === undefined || payload?.includes('{}') ? unwritable(value) : null;
  if (payload !== undefined && fault === null) return { type: 'result', payload };
  return failure('result_unavailable', boundedMessage(`JSON cannot hold the result: ${fault ?? 'it'}.`));
}

/**
 * Returns the path and the kind of the first part of a value that JSON cannot hold, such as `/rows/3 is a Map`; null if
 * there is none. `around`: the objects that the value is in.
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
      // JSON leaves out members that are functions or symbols, and undefined.
      if (typeof member === 'function' || typeof member === 'symbol') continue;
      const fault = unwritable(member, `${path}/${name}`, inner);
      if (fault !== null) return fault;
    }
    return null;
  } catch (error) {
    return `${path || 'it'} throws: ${messageOf(error)}`;
  }
}

/** How deeply `unwritable` looks: as deep as a relay accepts JSON. */
const DEPTH = 200;

/** Returns the end of a command whose handler threw. `stop`: why its signal was aborted; null if it was not. */
export function thrown(error: unknown, signal: AbortSignal, stop: Stop | null): EndReport {
  const aborted = error === signal.reason || (error instanceof Error && error.name === 'AbortError');
  if (stop !== null && (aborted || error instanceof ActionCancelled))
    return stop === 'cancelled' ? { type: 'cancelled', payload: partialOf(error) } : STOPPED[stop];
  if (error instanceof ActionError) return failure(error.code, messageOf(error));
  return failure('handler_failed', messageOf(error));
}

/** Returns the frame of an end. A result beyond a bound becomes the failure `result_unavailable`: the handler ran. */
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

/** Returns a value as JSON text; null for the value undefined, and undefined for a value that JSON cannot express. */
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
