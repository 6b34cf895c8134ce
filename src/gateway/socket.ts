/** Configures `ws`, and turns its events into calls of a handler. Knows no frames of this protocol. */
import { Buffer } from 'node:buffer';
import type { Duplex } from 'node:stream';
import { WebSocket, WebSocketServer, type RawData, type Server, type ServerOptions } from 'ws';
import type { JsonText } from '../core/json.ts';
import { BACK_PRESSURE_BYTES, BACK_PRESSURE_CLOSE_BYTES, MAX_FRAME_BYTES } from '../core/limits.ts';
import type { Metrics } from '../core/metrics.ts';
import { CLOSE, type CloseReason } from '../protocol/codes.ts';
import { SUBPROTOCOL, joinFrame, writeHeader, type DownHeader } from '../protocol/frames.ts';
import { byeFor, refusedFrame, type OffendingFrame, type Refusal } from './close.ts';

/** How long a peer may take to answer a close frame before its socket is destroyed, in milliseconds. */
const CLOSE_HANDSHAKE_MS = 3_000;
/**
 * The most fragments of a message: enough for the largest frame in fragments of 1 KiB. Honest peers use larger
 * fragments.
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
 * A server-side socket. When received bytes cannot be read, its link closes it, so that `bye` and our close codes are
 * sent.
 */
export class LinkSocket extends WebSocket {
  #handler: SocketHandler | null = null;

  /** Sends all further events to the handler. Call it once. */
  tell(handler: SocketHandler): void {
    this.#handler = handler;
  }

  /**
   * Calls the handler instead of listeners. A socket with listeners holds a table of them, which takes 280 bytes of an
   * idle link.
   */
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
    else super.close(CLOSE[reason].code, reason);
  }
}

/** Receives the events of a socket. */
export interface SocketHandler {
  message(data: RawData, isBinary: boolean): void;
  /** A WebSocket ping or pong control frame arrived. */
  control(frame: 'ping' | 'pong'): void;
  /** Received bytes cannot be read. The handler must close the socket. */
  unreadable(reason: CloseReason): void;
  failed(error: Error): void;
  /**
   * Either side has started to close the WebSocket: the peer does not read anything written after this. `code`: that of
   * the close frame; null if it has none.
   */
  ending(code: number | null): void;
  /** The socket is gone. Neither side has sent a close frame if `ending` was not called before. */
  gone(): void;
}

/** Adds `closeTimeout`, which the types of `ws` do not have yet. */
type Options = ServerOptions<typeof LinkSocket> & { readonly closeTimeout: number };

export function createSocketServer(): Server<typeof LinkSocket> {
  const options: Options = {
    noServer: true,
    WebSocket: LinkSocket,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MAX_FRAME_BYTES,
    maxFragments: MAX_FRAGMENTS,
    closeTimeout: CLOSE_HANDSHAKE_MS,
    handleProtocols: () => SUBPROTOCOL,
  };
  return new WebSocketServer(options);
}

// Sends frames, refusals and `bye` over one link, and closes it.

type FrameWriterOptions = {
  readonly ws: LinkSocket;
  readonly socket: Duplex;
  readonly turnEnd: TurnEnd;
  readonly metrics: Metrics;
  readonly owner: FrameWriterOwner;
};

export interface FrameWriterOwner {
  /** Called once, before `bye` is written. */
  closing(reason: CloseReason): void;
}

/** The sending side of one link. Its methods do not throw, and send nothing after a close. */
export class FrameWriter {
  readonly #ws: LinkSocket;
  readonly #turnEnd: TurnEnd;
  readonly #metrics: Metrics;
  readonly #owner: FrameWriterOwner;
  readonly #buffer: FrameBuffer;
  #open = true;
  #closing = false;

  constructor({ ws, socket, turnEnd, metrics, owner }: FrameWriterOptions) {
    this.#ws = ws;
    this.#turnEnd = turnEnd;
    this.#metrics = metrics;
    this.#owner = owner;
    this.#buffer = new FrameBuffer(ws, socket, turnEnd);
  }

  /** False as soon as either side closes. */
  get open(): boolean {
    return this.#open;
  }

  get backlog(): number {
    return this.#open ? this.#buffer.backlog : 0;
  }

  /** Whether BACK_PRESSURE_BYTES or more wait, so that no further commands should be sent. */
  get behind(): boolean {
    return this.backlog >= BACK_PRESSURE_BYTES;
  }

