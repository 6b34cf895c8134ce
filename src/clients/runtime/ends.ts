/**
 * Makes the ends of commands from what a handler returned or threw, and delivers them to the relay. Also defines the
 * errors that handlers and the runtime throw.
 */
import { deeperThan, longerThan, utf8Length } from '../../protocol/bounds.ts';
import { MAX_ERROR_MESSAGE } from '../../protocol/codes.ts';
import { upFrame, type LinkFrame } from '../link/session.ts';
import type { LinkBounds } from '../link/link-status.ts';
import { RawJson, jsonOf } from '../link/raw-json.ts';
import type { Clock } from '../link/platform.ts';
import type { ErrorCode } from '../link/library-error.ts';

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

/** The relay refused a site's definition or removal. */
export class SiteRefusedError extends Error {
  readonly code: ErrorCode;

  constructor(code: string, message: string) {
    super(message);
    this.name = 'SiteRefusedError';
    // The code comes from the relay, as a text.
    this.code = code as ErrorCode;
  }
}

/** Returns the first line of a message, truncated to 256 characters. So a stack trace in a message is never sent. */
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

// Sizes are bytes of UTF-8, times are milliseconds.

/** The most ends that wait for their `result_ack`, and the most bytes of them together. */
const OUTBOX_ENDS = 256;
const OUTBOX_BYTES = 1024 * 1024;
/** The number of commands that are remembered, so that none runs twice. */
const LEDGER_IDS = 1000;
/** The most bytes of ends that are remembered, to send them again. */
const LEDGER_BYTES = 1024 * 1024;
/**
 * The number of kept ends that are sent again at once. They may be ends of commands that are not in flight on the new
 * link. The relay limits such frames to 100 a second and 200 at once.
 */
const RESEND_AT_ONCE = 100;
/** The delay before further kept ends, and frames that the relay refused temporarily, are sent again. */
const RESEND_MS = 1_000;

// Delivers the ends of commands to the relay, and repeats them until the relay acknowledges them.

export type Refused = Extract<LinkFrame, { type: 'refused' }>;

/** The codes of temporary refusals. What the relay refused with such a code is sent again later. */
const TEMPORARY_CODES: ReadonlySet<string> = new Set(['store_unavailable', 'draining', 'rate_limited', 'internal']);

/** Returns after how many milliseconds a refused frame is sent again; null for a refusal that is not temporary. */
export function retryMs({ code, retry_after_ms }: Refused, more?: ReadonlySet<string>): number | null {
  return TEMPORARY_CODES.has(code) || more?.has(code) ? Math.max(RESEND_MS, retry_after_ms ?? 0) : null;
}

/** Returns the error that `onError` receives for a refused frame. */
export function refusalError({ code, message, share, frame = 'a frame' }: Refused): Error {
  const why = share === undefined ? code : `${code} (${share})`;
  return new Error(`The relay refused ${frame}: ${why}: ${message}`);
}

const END_FRAMES: ReadonlySet<string | undefined> = new Set(['result', 'error', 'cancelled']);

type DelivererOptions = {
  readonly clock: Clock;
  bounds(): LinkBounds;
  /** Returns false when there is no link. */
  send(text: string): boolean;
  /** Called for an end that the relay will never receive. */
  dropped(commandId: string, reason: string): void;
  /** Called whenever the deliverer may have become empty. */
  onTaken(): void;
};

/** The frame with which a command ended. `text` null: it is no longer kept. */
type Ended = { readonly text: string | null; readonly bytes: number };

/**
 * Delivers the ends of commands. Keeps each end, and sends it again on each new link, until the relay acknowledges it
 * or newer ends need the room. Also remembers the last LEDGER_IDS commands, so that none runs twice and a repeated
 * command is answered with its end.
 */
export class Deliverer {
  readonly #options: DelivererOptions;
  /** The ends that the relay has not acknowledged, oldest first. */
  readonly #outbox = new Map<string, { readonly text: string; readonly bytes: number }>();
  #outboxBytes = 0;
  /** What ran. Ended commands are in the order of their ends; a running one keeps the position of its beginning. */
  readonly #ledger = new Map<string, 'running' | Ended>();
  #ledgerBytes = 0;
  /** The commands that arrived and whose ends the relay has not acknowledged, ended or not. */
  readonly received = new Set<string>();
  #closed = false;
  #resending = false;

