/** Configures `ws`, turns its events into calls of a handler, and writes the frames of a link. */
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
 * The most fragments of a message. It is enough for the largest frame in fragments of 1 KiB; usual clients send larger
 * fragments.
 */
const MAX_FRAGMENTS = 1024;

/**
 * The close reason for each code with which `ws` closes a socket whose peer has violated RFC 6455 or a configured
 * limit.
 */
const REASON_OF_FAULT: ReadonlyMap<number | undefined, CloseReason> = new Map([
  [1009, 'frame_too_large'],
  [1002, 'protocol_error'],
  [1003, 'protocol_error'],
  [1007, 'protocol_error'],
  [1008, 'protocol_error'],
]);

/** The socket of a link, which carries text messages in order. It is a WebSocket, or a model of one in simulations. */
export interface MessageSocket {
  /** The number of bytes that are not sent yet. */
  readonly bufferedAmount: number;
  /** The error with which the connection ended; null if it has not failed. */
  readonly errored: Error | null;
  /** Passes all further events to the handler. Call it once. */
  tell(handler: SocketHandler): void;
  /** Sends each text as a message, all in one write. Drops them if the socket is closing or closed. Does not throw. */
  sendAll(texts: readonly string[]): void;
  /** Calls `listener` each time when bytes had to wait and all of them have been written. */
  onDrain(listener: () => void): void;
  /** Stops reading until `resume`. */
  pause(): void;
  resume(): void;
  /** Starts to close. Calls `ending` of the handler before it returns. */
  close(code: number, reason: string): void;
}

/**
 * A server-side socket, set by the option `WebSocket` of `ws`. It overrides `emit` and `close`, because `ws` has no
 * option for two needs: calling a handler instead of listeners, and leaving the close to us if received bytes are not
 * WebSocket messages. In the latter case the link closes the socket, so that `bye` and our close codes are sent.
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
    // Bypasses `ws`, which would create two chunks and a callback for each frame. This is safe because compression is
    // off, so `ws` itself queues nothing. The write is corked, because otherwise a large write that the kernel accepts
    // at once emits no `drain`, and the link waits for `drain`.
    raw.cork();
    raw.write(encodeFrames(texts));
    raw.uncork();
  }

  /** Calls the handler instead of listeners, because a table of listeners would take 280 bytes of each idle link. */
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
    // `ws` itself closes with a code and without data only if its receiver fails.
    const reason = data === undefined ? REASON_OF_FAULT.get(code) : undefined;
    if (reason === undefined) {
      // `ws` calls this as soon as it reads the peer's close frame, which may be seconds before the socket is gone. The
      // code is undefined if that frame has none.
      this.#handler?.ending(code ?? null);
      super.close(code, data);
    } else if (this.#handler) this.#handler.unreadable(reason);
    else super.close(CLOSE[reason], reason);
  }
}

/** Receives the events of a socket and of its FrameWriter. */
export interface SocketHandler {
  message(data: RawData, isBinary: boolean): void;
  /** Called for a WebSocket ping or pong control frame. */
  control(frame: 'ping' | 'pong'): void;
  /** Called if received bytes are not WebSocket messages. The handler must close the socket. */
  unreadable(reason: CloseReason): void;
  failed(error: Error): void;
  /**
   * Called when either side starts to close the WebSocket; the peer reads nothing that is written after this. `code`:
   * the code of the close frame; null if it has none.
   */
  ending(code: number | null): void;
  /** Called when the socket is gone. If `ending` was not called before, neither side has sent a close frame. */
  gone(): void;
  /** Called once, when the relay closes the link, before `bye` is written. */
  closing(reason: CloseReason): void;
  /** Called when core has found that too many bytes wait to be written. The handler must tell core when fewer wait. */
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
    // Twice the limit of frames, so that the first line of a frame that is too large can be read. Then only its command
    // or request fails, and the link stays open.
    maxPayload: 2 * MAX_FRAME_BYTES,
    maxFragments: MAX_FRAGMENTS,
    closeTimeout: CLOSE_HANDSHAKE_MS,
    handleProtocols: () => SUBPROTOCOL,
  };
  return new WebSocketServer(options);
}