  send(header: DownHeader, payload: JsonText | null = null): void {
    if (!this.#open) return;
    this.#buffer.push(writeHeader(header), payload);
    if (this.#buffer.backlog > BACK_PRESSURE_CLOSE_BYTES) this.close('back_pressure');
  }

  refuse(refusal: Refusal, about: OffendingFrame): void {
    if (!this.#open) return;
    this.#metrics.count('frames_refused', refusal.code);
    this.send(refusedFrame(refusal, about));
  }

  /**
   * Sends `bye` with the reason and closes; the peer has a few seconds to answer the close. The first reason counts.
   * For `draining` the close happens at the end of the turn: the command that the drain waited for has just ended, and
   * its answer is about to be sent.
   */
  close(reason: CloseReason): void {
    if (this.#closing) return;
    this.#closing = true;
    if (reason === 'draining') this.#turnEnd.add({ flush: () => this.#close(reason) });
    else this.#close(reason);
  }

  #close(reason: CloseReason): void {
    if (!this.#open) return;
    this.#open = false;
    this.#owner.closing(reason);
    this.#buffer.push(joinFrame(byeFor(reason)), null);
    this.#buffer.flush();
    this.#ws.close(CLOSE[reason].code, reason);
  }

  /** Called when either side has started to close the WebSocket: nothing more can be sent. */
  lost(): void {
    this.#open = false;
  }
}

// Collects the frames that one link sends in a turn of the event loop, and writes them together.

interface Flushable {
  flush(): void;
}

/** Flushes, at the end of a turn of the event loop, each item that was added during the turn. */
export interface TurnEnd {
  add(item: Flushable): void;
}

export function createTurnEnd(): TurnEnd {
  let items: Flushable[] = [];
  const flush = (): void => {
    const ready = items;
    items = [];
    for (const item of ready) item.flush();
  };
  return {
    add(item) {
      if (items.push(item) === 1) setImmediate(flush);
    },
  };
}

/** The frames that wait to be written to one socket. All frames of one turn go out in one write. */
class FrameBuffer implements Flushable {
  readonly #ws: WebSocket;
  readonly #socket: Duplex;
  readonly #turnEnd: TurnEnd;
  /** The waiting frames, as `FrameParts`; null if there are none. */
  #parts: (string | null)[] | null = null;
  #chars = 0;

  constructor(ws: WebSocket, socket: Duplex, turnEnd: TurnEnd) {
    this.#ws = ws;
    this.#socket = socket;
    this.#turnEnd = turnEnd;
  }

  /**
   * The number of bytes that the socket has not accepted yet. Frames that were added in this turn of the event loop
   * count by characters.
   */
  get backlog(): number {
    return this.#ws.bufferedAmount + this.#chars;
  }

  push(header: string, payload: string | null): void {
    this.#chars += header.length + (payload === null ? 0 : payload.length + 1);
    if (this.#parts) return void this.#parts.push(header, payload);
    this.#parts = [header, payload];
    this.#turnEnd.add(this);
  }

  /** Writes all frames now. Drops them if the socket is closing or closed: its close event tells the link. */
  flush(): void {
    const parts = this.#parts;
    this.#parts = null;
    this.#chars = 0;
    if (!parts || this.#ws.readyState !== WebSocket.OPEN || !this.#socket.writable) return;
    // Bypasses `ws`, which would create two chunks and a callback for each frame. Compression is off, so `ws` itself
    // queues nothing. Corked, because otherwise a large write that the kernel accepts at once emits no `drain`, for
    // which the link waits.
    this.#socket.cork();
    this.#socket.write(encodeFrames(parts));
    this.#socket.uncork();
  }
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
const NEWLINE = 0x0a;
/**
 * The number of spare bytes behind the frames. A text that is not ASCII takes more bytes than it has characters. With
 * the spare bytes, `write` reports more bytes than characters for such a text, even if its end is cut off.
 */
const SLACK = 4;

/** The two parts of each frame, one after another: its header line, and its payload or null. */
type FrameParts = readonly (string | null)[];

/**
 * Encodes frames as consecutive WebSocket messages in one buffer. So all frames of one turn of the event loop take one
 * write, without an object for each message and without joining header and payload first. Only for connections without
 * extensions. A lone surrogate becomes U+FFFD, as in any UTF-8.
 */
export function encodeFrames(parts: FrameParts): Buffer {
  return encodeAscii(parts) ?? encodeAny(parts);
}

/**
 * Encodes frames of ASCII text, whose lengths in bytes and characters are equal; null if there are other characters.
 */
function encodeAscii(parts: FrameParts): Buffer | null {
  let total = 0;
  for (let i = 0; i < parts.length; i += 2) {
    const length = lengthOf(parts[i] ?? '', parts[i + 1] ?? null, charsOf);
    total += headLength(length) + length;
  }
  const bytes = Buffer.allocUnsafe(total + SLACK);
  let at = 0;
  for (let i = 0; i < parts.length; i += 2) {
    const header = parts[i] ?? '';
    const payload = parts[i + 1] ?? null;
    at = writeHead(bytes, at, lengthOf(header, payload, charsOf));
    if (bytes.write(header, at, 'utf8') !== header.length) return null;
    at += header.length;
    if (payload === null) continue;
    bytes[at++] = NEWLINE;
    if (bytes.write(payload, at, 'utf8') !== payload.length) return null;
    at += payload.length;
  }
  return bytes.subarray(0, total);
}

function encodeAny(parts: FrameParts): Buffer {
  const lengths: number[] = [];
  let total = 0;
  for (let i = 0; i < parts.length; i += 2) {
    const length = lengthOf(parts[i] ?? '', parts[i + 1] ?? null, bytesOf);
    lengths.push(length);
    total += headLength(length) + length;
  }
  const bytes = Buffer.allocUnsafe(total);
  let at = 0;
  for (let i = 0; i < parts.length; i += 2) {
    const payload = parts[i + 1] ?? null;
    at = writeHead(bytes, at, lengths[i >> 1] ?? 0);
    at += bytes.write(parts[i] ?? '', at, 'utf8');
    if (payload === null) continue;
    bytes[at++] = NEWLINE;
    at += bytes.write(payload, at, 'utf8');
  }
  return bytes;
}

function lengthOf(header: string, payload: string | null, measure: (text: string) => number): number {
  return measure(header) + (payload === null ? 0 : 1 + measure(payload));
}

function charsOf(text: string): number {
  return text.length;
}

function bytesOf(text: string): number {
  return Buffer.byteLength(text);
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