  constructor(options: DelivererOptions) {
    this.#options = options;
  }

  /** The number of ends that the relay has not acknowledged. */
  get size(): number {
    return this.#outbox.size;
  }

  /**
   * Looks up a received command. `new`: it is unknown and now marked as running. `running`: it already runs. `ended`:
   * it has ended, and its end is sent again, or `result_unavailable` if the end is no longer kept.
   */
  begin(commandId: string): 'new' | 'running' | 'ended' {
    const known = this.#ledger.get(commandId);
    if (known === 'running') return 'running';
    if (!known) {
      this.#ledger.set(commandId, 'running');
      this.received.add(commandId);
      this.#forgetCommands();
      return 'new';
    }
    const gone = failure('result_unavailable', 'The command ran before, and its end is no longer kept.');
    this.#deliver(commandId, known.text ?? endFrame(commandId, gone, this.#options.bounds()));
    return 'ended';
  }

  end(commandId: string, end: EndReport): void {
    const text = endFrame(commandId, end, this.#options.bounds());
    const bytes = utf8Length(text);
    this.#ledger.delete(commandId);
    this.#ledger.set(commandId, { text, bytes });
    this.#ledgerBytes += bytes;
    this.#forgetTexts();
    this.#deliver(commandId, text);
  }

  taken(commandId: string): void {
    this.received.delete(commandId);
    this.#remove(commandId);
    this.#options.onTaken();
  }

  /** Handles the refusal of an end. Ignores refusals of other frames. */
  refused(refusal: Refused): void {
    const { code, frame, command_id } = refusal;
    if (command_id === undefined || !END_FRAMES.has(frame)) return;
    const ms = retryMs(refusal);
    if (ms !== null) return this.#resendIn(ms);
    if (this.#remove(command_id)) this.#options.dropped(command_id, code);
    this.#options.onTaken();
  }

  /** Sends the oldest kept ends, at most RESEND_AT_ONCE. If there are more, it calls itself again after RESEND_MS. */
  resend(): void {
    for (const { text } of [...this.#outbox.values()].slice(0, RESEND_AT_ONCE)) this.#options.send(text);
    if (this.size > RESEND_AT_ONCE) this.#resendIn(RESEND_MS);
  }

  /** Drops all kept ends. Called when the link is closed permanently. */
  close(): void {
    this.#closed = true;
    const dropped = [...this.#outbox.keys()];
    this.#outbox.clear();
    this.#outboxBytes = 0;
    for (const commandId of dropped) this.#options.dropped(commandId, 'closed');
  }

  #deliver(commandId: string, text: string): void {
    if (this.#closed) return this.#options.dropped(commandId, 'closed');
    this.#remove(commandId);
    const bytes = utf8Length(text);
    this.#outbox.set(commandId, { text, bytes });
    this.#outboxBytes += bytes;
    for (const oldest of this.#outbox.keys()) {
      if (this.size <= OUTBOX_ENDS && this.#outboxBytes <= OUTBOX_BYTES) break;
      this.#remove(oldest);
      this.#options.dropped(oldest, 'outbox_full');
    }
    this.#options.send(text);
  }

  /** Removes an end that waits. Returns false when there is none. */
  #remove(commandId: string): boolean {
    this.#outboxBytes -= this.#outbox.get(commandId)?.bytes ?? 0;
    return this.#outbox.delete(commandId);
  }

  #resendIn(ms: number): void {
    if (this.#resending) return;
    this.#resending = true;
    this.#options.clock.after(ms, () => {
      this.#resending = false;
      this.resend();
    });
  }

  /** Forgets the oldest ended commands above LEDGER_IDS; never a running one. */
  #forgetCommands(): void {
    for (const [commandId, entry] of this.#ledger) {
      if (this.#ledger.size <= LEDGER_IDS) return;
      if (entry === 'running') continue;
      this.#ledger.delete(commandId);
      this.received.delete(commandId);
      this.#ledgerBytes -= entry.bytes;
    }
  }

  /** Forgets the oldest ends above LEDGER_BYTES, but not that their commands ran. */
  #forgetTexts(): void {
    for (const [commandId, entry] of this.#ledger) {
      if (this.#ledgerBytes <= LEDGER_BYTES) return;
      if (entry === 'running') continue;
      this.#ledgerBytes -= entry.bytes;
      this.#ledger.set(commandId, { text: null, bytes: 0 });
    }
  }
}
