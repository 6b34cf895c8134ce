/**
 * Configures `ws`, turns its events into calls of a handler, and writes the frames of a link. Reads no frames.
 */
import { Buffer } from 'node:buffer';
import type { Duplex } from 'node:stream';
import { WebSocket, WebSocketServer, type RawData, type Server, type ServerOptions } from 'ws';
import { BoundedMap } from '../core/collections.ts';
import type { Command } from '../core/commands/command.ts';
import type { ClientLink } from '../core/commands/client-link.ts';
import type { DisconnectCause } from '../core/connections/connection.ts';
import type { JsonText } from '../core/json.ts';
import {
  BACK_PRESSURE_BYTES,
  BACK_PRESSURE_CLOSE_BYTES,
  BAD_FRAMES,
  BAD_FRAMES_MS,
  FRAME_BURST,
  FRAME_RATE,
  IN_FLIGHT,
  MAX_FRAME_BYTES,
} from '../core/limits.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock, Crypto, EventLoop } from '../core/ports.ts';
import { SlidingWindow, TokenBucket, type BucketRate, type WindowRate } from '../core/rates.ts';
import type { TraceFields } from '../core/trace-context.ts';
import { CLOSE, type CloseReason, reconnectAfter } from '../protocol/codes.ts';
import type { FrameFault } from '../protocol/frame-fault.ts';
import { writeHeader } from '../protocol/write-header.ts';
import { joinFrame } from '../protocol/frame-codec.ts';
import { SUBPROTOCOL, type DownHeader } from '../protocol/frames.ts';
import { REASON_OF_CAUSE, byeFor, refusedFrame, type OffendingFrame, type Refusal } from './refusals.ts';

/** How long a peer may take to answer a close frame before its socket is destroyed, in milliseconds. */
const CLOSE_HANDSHAKE_MS = 3_000;
/**
 * The most fragments of a message: enough for the largest frame in fragments of 1 KiB. Honest peers use larger ones.
 */
const MAX_FRAGMENTS = 1024;

/**
 * Our close reasons by the codes with which `ws` closes if received bytes violate RFC 6455 or the configured limits.
 */
const REASON_OF_FAULT: ReadonlyMap<number | undefined, CloseReason> = new Map([
  [1009, 'frame_too_large'],
  [1002, 'protocol_error'],
  [1003, 'protocol_error'],
  [1007, 'protocol_error'],
  [1008, 'protocol_error'],
]);

/**
 * The socket of a link, which carries text messages in order. Below it is a WebSocket, or the model of one in simulations.
 */
export interface MessageSocket {
  /** The number of bytes that the peer's side has not accepted yet. */
  readonly bufferedAmount: number;
  /** The error with which the connection ended; null if it has not failed. */
  readonly errored: Error | null;
  /** Sends all further events to the handler. Call it once. */
  tell(handler: SocketHandler): void;
  /** Sends texts, a message each, in one write. Drops them if the socket is closing or closed. Does not throw. */
  sendAll(texts: readonly string[]): void;
  /** Calls `listener` each time when everything is written after bytes had to wait. */
  onDrain(listener: () => void): void;
  /** Reads nothing more until `resume`. */
  pause(): void;
  resume(): void;
  /** Starts to close. Tells the handler so (`ending`) before it returns. */
  close(code: number, reason: string): void;
}

/**
 * A server-side socket, by the option `WebSocket` of `ws`. It overrides `emit` and `close`, because `ws` has no option
 * that calls a handler instead of listeners, and none that leaves the close to us if received bytes are no WebSocket
 * messages. The link closes the socket then, so that `bye` and our close codes are sent.
 */
export class LinkSocket extends WebSocket implements MessageSocket {
  #handler: SocketHandler | null = null;
  /** The connection that carries the WebSocket. Set it before the socket is used. */
  raw: Duplex | null = null;

  get errored(): Error | null {
    return this.raw?.errored ?? null;
  }

  tell(handler: SocketHandler): void {
    this.#handler = handler;
  }

  onDrain(listener: () => void): void {
    this.raw?.on('drain', listener);
  }

  sendAll(texts: readonly string[]): void {
    const { raw } = this;
    if (!raw?.writable || this.readyState !== WebSocket.OPEN) return;
    // Bypasses `ws`, which would create two chunks and a callback for each frame. Compression is off, so `ws` itself
    // queues nothing. Corked, because otherwise a large write that the kernel accepts at once emits no `drain`, for
    // which the link waits.
    raw.cork();
    raw.write(encodeFrames(texts));
    raw.uncork();
  }

