/**
 * The relay's end of a simulated HTTP connection: a socket, a request and its response, which behave as those of
 * `node:http` do for the handlers of a relay. What is written leaves once all is recorded that it depends on.
 */
import { Buffer } from 'node:buffer';
import { EventEmitter } from 'node:events';
import { STATUS_CODES, type OutgoingHttpHeader, type OutgoingHttpHeaders } from 'node:http';
import type { HttpRequest, HttpResponse, HttpSocket } from '../../src/web/request.ts';
import type { Way } from './link-network.ts';
import type { SimulatedProcess } from './process.ts';

/** From how many bytes on that wait in a socket a writer should wait. */
const HIGH_WATER = 16 * 1024;

type ServerSocketParts = {
  readonly process: SimulatedProcess;
  readonly address: string;
  /** The direction to the peer. */
  readonly down: Way;
  /** See `Backend.onRecord`. */
  readonly onRecord: (run: () => void, holder: { destroy(): void }) => void;
  /** Called when bytes arrive at the peer. */
  readonly arrive: (bytes: Buffer) => void;
  /** Called when the relay has ended the connection: behind what it wrote, or at once. */
  readonly onEnd: (how: 'ended' | 'destroyed') => void;
};

export class ServerSocket extends EventEmitter implements HttpSocket {
  readonly process: SimulatedProcess;
  readonly remoteAddress: string;
  readonly #parts: ServerSocketParts;
  /** The bytes that wait for what they depend on to be recorded. */
  #heldBytes = 0;
  #needsDrain = false;
  bytesRead = 0;
  bytesWritten = 0;
  writableEnded = false;
  destroyed = false;
  readonly errored = null;
  /** Called each time when bytes were handed to the network. */
  onHandedOn = (): void => {};

  constructor(parts: ServerSocketParts) {
    super();
    this.setMaxListeners(0);
    this.#parts = parts;
    this.process = parts.process;
    this.remoteAddress = parts.address;
    parts.down.onDrain = () => this.#drained();
  }

  get writableLength(): number {
    return this.destroyed ? 0 : this.#heldBytes + this.#parts.down.buffered;
  }

  /** Whether bytes wait for their record. */
  get isHeld(): boolean {
    return this.#heldBytes > 0;
  }

  write(bytes: Buffer): boolean {
    if (this.destroyed || this.writableEnded) return false;
    this.bytesWritten += bytes.length;
    this.#whenRecorded(bytes.length, () => this.#parts.down.send(bytes.length, () => this.#parts.arrive(bytes)));
    const isRoom = this.writableLength < HIGH_WATER;
    this.#needsDrain ||= !isRoom;
    return isRoom;
  }

  end(): void {
    if (this.writableEnded || this.destroyed) return;
    this.writableEnded = true;
    this.#whenRecorded(0, () => this.#parts.down.send(0, () => this.#parts.onEnd('ended')));
  }

  destroySoon(): void {
    this.end();
  }

  /** Ends the connection at once. */
  destroy(): void {
    if (this.destroyed) return;
    this.#parts.onEnd('destroyed');
    this.gone();
  }

  /** The connection is gone. */
  gone(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.process.after(0, 'a socket has closed', () => this.emit('close'));
  }

  #whenRecorded(bytes: number, send: () => void): void {
    this.#heldBytes += bytes;
    const leave = (): void => {
      this.#heldBytes -= bytes;
      if (this.destroyed) return;
      send();
      this.onHandedOn();
    };
    this.#parts.onRecord(leave, { destroy: () => this.destroy() });
  }

  #drained(): void {
    if (!this.#needsDrain || this.#heldBytes > 0) return;
    this.#needsDrain = false;
    this.process.after(0, 'a socket has drained', () => this.destroyed || this.emit('drain'));
  }
}

/** What is requested. The names of headers are in lower case. */
export type Target = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The JSON text of the body; null: none. */
  readonly body: string | null;
};

export class ServerRequest extends EventEmitter implements HttpRequest {
  readonly method: string;
  url: string;
  headers: Record<string, string>;
  rawHeaders: string[];
  readonly httpVersionMinor = 1;
  readonly socket: ServerSocket;
  complete = false;
  /** Yoga takes what has it for a stream of Node. */
  readonly read = (): null => null;
  #waiting: Buffer[] = [];
  #isFlowing = false;
  #isEnded = false;

  constructor(socket: ServerSocket, { method, path, headers, body }: Target) {
    super();
    const length = body === null ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    this.socket = socket;
    this.method = method;
    this.url = path;
    this.headers = { host: 'relays', ...headers, ...length };
    this.rawHeaders = Object.entries(this.headers).flat();
  }

