/**
 * Makes the ends of commands from what a handler returned or threw, and delivers them to the relay. Also defines the
 * errors that handlers and the runtime throw.
 */
import { MAX_ERROR_MESSAGE } from '../../protocol/codes.ts';
import { upFrame, type LinkFrame } from '../link/link.ts';
import { jsonOf, type Clock } from '../link/platform.ts';
import type { ErrorCode } from '../link/relay-request.ts';

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

export function returned(value: unknown): EndReport {
  const payload = toJson(value);
  return payload === undefined
    ? failure('handler_failed', 'The result cannot be written as JSON.')
    : { type: 'result', payload };
}

/** Returns the end of a command whose handler threw. `stop`: why its signal was aborted; null if it was not. */
export function thrown(error: unknown, signal: AbortSignal, stop: Stop | null): EndReport {
  const aborted = error === signal.reason || (error instanceof Error && error.name === 'AbortError');
  if (stop !== null && (aborted || error instanceof ActionCancelled))
    return stop === 'cancelled' ? { type: 'cancelled', payload: partialOf(error) } : STOPPED[stop];
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

// Sizes are bytes of UTF-8, times are milliseconds. The limit of a frame is the relay's (PROTOCOL.md, section 10).

const MAX_FRAME_BYTES = 1024 * 1024;
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
  /** The largest frame in bytes, from the last `welcome`. */
  maxFrame = MAX_FRAME_BYTES;
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
      this.#forgetCommands();
      return 'new';
    }
    const gone = failure('result_unavailable', 'The command ran before, and its end is no longer kept.');
    this.#deliver(commandId, known.text ?? endFrame(commandId, gone, this.maxFrame));
    return 'ended';
  }

  end(commandId: string, end: EndReport): void {
    const text = endFrame(commandId, end, this.maxFrame);
    const bytes = byteLength(text);
    this.#ledger.delete(commandId);
    this.#ledger.set(commandId, { text, bytes });
    this.#ledgerBytes += bytes;
    this.#forgetTexts();
    this.#deliver(commandId, text);
  }

  taken(commandId: string): void {
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
    const bytes = byteLength(text);
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