  /** Calls the handler. A table of listeners would take 280 bytes of an idle link. */
  override emit(event: string | symbol, ...values: unknown[]): boolean {
    const handler = this.#handler;
    if (handler === null) return super.emit(event, ...values);
    if (event === 'message') handler.message(values[0] as RawData, values[1] === true);
    else if (event === 'close') handler.gone();
    else if (event === 'error') handler.failed(values[0] as Error);
    else if (event === 'ping' || event === 'pong') handler.control(event);
    else return super.emit(event, ...values);
    return true;
  }

  override close(code?: number, data?: string | Buffer): void {
    // `ws` itself closes with a code and without data only when its receiver fails.
    const reason = data === undefined ? REASON_OF_FAULT.get(code) : undefined;
    if (reason === undefined) {
      // `ws` calls this as soon as it reads the peer's close frame, which may be seconds before the socket is gone. It
      // passes no code if the frame has none.
      this.#handler?.ending(code ?? null);
      super.close(code, data);
    } else if (this.#handler) this.#handler.unreadable(reason);
    else super.close(CLOSE[reason], reason);
  }
}

/** Receives the events of a socket and of its FrameWriter. */
export interface SocketHandler {
  message(data: RawData, isBinary: boolean): void;
  /** A WebSocket ping or pong control frame arrived. */
  control(frame: 'ping' | 'pong'): void;
  /** Bytes arrived that are no WebSocket messages. The handler must close the socket. */
  unreadable(reason: CloseReason): void;
  failed(error: Error): void;
  /**
   * Either side has started to close the WebSocket: the peer does not read anything written after this. `code`: that of
   * the close frame; null if it has none.
   */
  ending(code: number | null): void;
  /** The socket is gone. Neither side has sent a close frame if `ending` was not called before. */
  gone(): void;
  /** The relay closes the link. Called once, before `bye` is written. */
  closing(reason: CloseReason): void;
  /** Core found that too many bytes wait to be written. The handler then tells core when fewer wait. */
  behind(): void;
}

/** Adds `closeTimeout`, which the types of `ws` do not have yet. */
type Options = ServerOptions<typeof LinkSocket> & { readonly closeTimeout: number };

export function createSocketServer(): Server<typeof LinkSocket> {
  const options: Options = {
    noServer: true,
    WebSocket: LinkSocket,
    clientTracking: false,
    perMessageDeflate: false,
    // Of a frame that is too large, the first line is read, so that it costs its command or request and not the link.
    maxPayload: 2 * MAX_FRAME_BYTES,
    maxFragments: MAX_FRAGMENTS,
    closeTimeout: CLOSE_HANDSHAKE_MS,
    handleProtocols: () => SUBPROTOCOL,
  };
  return new WebSocketServer(options);
}

const UNSOLICITED: BucketRate = { perSecond: FRAME_RATE, burst: FRAME_BURST };
/**
 * The allowance of progress frames of one link: as much as UNSOLICITED, for each of the IN_FLIGHT commands. Further
 * progress frames are refused, so a runaway handler cannot slow other links.
 */
const PROGRESS: BucketRate = { perSecond: FRAME_RATE * IN_FLIGHT, burst: FRAME_BURST * IN_FLIGHT };
/** The frames that cannot be read and that a link may send; the next one closes it. */
const TOLERATED: WindowRate = { most: BAD_FRAMES - 1, ms: BAD_FRAMES_MS };

/**
 * The most commands that a link remembers as written to it; beyond that the oldest are forgotten. At most IN_FLIGHT of
 * them have not ended. The deadline ended the others, and the client may still report their ends.
 */
const REMEMBERED = IN_FLIGHT * 8;

/** What the writers of all links share. */
export type WriterOptions = {
  readonly turnEnd: TurnEnd;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly crypto: Pick<Crypto, 'randomId' | 'randomInt'>;
};

/**
 * The sending side of one link, through which core sends commands too. All frames of one turn of the event loop go out
 * in one write. It also counts the frames that the peer sends unasked, refuses those over a limit, and closes the link
 * of a peer that keeps sending. Its methods do not throw, and send nothing after a close.
 */
export class FrameWriter implements ClientLink {
  readonly #socket: MessageSocket;
  readonly #handler: SocketHandler;
  readonly #parts: WriterOptions;
  /** The texts of the frames that wait for the end of the turn; null if there are none. */
  #waiting: string[] | null = null;
  #chars = 0;
  #open = true;
  #closing = false;
  /** When `welcome` was sent, by `Clock.monotonic`. */
  #welcomedAt = 0;
  /** The counters are created with the first frame that they count: most links are idle, and a new bucket is full. */
  #bad: SlidingWindow | null = null;
  #unsolicited: TokenBucket | null = null;
  #progress: TokenBucket | null = null;
  /** The commands that the client may report on, by id: they were written to this link. Null before the first one. */
  commands: BoundedMap<string, 'written' | 'acknowledged'> | null = null;

  constructor(socket: MessageSocket, handler: SocketHandler, parts: WriterOptions) {
    this.#socket = socket;
    this.#handler = handler;
    this.#parts = parts;
  }

