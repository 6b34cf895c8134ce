/** Writes one HTTP response as an event stream, with pings and back pressure. It does not know what the events mean. */
import type { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import type { Clock } from '../core/clock.ts';
import { SSE_STALL_MS } from '../core/limits.ts';
import { requestDone } from './requests-in-progress.ts';
import { Chunk } from './sse-chunk.ts';

const PING = new Chunk(':\n\n');
const NO_HEADERS = Object.freeze({});

const streaming = new WeakSet<Writable>();

/**
 * Whether an event stream is open on this socket. Such a stream bounds its own unread bytes, so callers need not count
 * them.
 */
export function isEventStream(socket: Writable): boolean {
  return streaming.has(socket);
}

/** A user of a stream: an operation, or a member of a group. */
export interface StreamMember {
  /** Called when the stream accepts data again after it was blocked. */
  drained(): void;
  /** Called when the stream has ended: nothing can be written any more. */
  gone(): void;
}

/** The parameters of one stream. */
export type SseStreamOptions = {
  /** Called once when the stream has ended, whichever side ended it. */
  readonly onClose: () => void;
  /** When the stream ends by itself, in epoch milliseconds; null: never. */
  readonly expiresAt: number | null;
  /** The last chunk written when the node shuts down; null: none. */
  readonly lastChunk: Chunk | null;
};

/** What the open streams of a node share. */
export type SseStreamHost = {
  readonly clock: Clock;
  /** Whether chunks may be written directly to the socket, past the response. */
  readonly direct: boolean;
  /** Called once for each stream, before its own `onClose`. */
  readonly onClose: (stream: SseStream) => void;
};

/**
 * One HTTP response as an event stream. Everything goes through `write`, including pings and last chunks. A writer
 * checks `blocked`, or awaits `ready`, before it writes more, so a slow reader costs no more than its socket's buffer
 * and its bounded queue. The class avoids closures of its own where it can, because thousands of readers each have one
 * instance.
 */
export class SseStream {
  readonly options: SseStreamOptions;
  readonly #res: ServerResponse;
  readonly #host: SseStreamHost;
  /** The socket, when chunks can be written to it directly; else the response, which frames them. */
  readonly #out: Writable;
  readonly #direct: boolean;
  #members: StreamMember[] = [];
  #closed = false;
  /** The time at which the reader stopped reading, in epoch milliseconds; null while it reads. */
  #blockedAt: number | null = null;
  #drained: PromiseWithResolvers<void> | null = null;

  constructor(
    res: ServerResponse,
    { host, options }: { readonly host: SseStreamHost; readonly options: SseStreamOptions },
  ) {
    requestDone(res);
    this.options = options;
    this.#res = res;
    this.#host = host;
    res.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    });
    // When the headers are flushed without a body, Node keeps them as one string instead of thirty parts.
    res.flushHeaders();
    forget(res);
    if (res.socket) streaming.add(res.socket);
    const socket = host.direct ? chunkedSocket(res) : null;
    this.#direct = socket !== null;
    this.#out = socket ?? res;
    res.on('close', () => this.#finish());
    // A client that hung up earlier has emitted `close` before this listener existed.
    if (res.destroyed) queueMicrotask(() => this.#finish());
    // Some browsers hold the headers back until the first bytes of the body arrive.
    this.write(PING);
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Whether written data waits because the reader has not read it. */
  get blocked(): boolean {
    return this.#blockedAt !== null;
  }

  addMember(member: StreamMember): void {
    // `concat` instead of `push`, which would allocate room for sixteen more.
    this.#members = this.#members.concat(member);
  }

  removeMember(member: StreamMember): void {
    this.#members = this.#members.filter((one) => one !== member);
  }

  /**
   * Writes even when the stream is blocked. A caller that writes more than a few last frames checks `blocked` first.
   */
  write(chunk: Chunk): void {
    if (this.#closed) return;
    const taken = this.#out.write(this.#direct ? chunk.framed : chunk.plain);
    // The stream blocks only if data is left in the buffer. Data that the system accepted at once does not count.
    if (!taken && this.#blockedAt === null && this.#out.writableLength > 0) this.#block();
  }

  send(text: string): void {
    this.write(new Chunk(text));
  }

  /** Resolves when more may be written, or when the stream has ended. */
  async ready(): Promise<void> {
    if (this.#blockedAt === null || this.#closed) return;
    this.#drained ??= Promise.withResolvers();
    await this.#drained.promise;
  }

  /**
   * Sends a comment, which keeps proxies from closing an idle stream. Destroys the response when its reader has taken
   * nothing for SSE_STALL_MS.
   */
  ping(): void {
    if (this.#blockedAt === null) this.write(PING);
    else if (this.#host.clock.monotonic() - this.#blockedAt >= SSE_STALL_MS) this.#res.destroy();
  }

  /** Ends the response. A client that received no `complete` treats this as a lost connection and reconnects. */
  end(): void {
    if (this.#closed) return;
    this.#res.end();
    this.#finish();
  }

  #block(): void {
    this.#blockedAt = this.#host.clock.monotonic();
    this.#out.once('drain', () => this.#drain());
  }

  /** Calls the members in turn. A member that could not write everything is called last the next time. */
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
 * Returns the socket of a response that uses chunked encoding and has the socket to itself. Null for HTTP/1.0, for a
 * response queued behind another, and for TLS.
 */
function chunkedSocket(res: ServerResponse): Writable | null {
  const { socket, req } = res;
  const own = res.chunkedEncoding && socket !== null && socket === req.socket;
  return own && !('encrypted' in socket) ? socket : null;
}

/**
 * Frees what a long-lived stream does not need: the request's headers, which have been read, and the response's head,
 * which has been written. Together they would keep more than a kilobyte for each reader for as long as the stream is
 * open, which may be days. Node has no API to free the head; if a version of Node stores it elsewhere, it stays in
 * memory.
 */
function forget(res: ServerResponse): void {
  const { req } = res;
  req.rawHeaders = [];
  req.headers = NO_HEADERS;
  req.url = '';
  const written = Object.getOwnPropertySymbols(res).find(({ description }) => description === 'kOutHeaders');
  if (written && res.headersSent) Reflect.set(res, written, null);
}