  override on(event: string, listener: Parameters<EventEmitter['on']>[1]): this {
    super.on(event, listener);
    if (event === 'data' && !this.#isFlowing) {
      this.#isFlowing = true;
      this.socket.process.after(0, 'a body is read', () => this.#flow());
    }
    return this;
  }

  pause(): this {
    this.#isFlowing = false;
    return this;
  }

  /** A part of the body has arrived. `isLast`: the whole of it. */
  arrived(bytes: Buffer, isLast: boolean): void {
    if (this.#isEnded) return;
    this.socket.bytesRead += bytes.length;
    if (bytes.length > 0) this.#waiting.push(bytes);
    this.complete = isLast;
    if (this.#isFlowing || isLast) this.#flow();
  }

  /** The connection is gone, or the response has ended. */
  closed(): void {
    this.emit('close');
  }

  #flow(): void {
    while (this.#isFlowing && this.#waiting.length > 0) this.emit('data', this.#waiting.shift());
    if (!this.complete || this.#waiting.length > 0 || this.#isEnded || !this.#isFlowing) return;
    this.#isEnded = true;
    this.emit('end');
  }
}

/** The statuses whose responses have no body. */
const BODILESS: ReadonlySet<number> = new Set([204, 304]);

export class ServerResponse extends EventEmitter implements HttpResponse {
  readonly req: ServerRequest;
  socket: ServerSocket | null;
  statusCode = 200;
  headersSent = false;
  chunkedEncoding = false;
  writableFinished = false;
  writableEnded = false;
  destroyed = false;
  readonly #socket: ServerSocket;
  readonly #headers = new Map<string, OutgoingHttpHeader>();
  /** The head, until it is written with the first bytes of the body. */
  #head: string | null = null;

  constructor(req: ServerRequest) {
    super();
    this.setMaxListeners(0);
    this.req = req;
    this.#socket = req.socket;
    this.socket = req.socket;
    req.socket.on('close', () => this.#close(false));
    req.socket.on('drain', () => this.emit('drain'));
    req.socket.onHandedOn = () => this.#finish();
  }

  get writableLength(): number {
    return this.#socket.writableLength;
  }

  getHeader(name: string): OutgoingHttpHeader | undefined {
    return this.#headers.get(name.toLowerCase());
  }

  hasHeader(name: string): boolean {
    return this.#headers.has(name.toLowerCase());
  }

  setHeader(name: string, value: OutgoingHttpHeader): this {
    if (this.headersSent) throw new Error('Cannot set headers after they are sent to the client');
    this.#headers.set(name.toLowerCase(), value);
    return this;
  }

  /** As in `http.ServerResponse`. */
  setHeaders(headers: Iterable<readonly [string, string]>): this {
    for (const [name, value] of headers) this.setHeader(name, value);
    return this;
  }

  /** The text of a status may come before the headers. */
  writeHead(status: number, ...rest: (string | OutgoingHttpHeaders | OutgoingHttpHeader[] | undefined)[]): this {
    if (this.headersSent) throw new Error('Cannot write headers after they are sent to the client');
    this.statusCode = status;
    const headers = rest.find((one) => typeof one === 'object') ?? {};
    const pairs = Array.isArray(headers) ? pairsOf(headers) : Object.entries(headers);
    for (const [name, value] of pairs) if (value !== undefined) this.setHeader(name, value);
    this.headersSent = true;
    this.#head = '';
    return this;
  }

  writeContinue(): void {}

  cork(): void {}

  flushHeaders(): void {
    this.#writeHead(null);
  }

  write(chunk: string | Buffer | Uint8Array): boolean {
    if (this.destroyed || this.writableEnded) return false;
    this.#writeHead(null);
    return this.#socket.write(this.#framed(Buffer.from(chunk as Uint8Array)));
  }

  end(chunk?: string | Buffer | null, encoding?: BufferEncoding | null): this {
    if (this.writableEnded || this.destroyed) return this;
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encoding ?? 'utf8') : (chunk ?? Buffer.alloc(0));
    this.#writeHead(bytes.length);
    if (bytes.length > 0) this.#socket.write(this.#framed(bytes));
    if (this.chunkedEncoding) this.#socket.write(Buffer.from('0\r\n\r\n'));
    this.writableEnded = true;
    this.#finish();
    return this;
  }

  destroy(): this {
    this.#socket.destroy();
    return this;
  }

  /** Writes the head, unless that was done. `length`: that of the body; null: it is not known. */
  #writeHead(length: number | null): void {
    if (this.#head === null && this.headersSent) return;
    this.headersSent = true;
    this.#head = null;
    const hasNone = BODILESS.has(this.statusCode) || this.req.method === 'HEAD';
    if (!this.hasHeader('content-length') && !hasNone) {
      this.chunkedEncoding = length === null;
      if (length === null) this.#headers.set('transfer-encoding', 'chunked');
      else this.#headers.set('content-length', length);
    }
    const lines = [...this.#headers].map(([name, value]) => `${name}: ${String(value)}\r\n`);
    const text = `HTTP/1.1 ${this.statusCode} ${STATUS_CODES[this.statusCode] ?? ''}\r\n${lines.join('')}\r\n`;
    this.#socket.write(Buffer.from(text));
  }

  #framed(bytes: Buffer): Buffer {
    if (!this.chunkedEncoding) return bytes;
    return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
  }

  /** The response has ended once everything was handed to the network. */
  #finish(): void {
    if (!this.writableEnded || this.#socket.isHeld || this.writableFinished || this.destroyed) return;
    this.#socket.process.after(0, 'a response has ended', () => {
      if (this.destroyed || this.writableFinished) return;
      this.writableFinished = true;
      this.emit('finish');
      this.#close(true);
    });
  }

  #close(isFinished: boolean): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.socket = null;
    if (!isFinished && !this.req.complete) this.req.closed();
    this.emit('close');
    if (isFinished) this.req.closed();
    if (isFinished && this.getHeader('connection') === 'close') this.#socket.end();
  }
}

function pairsOf(flat: readonly OutgoingHttpHeader[]): readonly (readonly [string, OutgoingHttpHeader])[] {
  return Array.from({ length: flat.length / 2 }, (_, i) => [String(flat[2 * i]), flat[2 * i + 1] ?? ''] as const);
}