  /** False as soon as either side closes. */
  get open(): boolean {
    return this.#open;
  }

  /** Whether BACK_PRESSURE_BYTES or more wait, so that no further commands should be sent. */
  get behind(): boolean {
    return this.#open && this.#backlog >= BACK_PRESSURE_BYTES;
  }

  /** Sends `welcome`. The frames after it say how much later they are sent. */
  welcome(header: Extract<DownHeader, { type: 'welcome' }>): void {
    this.#welcomedAt = this.#parts.clock.monotonic();
    this.send({ ...header, at_ms: 0 });
  }

  ping(): void {
    this.send({ type: 'ping', at_ms: this.#atMs });
  }

  get #atMs(): number {
    return Math.floor(this.#parts.clock.monotonic() - this.#welcomedAt);
  }

  send(header: DownHeader, payload: JsonText | null = null): void {
    if (!this.#open) return;
    this.#push(writeHeader(header), payload);
    if (this.#backlog > BACK_PRESSURE_CLOSE_BYTES) this.end('back_pressure');
  }

  sendCommand(command: Command, params: JsonText | null, remainingMs: number, trace: TraceFields | null): void {
    this.expect(command);
    const { commandId, action, contextId } = command;
    const { traceId, parentSpanId, traceFlags, traceState } = trace ?? command;
    const header = {
      type: 'command',
      command_id: commandId,
      action,
      remaining_ms: Math.max(0, Math.floor(remainingMs)),
      at_ms: this.#atMs,
      context_id: contextId,
      trace_id: traceId ?? undefined,
      parent_span_id: parentSpanId ?? undefined,
      trace_flags: traceFlags ?? undefined,
      trace_state: traceState ?? undefined,
    } as const;
    this.send(header, params);
  }

  sendCancel(commandId: string, reason: string | null): void {
    this.send({ type: 'cancel', command_id: commandId, reason: reason ?? undefined });
  }

  backlog(): number {
    if (this.behind) this.#handler.behind();
    return this.#open ? this.#backlog : 0;
  }

  close(cause: DisconnectCause, instanceId: string | null, mayReturn = false): void {
    if (cause === 'replaced' && instanceId !== null) this.send({ type: 'replaced', instance_id: instanceId });
    this.end(REASON_OF_CAUSE[cause], mayReturn || undefined);
  }

  /**
   * Sends `bye` with the reason and closes; the peer has a few seconds to answer the close. The first reason counts.
   * For `draining` the close happens at the end of the turn: the command that the drain waited for has just ended, and
   * its answer is about to be sent. `reconnect`: what `bye` says of it; by default, what the reason says.
   */
  end(reason: CloseReason, reconnect = reconnectAfter(reason) === 'yes'): void {
    if (this.#closing) return;
    this.#closing = true;
    if (reason === 'draining') this.#parts.turnEnd.add({ flush: () => this.#end(reason, reconnect) });
    else this.#end(reason, reconnect);
  }

  #end(reason: CloseReason, reconnect: boolean): void {
    if (!this.#open) return;
    this.#open = false;
    this.#handler.closing(reason);
    this.#push(joinFrame(byeFor(reason, reconnect, this.#parts.crypto)), null);
    this.flush();
    this.#socket.close(CLOSE[reason], reason);
  }

  /** Called when either side has started to close the WebSocket: nothing more can be sent. */
  lost(): void {
    this.#open = false;
  }

  /** Remembers that this command was written to the link, or to an earlier link that this one resumes. */
  expect({ commandId }: Command): void {
    this.commands ??= new BoundedMap({ most: REMEMBERED });
    this.commands.set(commandId, 'written');
  }

  refuse(refusal: Refusal, about: OffendingFrame): void {
    if (!this.#open) return;
    this.#parts.metrics.count('frames_refused', refusal.code);
    this.send(refusedFrame(refusal, about));
  }

  /** Counts an unsolicited frame. False: the frame was refused and must not be handled. */
  countUnsolicited(about: OffendingFrame): boolean {
    return this.#take((this.#unsolicited ??= new TokenBucket(this.#parts.clock, UNSOLICITED)), UNSOLICITED, about);
  }

  /** Counts a progress frame of a command in flight. False: the frame was refused and must not be handled. */
  countProgress(about: OffendingFrame): boolean {
    return this.#take((this.#progress ??= new TokenBucket(this.#parts.clock, PROGRESS)), PROGRESS, about);
  }

  /**
   * Refuses a frame that cannot be handled as it stands. Any such frame is unsolicited, so a flood of them closes the
   * link; so do a few that could not even be read.
   */
  refuseFaulty({ fault, detail, ...about }: OffendingFrame & Pick<FrameFault, 'fault' | 'detail'>): void {
    if (!this.countUnsolicited(about)) return;
    this.refuse({ code: fault === 'unreadable' ? 'invalid_argument' : fault, message: detail }, about);
    if (fault !== 'unreadable') return;
    this.#bad ??= new SlidingWindow(this.#parts.clock, TOLERATED);
    if (this.#bad.take() > 0) this.end('protocol_error');
  }

  /** Closes a link that was refused `burst` frames since its bucket was last full: its peer does not slow down. */
  #take(bucket: TokenBucket, { burst }: BucketRate, about: OffendingFrame): boolean {
    const retryAfterMs = bucket.take();
    if (retryAfterMs === 0) return true;
    this.refuse({ code: 'rate_limited', message: 'Too many frames.', retryAfterMs }, about);
    if (bucket.refused >= burst) this.end('rate_limited');
    return false;
  }

  /**
   * The number of bytes that the socket has not accepted yet. Frames that were added in this turn of the event loop
   * count by characters.
   */
  get #backlog(): number {
    return this.#socket.bufferedAmount + this.#chars;
  }

  #push(header: string, payload: string | null): void {
    const text = payload === null ? header : `${header}\n${payload}`;
    this.#chars += text.length;
    if (this.#waiting) return void this.#waiting.push(text);
    this.#waiting = [text];
    this.#parts.turnEnd.add(this);
  }

  /** Writes all frames now. Drops them if the socket is closing or closed: its close event tells the link. */
  flush(): void {
    const texts = this.#waiting;
    this.#waiting = null;
    this.#chars = 0;
    if (texts) this.#socket.sendAll(texts);
  }
}

/** Flushes, at the end of a turn of the event loop, each item that was added during the turn. */
interface TurnEnd {
  add(item: { flush(): void }): void;
}

export function createTurnEnd(loop: EventLoop): TurnEnd {
  let items: { flush(): void }[] = [];
  const flush = (): void => {
    const ready = items;
    items = [];
    for (const item of ready) item.flush();
  };
  return {
    add(item) {
      if (items.push(item) === 1) loop.atTurnEnd(flush);
    },
  };
}

// Encodes text frames as WebSocket messages (RFC 6455), many of them in one buffer.

/** The first byte of a final text frame (RFC 6455, 5.2). Frames of a server are not masked. */
const FINAL_TEXT = 0x81;
/**
 * The greatest payload length, in bytes, that fits in the second byte of a message. A length up to MEDIUM takes two
 * more bytes, and a greater length takes eight.
 */
const SHORT = 125;
const MEDIUM = 0xffff;
/**
 * The number of spare bytes behind the frames. A text that is not ASCII takes more bytes than it has characters. With
 * the spare bytes, `write` reports more bytes than characters for such a text, even if its end is cut off.
 */
const SLACK = 4;

/**
 * Encodes texts as consecutive WebSocket messages in one buffer. So all frames of one turn of the event loop take one
 * write, without an object for each message. Only for connections without extensions. A lone surrogate becomes U+FFFD,
 * as in any UTF-8.
 */
export function encodeFrames(texts: readonly string[]): Buffer {
  // Nearly all texts are ASCII, whose characters need not be counted in bytes first.
  const ascii = texts.map((text) => text.length);
  return (
    encode(texts, ascii) ??
    encode(
      texts,
      texts.map((text) => Buffer.byteLength(text)),
    ) ??
    Buffer.alloc(0)
  );
}

/** Encodes texts whose lengths in bytes are `lengths`. Returns null if one of the lengths is wrong. */
function encode(texts: readonly string[], lengths: readonly number[]): Buffer | null {
  const total = lengths.reduce((sum, length) => sum + headLength(length) + length, 0);
  const bytes = Buffer.allocUnsafe(total + SLACK);
  let at = 0;
  for (let i = 0; i < texts.length; i++) {
    const length = lengths[i] ?? 0;
    at = writeHead(bytes, at, length);
    if (bytes.write(texts[i] ?? '', at, 'utf8') !== length) return null;
    at += length;
  }
  return bytes.subarray(0, total);
}

function headLength(length: number): number {
  return length <= SHORT ? 2 : length <= MEDIUM ? 4 : 10;
}

/** Writes the head of a message. Returns the offset at which its payload begins. */
function writeHead(bytes: Buffer, start: number, length: number): number {
  bytes[start] = FINAL_TEXT;
  if (length <= SHORT) bytes[start + 1] = length;
  else if (length <= MEDIUM) {
    bytes[start + 1] = 126;
    bytes[start + 2] = length >> 8;
    bytes[start + 3] = length & 0xff;
  } else {
    bytes[start + 1] = 127;
    bytes.writeUInt32BE(0, start + 2);
    bytes.writeUInt32BE(length, start + 6);
  }
  return start + headLength(length);
}