const UNSOLICITED: BucketRate = { perSecond: FRAME_RATE, burst: FRAME_BURST };
/**
 * The rate of progress frames of one link: the rate UNSOLICITED for each of IN_FLIGHT commands. Further progress frames
 * are refused, so that a runaway handler cannot slow other links.
 */
const PROGRESS: BucketRate = { perSecond: FRAME_RATE * IN_FLIGHT, burst: FRAME_BURST * IN_FLIGHT };
/** The number of unreadable frames that a link may send. The next one closes it. */
const TOLERATED: WindowRate = { most: BAD_FRAMES - 1, ms: BAD_FRAMES_MS };

/**
 * The most commands that a link remembers as written to it; beyond this, the oldest are forgotten. At most IN_FLIGHT of
 * them are unfinished. The others ended at their deadline, and the client may still report their ends.
 */
const REMEMBERED = IN_FLIGHT * 8;

/** The services that the writers of all links share. */
export type WriterOptions = {
  readonly turnEnd: TurnEnd;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly crypto: Pick<Crypto, 'randomId' | 'randomInt'>;
};

/**
 * The sending side of one link. Core sends commands through it as well. All frames of one turn of the event loop are
 * sent in one write. It also counts unsolicited frames of the peer, refuses frames over a limit, and closes the link if
 * the peer continues. Its methods never throw, and send nothing after a close.
 */
export class FrameWriter implements ClientLink {
  readonly #socket: MessageSocket;
  readonly #handler: SocketHandler;
  readonly #options: WriterOptions;
  /** The texts of the frames that wait for the end of the turn; null if there are none. */
  #waiting: string[] | null = null;
  #chars = 0;
  #open = true;
  #closing = false;
  /** When `welcome` was sent, by `Clock.monotonic`. */
  #welcomedAt = 0;
  /**
   * These counters are created when they first count a frame, because most links are idle and a missing bucket counts
   * as full.
   */
  #bad: SlidingWindow | null = null;
  #unsolicited: TokenBucket | null = null;
  #progress: TokenBucket | null = null;
  /**
   * The commands that the client may report on, by id: those that were written to this link. Null before the first one.
   */
  commands: BoundedMap<string, 'written' | 'acknowledged'> | null = null;

  constructor(socket: MessageSocket, handler: SocketHandler, options: WriterOptions) {
    this.#socket = socket;
    this.#handler = handler;
    this.#options = options;
  }

  /** False once either side has started to close. */
  get open(): boolean {
    return this.#open;
  }

  /** Whether at least BACK_PRESSURE_BYTES wait to be written, so that no further commands should be sent. */
  get behind(): boolean {
    return this.#open && this.#backlog >= BACK_PRESSURE_BYTES;
  }

  /** Sends `welcome`. Later frames contain the time since then. */
  welcome(header: Extract<DownHeader, { type: 'welcome' }>): void {
    this.#welcomedAt = this.#options.clock.monotonic();
    this.send({ ...header, at_ms: 0 });
  }

