/** Bounds the sockets without a valid token and closes stalled ones. It reads no request. */
import type { Socket } from 'node:net';
import type { Cancel, Clock } from '../core/clock.ts';
import { READ_NOTHING_MS } from '../core/limits.ts';
import type { Log } from '../core/log.ts';
import type { Metrics } from '../core/metrics.ts';
import { TokenBucket } from '../core/rates.ts';
import { networkOf } from '../gateway/address.ts';
import { isEventStream } from '../web/sse-stream.ts';
import { takenBytes } from './socket-progress.ts';

/** The interval at which stalled readers are looked for, in milliseconds. */
const CHECK_MS = 1_000;
/** The rate of log lines about refused sockets; the next line has the number of suppressed ones. */
const LINES = { perSecond: 1, burst: 5 };

export type SocketsOptions = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /**
   * The most unauthenticated sockets of one address; null: no bound, because behind a proxy all sockets have the
   * proxy's address.
   */
  readonly perAddress: number | null;
  /** The most unauthenticated sockets of all addresses together. */
  readonly inAll: number;
};

/** One open socket of the server. */
type Watched = {
  readonly address: string;
  authenticated: boolean;
  /** Whether the gateway has taken over the socket; it bounds the bytes that the peer leaves unread. */
  upgraded: boolean;
  /** The number of bytes that the system had accepted for the peer when `stalledSince` was set. */
  taken: number;
  /**
   * Since when the peer has read nothing although bytes wait, by `Clock.monotonic`; null: nothing waits, or the socket
   * is not checked.
   */
  stalledSince: number | null;
};

/**
 * Holds the sockets of the HTTP server. Bounds the number of sockets without a valid token, and closes sockets whose
 * peer reads nothing of a response for READ_NOTHING_MS. Links and event streams have their own bounds on unread bytes.
 */
export class Sockets {
  readonly #options: SocketsOptions;
  readonly #open = new Map<Socket, Watched>();
  readonly #unauthenticated = new Map<string, number>();
  readonly #lines: TokenBucket;
  readonly #stop: Cancel;
  /** The one listener of all sockets, so that an idle link holds none of its own. */
  readonly #onClose: (this: Socket) => void;
  #inAll = 0;
  #suppressed = 0;

  constructor(options: SocketsOptions) {
    this.#options = options;
    this.#lines = new TokenBucket(options.clock, LINES);
    this.#stop = options.clock.every(CHECK_MS, () => this.#cutStalled());
    const forget = (socket: Socket): void => this.#forget(socket);
    this.#onClose = function () {
      forget(this);
    };
  }

  /** The number of unauthenticated sockets. */
  get unauthenticated(): number {
    return this.#inAll;
  }

  /**
   * Adds an accepted socket. A socket beyond a bound is destroyed without a response, because the bound is meant to
   * save the cost of one.
   */
  accepted(socket: Socket): void {
    const address = networkOf(socket.remoteAddress ?? '');
    const { perAddress, inAll } = this.#options;
    const held = this.#unauthenticated.get(address) ?? 0;
    if (perAddress !== null && held >= perAddress) return this.#refuse(socket, address, 'address');
    if (this.#inAll >= inAll) return this.#refuse(socket, address, 'all');
    this.#unauthenticated.set(address, held + 1);
    this.#inAll++;
    this.#open.set(socket, { address, authenticated: false, upgraded: false, taken: 0, stalledSince: null });
    socket.on('close', this.#onClose);
  }

  /**
   * Called when TLS is established: `secured`, which speaks TLS over an accepted socket, takes the place of that
   * socket.
   */
  secured(socket: Socket, secured: Socket): void {
    const watched = this.#open.get(socket);
    if (!watched) return;
    this.#unwatch(socket);
    this.#open.set(secured, watched);
    secured.on('close', this.#onClose);
  }

  /**
   * Marks a socket as authenticated: a valid token or ticket arrived over it, or its link was welcomed. The socket of a
   * welcomed link is no longer watched.
   */
  authenticated(socket: Socket): void {
    const watched = this.#open.get(socket);
    if (!watched || watched.authenticated) return;
    watched.authenticated = true;
    this.#countDown(watched.address);
    if (watched.upgraded) this.#unwatch(socket);
  }

  /**
   * Marks a socket that the gateway takes over. It still counts as unauthenticated until `authenticated` is called for
   * it.
   */
  upgraded(socket: Socket): void {
    const watched = this.#open.get(socket);
    if (!watched) return;
    watched.upgraded = true;
    if (watched.authenticated) this.#unwatch(socket);
  }

  close(): void {
    this.#stop();
  }

  #refuse(socket: Socket, address: string, bound: 'address' | 'all'): void {
    socket.destroy();
    this.#options.metrics.count('sockets_refused', bound);
    if (this.#lines.take() > 0) return void this.#suppressed++;
    const fields = { address, bound, ...(this.#suppressed > 0 && { suppressed: this.#suppressed }) };
    this.#suppressed = 0;
    this.#options.log.warn(fields, 'a connection was refused: too many are open without a valid token');
  }

  #cutStalled(): void {
    const now = this.#options.clock.monotonic();
    for (const [socket, watched] of this.#open) {
      if (watched.upgraded || socket.writableLength === 0 || isEventStream(socket)) {
        watched.stalledSince = null;
        continue;
      }
      const taken = takenBytes(socket);
      if (watched.stalledSince === null || taken !== watched.taken) {
        watched.taken = taken;
        watched.stalledSince = now;
      } else if (now - watched.stalledSince >= READ_NOTHING_MS) this.#cut(socket, watched);
    }
  }

  #cut(socket: Socket, { address }: Watched): void {
    this.#options.metrics.count('sockets_cut');
    this.#options.log.info({ address }, 'a connection was closed: its peer does not read the response');
    socket.destroy();
  }

  #forget(socket: Socket): void {
    const watched = this.#open.get(socket);
    this.#open.delete(socket);
    if (watched && !watched.authenticated) this.#countDown(watched.address);
  }

  #unwatch(socket: Socket): void {
    this.#open.delete(socket);
    socket.off('close', this.#onClose);
  }

  #countDown(address: string): void {
    this.#inAll--;
    const left = (this.#unauthenticated.get(address) ?? 1) - 1;
    if (left > 0) this.#unauthenticated.set(address, left);
    else this.#unauthenticated.delete(address);
  }
}
