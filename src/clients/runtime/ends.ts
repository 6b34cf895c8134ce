/** Makes the ends of commands from what a handler returned or threw, and writes them as frames. */
import { MAX_ERROR_MESSAGE } from '../../protocol/codes.ts';
import { upFrame } from '../link/link.ts';
import { jsonOf } from '../link/platform.ts';

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

// Defines the errors that handlers throw, and the errors of the runtime's methods.

/**
 * The code of a failure that a handler reports. `handler_failed`: the handler failed. `result_unavailable`: the command
 * ran, but its result cannot be given. `client_timeout`: the command took longer than the client allows.
 */
export type ActionErrorCode = 'handler_failed' | 'result_unavailable' | 'client_timeout';

const OWN_CODES: ReadonlySet<string> = new Set<ActionErrorCode>(['result_unavailable', 'client_timeout']);

/**
 * A handler throws this error to choose the message and code of its failure. Callers see the first line of the message,
 * at most 256 characters. The codes of a client's refusals are not allowed here, because they prove that no handler
 * ran.
 */
export class ActionError extends Error {
  readonly code: ActionErrorCode;

  constructor(message: string, code: ActionErrorCode = 'handler_failed') {
    super(message);
    this.name = 'ActionError';
    this.code = OWN_CODES.has(code) ? code : 'handler_failed';
  }
}

/** A handler throws this error when it stopped because `call.signal` was aborted. `partial` is its partial result. */
export class ActionCancelled extends Error {
  readonly partial: unknown;

  constructor(partial?: unknown) {
    super('The command was cancelled.');
    this.name = 'ActionCancelled';
    this.partial = partial;
  }
}

/** The relay refused a site's definition or removal. `code` is one of callboard's codes. */
export class SiteRefusedError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.name = 'SiteRefusedError';
    this.code = code;
  }
}

/**
 * Returns the first line of a message, truncated to 256 characters. A stack trace inside a message is thereby never
 * sent.
 */
export function boundedMessage(text: string): string {
  const line = text.split('\n', 1)[0] ?? '';
  return line.length <= MAX_ERROR_MESSAGE ? line : `${line.slice(0, MAX_ERROR_MESSAGE - 1)}…`;
}

/** Returns a bounded message for a thrown value; never throws. */
export function messageOf(error: unknown): string {
  try {
    if (error instanceof Error) return boundedMessage(error.message || error.name);
    return typeof error === 'string' ? boundedMessage(error) : 'The handler threw a value that is not an Error.';
  } catch {
    return 'The handler failed.';
  }
}

// Limits of the runtime. Sizes are bytes of UTF-8, times are milliseconds. The limits of actions, metadata and frames
// are the relay's (PROTOCOL.md, section 10).

export const MAX_ACTIONS = 256;
export const MAX_ACTION_BYTES = 64 * 1024;
/** The longest delay that setTimeout accepts. */
export const MAX_TIMEOUT_MS = 2 ** 31 - 1;
export const MAX_METADATA_BYTES = 16 * 1024;
export const MAX_FRAME_BYTES = 1024 * 1024;
/** The most cooperative sites of one client. Equals the relay's limit for one user. */
export const MAX_SITES = 100;
/** The most ends that wait for their `result_ack`. */
export const OUTBOX_ENDS = 256;
/** The most bytes of all ends that wait for their `result_ack`. */
export const OUTBOX_BYTES = 1024 * 1024;
/** The number of commands that the ledger remembers, so that none runs twice. */
export const LEDGER_IDS = 1000;
/** The most bytes of ends that the ledger keeps, to send them again. */
export const LEDGER_BYTES = 1024 * 1024;
/**
 * The most commands in progress at once. It is above the relay's window, because handlers may run on after their
 * deadline.
 */
export const MAX_RUNNING = 256;
/** The number of unsent bytes in the socket above which progress is dropped. */
export const PROGRESS_BACKLOG_BYTES = 1024 * 1024;
/**
 * The most progress frames per second. Further ones are dropped, so that a handler in a tight loop does not cost the
 * client its link.
 */
export const PROGRESS_RATE = 50;
/**
 * The number of kept ends that are sent again at once. They may be ends of commands that are not in flight on the new
 * link. The relay limits such frames to 100 a second and 200 at once.
 */
export const RESEND_AT_ONCE = 100;
/**
 * The most reports of contexts and windows per second, so that frequent changes do not cost the client its link.
 * Further changes wait for REPORT_WAIT_MS and are reported together.
 */
export const REPORT_RATE = 20;
export const REPORT_WAIT_MS = 100;
/** The default time that `close` waits for the relay's answer and for running commands. */
export const CLOSE_MS = 10_000;
/** The delay before further kept ends are sent, and before an end that the relay refused temporarily is sent again. */
export const RESEND_MS = 1_000;

const encoder = new TextEncoder();

/**
 * Returns whether the text has at most `bytes` bytes as UTF-8. Encodes the text only if its length alone does not
 * decide.
 */
export function fits(text: string, bytes: number): boolean {
  return text.length * 3 <= bytes || (text.length <= bytes && encoder.encode(text).length <= bytes);
}

export function byteLength(text: string): number {
  return encoder.encode(text).length;
}
