import type { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import type { Clock } from '../core/clock.ts';
import { SSE_STALL_MS } from '../core/limits.ts';
import { Chunk } from './sse-frame.ts';

const PING = new Chunk(':\n\n');
const NO_HEADERS = Object.freeze({});

const streaming = new WeakSet<Writable>();

/** Whether an event stream is open on this socket. What its reader leaves unread is bounded here. */
export function isEventStream(socket: Writable): boolean {
  return streaming.has(socket);
}

/** What runs on a wire. */
export interface Guest {
  /** More may be written, after the wire was blocked. */
  drained(): void;
  /** The stream has ended: nothing can be written any more. */
  gone(): void;
}

/** What one stream is opened with. */
export type WireTerms = {
  /** Called once, whoever ended it. */
  readonly onClose: () => void;
  /** When it ends by itself, in epoch milliseconds; null: never. */
  readonly expiresAt: number | null;
  /** Its last words when the node stops; null: none. */
  readonly farewell: Chunk | null;
};

/** What the open streams of a node have in common. */
export type WireHouse = {
  readonly clock: Clock;
  /** Whether chunks may go to the socket as they are, past the response. */
  readonly direct: boolean;
  /** Called once for each wire, before its own `onClose`. */
  readonly onClose: (wire: Wire) => void;
};

/**
 * One HTTP response as an event stream. Everything is written in the same way, pings and last words included. Whoever writes looks at
 * `blocked`, or waits for `ready`, before it writes more, so that a slow reader costs what its socket takes and its bounded queue.
 * A class without closures of its own where it can: there is one for each of thousands of readers.
 */
export class Wire {
  readonly terms: WireTerms;
  readonly #res: ServerResponse;
  readonly #house: WireHouse;
  /** The socket, where chunks can be written as they are; else the response, which frames them. */
  readonly #out: Writable;
  readonly #direct: boolean;
  #guests: Guest[] = [];
  #closed = false;
  /** Since when the reader takes nothing; null while it does. */
  #blockedAt: number | null = null;
  #drained: PromiseWithResolvers<void> | null = null;

  constructor(res: ServerResponse, { house, terms }: { readonly house: WireHouse; readonly terms: WireTerms }) {
    this.terms = terms;
    this.#res = res;
    this.#house = house;
    res.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    });
    // Written by themselves they become one string, instead of the thirty that they were put together from.
    res.flushHeaders();
    forget(res);
    if (res.socket) streaming.add(res.socket);
    const socket = house.direct ? chunkedSocket(res) : null;
    this.#direct = socket !== null;
    this.#out = socket ?? res;
    res.on('close', () => this.#finish());
    // Whoever hung up before this has closed before anybody listened.
    if (res.destroyed) queueMicrotask(() => this.#finish());
    // Some browsers hold the headers back until the first bytes of the body.
    this.write(PING);
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** The reader does not take what it was sent. */
  get blocked(): boolean {
    return this.#blockedAt !== null;
  }

  admit(guest: Guest): void {
    // A list that grows by itself keeps room for sixteen more.
    this.#guests = this.#guests.concat(guest);
  }

  dismiss(guest: Guest): void {
    this.#guests = this.#guests.filter((one) => one !== guest);
  }

  /** Writes even where the wire is blocked: who writes more than a few last words looks first. */
  write(chunk: Chunk): void {
    if (this.#closed) return;
    const taken = this.#out.write(this.#direct ? chunk.framed : chunk.plain);
    // What the system took at once does not count, however much it was.
    if (!taken && this.#blockedAt === null && this.#out.writableLength > 0) this.#block();
  }

  send(text: string): void {
    this.write(new Chunk(text));
  }

  /** Resolves when more may be written, or when nothing more will be. */
  async ready(): Promise<void> {
    if (this.#blockedAt === null || this.#closed) return;
    this.#drained ??= Promise.withResolvers();
    await this.#drained.promise;
  }

  /** A comment, which keeps proxies from cutting an idle stream. A reader that takes nothing for too long is cut instead. */
  ping(): void {
    if (this.#blockedAt === null) this.write(PING);
    else if (this.#house.clock.now() - this.#blockedAt >= SSE_STALL_MS) this.#res.destroy();
  }

  /** Ends the response. A client that saw no `complete` takes this for a lost connection and comes again. */
  end(): void {
    if (this.#closed) return;
    this.#res.end();
    this.#finish();
  }

  #block(): void {
    this.#blockedAt = this.#house.clock.now();
    this.#out.once('drain', () => this.#drain());
  }

  /** Guests take turns: who could not write all it has is the last to be asked the next time. */
  #drain(): void {
    this.#unblock();
    for (const guest of this.#guests) {
      if (this.blocked || this.#closed) return;
      this.#guests = [...this.#guests.filter((one) => one !== guest), guest];
      guest.drained();
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
    const guests = this.#guests;
    this.#guests = [];
    for (const guest of guests) guest.gone();
    this.#house.onClose(this);
    this.terms.onClose();
  }
}

/**
 * The socket of a response that is written in chunks and has the socket to itself: not HTTP/1.0, not a response that waits behind another, not
 * TLS.
 */
function chunkedSocket(res: ServerResponse): Writable | null {
  const { socket, req } = res;
  const own = res.chunkedEncoding && socket !== null && socket === req.socket;
  return own && !('encrypted' in socket) ? socket : null;
}

/**
 * A stream may be open for days. What the request brought has been read and what the response began with has been written, and both would only
 * be kept: more than a kilobyte for each reader. Node has no word for the latter; where it keeps it otherwise, it is kept.
 */
function forget(res: ServerResponse): void {
  const { req } = res;
  req.rawHeaders = [];
  req.headers = NO_HEADERS;
  req.url = '';
  const written = Object.getOwnPropertySymbols(res).find(({ description }) => description === 'kOutHeaders');
  if (written && res.headersSent) Reflect.set(res, written, null);
}