  ping(): void {
    this.send({ type: 'ping', at_ms: this.#atMs });
  }

  get #atMs(): number {
    return Math.floor(this.#options.clock.monotonic() - this.#welcomedAt);
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
   * Sends `bye` with the reason, and closes; the peer has a few seconds to answer the close. Only the first call has an
   * effect. For `draining`, the close happens at the end of the turn, because the command that the drain waited for has
   * just ended and its answer is about to be sent. `reconnect`: whether `bye` tells the peer to reconnect; by default
   * it depends on the reason.
   */
  end(reason: CloseReason, reconnect = reconnectAfter(reason) === 'yes'): void {
    if (this.#closing) return;
    this.#closing = true;
    if (reason === 'draining') this.#options.turnEnd.add({ flush: () => this.#end(reason, reconnect) });
    else this.#end(reason, reconnect);
  }

  #end(reason: CloseReason, reconnect: boolean): void {
    if (!this.#open) return;
    this.#open = false;
    this.#handler.closing(reason);
    this.#push(joinFrame(byeFor(reason, reconnect, this.#options.crypto)), null);
    this.flush();
    this.#socket.close(CLOSE[reason], reason);
  }

  /** Called when either side has started to close the WebSocket. Nothing more can be sent. */
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
    this.#options.metrics.count('frames_refused', refusal.code);
    this.send(refusedFrame(refusal, about));
  }

  /** Counts an unsolicited frame. Returns false if the frame was refused and must not be handled. */
  countUnsolicited(about: OffendingFrame): boolean {
    return this.#take((this.#unsolicited ??= new TokenBucket(this.#options.clock, UNSOLICITED)), UNSOLICITED, about);
  }

  /** Counts a progress frame of a command in flight. Returns false if the frame was refused and must not be handled. */
  countProgress(about: OffendingFrame): boolean {
    return this.#take((this.#progress ??= new TokenBucket(this.#options.clock, PROGRESS)), PROGRESS, about);
  }

  /**
   * Refuses an invalid frame. Each such frame counts as unsolicited, so a flood of them closes the link. A few
   * unreadable frames close it as well.
   */
  refuseFaulty({ fault, detail, ...about }: OffendingFrame & Pick<FrameFault, 'fault' | 'detail'>): void {
    if (!this.countUnsolicited(about)) return;
    this.refuse({ code: fault === 'unreadable' ? 'invalid_argument' : fault, message: detail }, about);
    if (fault !== 'unreadable') return;
    this.#bad ??= new SlidingWindow(this.#options.clock, TOLERATED);
    if (this.#bad.take() > 0) this.end('protocol_error');
  }

  /**
   * Takes a token for a frame, or refuses the frame. If `burst` frames were refused since the bucket was last full, the
   * peer is not slowing down, and the link is closed.
   */
  #take(bucket: TokenBucket, { burst }: BucketRate, about: OffendingFrame): boolean {
    const retryAfterMs = bucket.take();
    if (retryAfterMs === 0) return true;
    this.refuse({ code: 'rate_limited', message: 'Too many frames.', retryAfterMs }, about);
    if (bucket.refused >= burst) this.end('rate_limited');
    return false;
  }

  /**
   * The number of bytes that are not sent yet. Frames of the present turn of the event loop are counted in characters.
   */
  get #backlog(): number {
    return this.#socket.bufferedAmount + this.#chars;
  }

  #push(header: string, payload: string | null): void {
    const text = payload === null ? header : `${header}\n${payload}`;
    this.#chars += text.length;
    if (this.#waiting) return void this.#waiting.push(text);
    this.#waiting = [text];
    this.#options.turnEnd.add(this);
  }

  /**
   * Writes all waiting frames. Drops them if the socket is closing or closed; in this case the close event tells the
   * link.
   */
  flush(): void {
    const texts = this.#waiting;
    this.#waiting = null;
    this.#chars = 0;
    if (texts) this.#socket.sendAll(texts);
  }
}

/** Calls `flush` of each added item at the end of the turn of the event loop. */
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

// Encodes text frames as WebSocket messages (RFC 6455), several of them in one buffer.

/** The first byte of a final text frame (RFC 6455, section 5.2). Frames of a server are not masked. */
const FINAL_TEXT = 0x81;
/**
 * The greatest payload lengths, in bytes. A length up to SHORT fits in the second byte of a message. A length up to
 * MEDIUM takes two more bytes, and a greater length takes eight more.
 */
const SHORT = 125;
const MEDIUM = 0xffff;
/**
 * The number of spare bytes after the frames. A text that is not ASCII takes more bytes than it has characters. Because
 * of the spare bytes, `write` then returns more bytes than characters, even if the end of the text is cut off, so the
 * wrong length is detected.
 */
const SLACK = 4;

/**
 * Encodes texts as consecutive WebSocket messages in one buffer. All frames of a turn of the event loop are then sent
 * in one write, without an object for each message. Only valid for connections without extensions. A lone surrogate
 * becomes U+FFFD, as in any UTF-8.
 */
export function encodeFrames(texts: readonly string[]): Buffer {
  // Nearly all texts are ASCII, so their lengths in bytes are first assumed to be their lengths in characters.
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

/** Encodes texts with these lengths in bytes. Returns null if one of the lengths is wrong. */
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

/** Writes the header of a message. Returns the offset of its payload. */
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
