/**
 * Writes event streams (SSE) over HTTP responses: with pings and back-pressure, a limit per requester, and an end when
 * the token expires. It does not interpret the events.
 */
import { subjectOf, type Principal } from '../core/auth/principal.ts';
import { fail } from '../core/errors.ts';
import { SSE_PER_ADMIN, SSE_PER_PRINCIPAL, SSE_PING_MS, SSE_STALL_MS } from '../core/limits.ts';
import type { Cancel, Clock } from '../core/ports.ts';
import { requestDone } from './request-count.ts';
import type { HttpResponse, HttpSocket } from './request.ts';

/** The text before and after an event in its SSE frame. */
export type Envelope = { readonly head: string; readonly tail: string };

/** Text to write to one or many streams. It is converted to bytes on first use, once for each way of writing. */
export class Chunk {
  readonly #text: string;
  #plain: Buffer | null = null;
  #framed: Buffer | null = null;

  /** The text has at least one character: an empty chunk would end the body. */
  constructor(text: string) {
    this.#text = text;
  }

  get plain(): Buffer {
    return (this.#plain ??= Buffer.from(this.#text));
  }

  /** The text's bytes, framed as one chunk of HTTP/1.1's chunked encoding. */
  get framed(): Buffer {
    return (this.#framed ??= Buffer.from(`${Buffer.byteLength(this.#text).toString(16)}\r\n${this.#text}\r\n`));
  }
}

const PING = new Chunk(':\n\n');
const NO_HEADERS = Object.freeze({});

const streaming = new WeakSet<HttpSocket>();

/**
 * Whether an event stream is open on this socket. If so, the stream itself closes the socket of a reader that stalls.
 */
export function isEventStream(socket: HttpSocket): boolean {
  return streaming.has(socket);
}

/** A writer to a stream: one operation, or one member of a group. */
export interface StreamMember {
  /** Called when the stream accepts data again after it was blocked. */
  drained(): void;
  /** Called when the stream has ended. Nothing can be written to it after that. */
  gone(): void;
}

/** The object that receives the chunks: the socket or the response. */
type Out = Pick<HttpSocket, 'write' | 'writableLength'> & Pick<HttpResponse, 'once'>;

/** The parameters of one stream. */
type SseStreamOptions = {
  /** Called once when the stream has ended, by the relay or by the peer. */
  readonly onClose: () => void;
  /** The time at which the relay ends the stream, in epoch milliseconds; null: no such time. */
  readonly expiresAt: number | null;
  /** The chunk to write last when the node shuts down; null: none. */
  readonly lastChunk: Chunk | null;
  /** Whether the head of the response waits for `begin`, or for the first chunk. Absent: it is sent at once. */
  readonly waits?: boolean;
};

/** What all open streams of a node share. */
type SseStreamHost = {
  readonly clock: Clock;
  /**
   * Whether chunks may be written directly to the socket instead of the response. The peer receives the same bytes
   * either way.
   */
  readonly direct: boolean;
  /** Called once for each stream, before its own `onClose`. */
  readonly onClose: (stream: SseStream) => void;
};

/**
 * One HTTP response as an event stream. All bytes pass through `write`, including pings and last chunks. Writers check
 * `blocked` or await `ready` first, so a slow reader costs at most its socket's buffer and a bounded queue. The class
 * avoids closures, because a node has one instance for each of thousands of readers.
 */
export class SseStream {
  readonly options: SseStreamOptions;
  readonly #res: HttpResponse;
  readonly #host: SseStreamHost;
  /** The socket, if chunks can be written to it directly; otherwise the response, which frames the chunks. */
  #out: Out;
  #direct = false;
  #hasBegun = false;
  #members: StreamMember[] = [];
  #closed = false;
  /** The time at which the reader stopped reading, by `Clock.monotonic`; null while it reads. */
  #blockedAt: number | null = null;
  #drained: PromiseWithResolvers<void> | null = null;

  constructor(
    res: HttpResponse,
    { host, options }: { readonly host: SseStreamHost; readonly options: SseStreamOptions },
  ) {
    requestDone(res);
    this.options = options;
    this.#res = res;
    this.#out = res;
    this.#host = host;
    res.on('close', () => this.#finish());
    // If the client disconnected before this line, `close` was emitted before the listener existed.
    if (res.destroyed) queueMicrotask(() => this.#finish());
    if (options.waits !== true) this.begin();
  }

  /** Sends the head of the response, unless it was sent before. A reader takes it for the beginning of its events. */
  begin(): void {
    if (this.#hasBegun || this.#closed) return;
    this.#hasBegun = true;
    const res = this.#res;
    res.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      // `no-transform`: a proxy that compresses would delay events until it has a whole block of them.
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    });
    // Flushing the headers before the body lets Node store them as one string instead of thirty.
    res.flushHeaders();
    forget(res);
    if (res.socket) streaming.add(res.socket);
    const socket = this.#host.direct ? chunkedSocket(res) : null;
    this.#direct = socket !== null;
    this.#out = socket ?? res;
    // Some browsers do not process the headers until the first bytes of the body arrive.
    this.write(PING);
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Whether written data still waits for the reader. */
  get blocked(): boolean {
    return this.#blockedAt !== null;
  }

  addMember(member: StreamMember): void {
    // `concat` allocates for one member; `push` would allocate room for sixteen more.
    this.#members = this.#members.concat(member);
  }

  removeMember(member: StreamMember): void {
    this.#members = this.#members.filter((one) => one !== member);
  }

  /**
   * Writes the chunk even if the stream is blocked. Callers with more than a few last frames must check `blocked`
   * first.
   */
  write(chunk: Chunk): void {
    this.begin();
    if (this.#closed) return;
    const taken = this.#out.write(this.#direct ? chunk.framed : chunk.plain);
    // The stream is blocked only if data stays in the buffer. Data that the operating system has accepted does not
    // count.
    if (!taken && this.#blockedAt === null && this.#out.writableLength > 0) this.#block();
  }

  send(text: string): void {
    this.write(new Chunk(text));
  }

  /** Resolves when the stream accepts data again, or when it has ended. */
  async ready(): Promise<void> {
    if (this.#blockedAt === null || this.#closed) return;
    this.#drained ??= Promise.withResolvers();
    await this.#drained.promise;
  }

  /**
   * Sends a comment, so that proxies do not close an idle stream. Destroys the response if its reader has been blocked
   * for SSE_STALL_MS.
   */
  ping(): void {
    if (this.#blockedAt === null) this.write(PING);
    else if (this.#host.clock.monotonic() - this.#blockedAt >= SSE_STALL_MS) this.#res.destroy();
  }

  /**
   * Ends the response. A client that has not received a `complete` event treats this end as a lost connection and
   * reconnects.
   */
  end(): void {
    if (this.#closed) return;
    this.begin();
    this.#res.end();
    this.#finish();
  }

  #block(): void {
    this.#blockedAt = this.#host.clock.monotonic();
    this.#out.once('drain', () => this.#drain());
  }

  /** Calls `drained` of the members in turn. A member that could not write everything is called last the next time. */
  #drain(): void {
    this.#unblock();
    for (const member of this.#members) {
      if (this.blocked || this.#closed) return;
      this.#members = [...this.#members.filter((one) => one !== member), member];
      member.drained();
    }
  }

  #unblock(): void {
    this.#blockedAt = null;
    this.#drained?.resolve();
    this.#drained = null;
  }

  #finish(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#res.socket) streaming.delete(this.#res.socket);
    this.#unblock();
    const members = this.#members;
    this.#members = [];
    for (const member of members) member.gone();
    this.#host.onClose(this);
    this.options.onClose();
  }
}

/**
 * Returns the socket if chunks can be written to it directly, otherwise null: for HTTP/1.0, for TLS, and for a response
 * that waits behind another one of its connection.
 */
function chunkedSocket(res: HttpResponse): HttpSocket | null {
  const { socket, req } = res;
  const own = res.chunkedEncoding && socket !== null && socket === req.socket;
  return own && !('encrypted' in socket) ? socket : null;
}

/**
 * Frees memory that an open stream does not need: the request's headers and the response's head, more than a kilobyte
 * for each reader. A stream may be open for days. Node has no API to free the head. A version of Node that stores the
 * head elsewhere keeps it in memory.
 */
function forget(res: HttpResponse): void {
  const { req } = res;
  req.rawHeaders = [];
  req.headers = NO_HEADERS;
  req.url = '';
  const written = Object.getOwnPropertySymbols(res).find(({ description }) => description === 'kOutHeaders');
  if (written && res.headersSent) Reflect.set(res, written, null);
}

// The open event streams of one node: limits their number per requester, sends pings, and ends them.

export type SseStreams = {
  /**
   * Reserves a stream for the requester and returns the function that frees it. Throws `rate_limited` or `draining`.
   */
  reserve(requester: Principal): () => void;
  /** Turns a response into a stream. The caller must have called `reserve`, and writes to the stream and ends it. */
  open(res: HttpResponse, options: SseStreamOptions): SseStream;
  /** Ends every stream with its last chunk, if it has one, and refuses new streams as `draining`. */
  close(): void;
};

/** `pingMs`: the interval of pings, in milliseconds. */
export function createSseStreams({
  clock,
  direct,
  pingMs = SSE_PING_MS,
}: Omit<SseStreamHost, 'onClose'> & { readonly pingMs?: number | undefined }): SseStreams {
  const streams = new Set<SseStream>();
  const expiries = createExpiries(clock);
  const held = new Map<string, number>();
  let closing = false;
  const stopPings = clock.every(pingMs, () => streams.forEach((stream) => stream.ping()));
  const host: SseStreamHost = {
    clock,
    direct,
    onClose(stream) {
      streams.delete(stream);
      expiries.cancel(stream);
    },
  };
  return {
    reserve(requester) {
      if (closing)
        fail('draining', 'This node is shutting down; open the stream on another node.', { retryAfterMs: 1000 });
      return takePlace(held, requester);
    },
    open(res, options) {
      const stream = new SseStream(res, { host, options });
      streams.add(stream);
      expiries.add(stream);
      return stream;
    },
    close() {
      closing = true;
      stopPings();
      for (const stream of [...streams]) {
        if (stream.options.lastChunk) stream.write(stream.options.lastChunk);
        stream.end();
      }
    },
  };
}

function takePlace(held: Map<string, number>, requester: Principal): () => void {
  const subject = subjectOf(requester);
  const most = requester.kind === 'admin' ? SSE_PER_ADMIN : SSE_PER_PRINCIPAL;
  const now = held.get(subject) ?? 0;
  if (now >= most) fail('rate_limited', `At most ${most} event streams at once.`, { retryAfterMs: 5000 });
  held.set(subject, now + 1);
  let given = false;
  return () => {
    if (given) return;
    given = true;
    const left = (held.get(subject) ?? 1) - 1;
    if (left > 0) held.set(subject, left);
    else held.delete(subject);
  };
}

export type Ending = Pick<SseStream, 'options' | 'end'>;

/** The streams that expire within the same second, and the timer for the earliest of them. */
type Row = { readonly streams: Set<Ending>; at: number; cancel: Cancel };

/** The length of the period that one row covers, in milliseconds. */
const ROW_MS = 1000;

/** Ends event streams when their tokens expire. Streams that expire in the same second share one timer. */
export function createExpiries(clock: Clock) {
  const rows = new Map<number, Row>();
  const rowOf = ({ options: { expiresAt } }: Ending): number | null => expiresAt && Math.floor(expiresAt / ROW_MS);
  const arm = (key: number, row: Row, at: number): void => {
    row.cancel();
    row.at = at;
    row.cancel = atTime(clock, at, () => end(key, row));
  };
  const end = (key: number, row: Row): void => {
    const now = Math.max(clock.now(), row.at);
    let next = Infinity;
    for (const stream of row.streams) {
      const at = stream.options.expiresAt ?? Infinity;
      if (at > now) next = Math.min(next, at);
      else {
        // The stream leaves the row before `end`, because `end` may take effect later, and other streams may join the
        // row until then.
        row.streams.delete(stream);
        stream.end();
      }
    }
    if (row.streams.size > 0) arm(key, row, next);
    else rows.delete(key);
  };
  return {
    /** Ends the stream at its `options.expiresAt`, unless it is cancelled before. */
    add(stream: Ending): void {
      const key = rowOf(stream);
      const at = stream.options.expiresAt;
      if (key === null || at === null) return;
      const row = rows.get(key) ?? { streams: new Set(), at: Infinity, cancel: () => {} };
      rows.set(key, row);
      row.streams.add(stream);
      if (at < row.at) arm(key, row, at);
    },
    cancel(stream: Ending): void {
      const key = rowOf(stream);
      const row = key === null ? undefined : rows.get(key);
      if (key === null || !row?.streams.delete(stream) || row.streams.size > 0) return;
      row.cancel();
      rows.delete(key);
    },
  };
}

/** The longest delay that a Node timer accepts, in milliseconds. A timer with a longer delay fires at once. */
const LONGEST_MS = 2 ** 31 - 1;

/**
 * Calls `run` at this wall time (epoch milliseconds), which may be arbitrarily far away. If the time has passed, `run`
 * is called as soon as possible.
 */
export function atTime(clock: Clock, epochMs: number, run: () => void): Cancel {
  let cancel: Cancel = () => {};
  const arm = (): void => {
    const left = Math.max(0, epochMs - clock.now());
    cancel = left > LONGEST_MS ? clock.after(LONGEST_MS, arm) : clock.after(left, run);
  };
  arm();
  return () => cancel();
}

// Encodes frames of an event stream (https://html.spec.whatwg.org/multipage/server-sent-events.html).

const BREAKS = /[\r\n\u0000]/;

type EventFrame = {
  readonly event: string;
  readonly id?: string;
  /** The data of the event as JSON text. */
  readonly data: string;
};

/**
 * Returns the text of a frame. Throws a TypeError if a field contains CR, LF or NUL, because those end the field or
 * make clients ignore it.
 */
export function eventFrame({ event, id, data }: EventFrame): string {
  for (const field of [event, id ?? '', data]) {
    if (BREAKS.test(field)) throw new TypeError('A field of an event stream must not contain CR, LF or NUL.');
  }
  return `event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${data}\n\n`;
}
