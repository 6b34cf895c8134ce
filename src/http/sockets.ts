import type { Socket } from 'node:net';
import type { Cancel, Clock } from '../core/clock.ts';
import { READ_NOTHING_MS } from '../core/limits.ts';
import type { Log } from '../core/log.ts';
import type { Metrics } from '../core/metrics.ts';
import { networkOf } from '../gateway/address.ts';
import { Bucket } from '../gateway/rate.ts';
import { isEventStream } from '../graphql/sse-wire.ts';
import { takenBytes } from './socket-progress.ts';

/** How often it is looked for readers that take nothing. */
const LOOK_MS = 1_000;
/** Refused sockets that are logged; the next line says how many were not. */
const LINES = { perSecond: 1, burst: 5 };

export type SocketsOptions = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Unauthenticated sockets of one address at once; null: no such bound, as behind a proxy, whose address all share. */
  readonly perAddress: number | null;
  /** Unauthenticated sockets at once. */
  readonly inAll: number;
};

/** One open socket of the server. */
type Watched = {
  readonly address: string;
  authenticated: boolean;
  /** Taken over by the gateway, which bounds what its peer leaves unread. */
  upgraded: boolean;
  /** Bytes that the peer has taken, and since when it takes no more of what waits for it; null: nothing waits. */
  taken: number;
  stalledSince: number | null;
};

/**
 * The sockets of the HTTP server. Those over which nobody has shown a good token are bounded; peers that read nothing of an answer for
 * READ_NOTHING_MS are cut. Links and event streams keep their own bounds for unread bytes.
 */
export class Sockets {
  readonly #options: SocketsOptions;
  readonly #open = new Map<Socket, Watched>();
  readonly #unauthenticated = new Map<string, number>();
  readonly #lines: Bucket;
  readonly #stop: Cancel;
  /** One listener for all: an idle link holds none of its own. */
  readonly #onClose: (this: Socket) => void;
  #inAll = 0;
  #suppressed = 0;

  constructor(options: SocketsOptions) {
    this.#options = options;
    this.#lines = new Bucket(options.clock, LINES);
    this.#stop = options.clock.every(LOOK_MS, () => this.#cutStalled());
    const forget = (socket: Socket): void => this.#forget(socket);
    this.#onClose = function () {
      forget(this);
    };
  }

  /** Unauthenticated sockets. */
  get unauthenticated(): number {
    return this.#inAll;
  }

  /** A socket was accepted. One beyond a bound is destroyed without an answer, which would cost what the bound is to save. */
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

  /** A good token or ticket came over it, or its link was welcomed: it counts no more. A welcomed link is not watched any further. */
  authenticated(socket: Socket): void {
    const watched = this.#open.get(socket);
    if (!watched || watched.authenticated) return;
    watched.authenticated = true;
    this.#countDown(watched.address);
    if (watched.upgraded) this.#unwatch(socket);
  }

  /** The gateway has it from now on. It counts as before until it is authenticated. */
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
    if (this.#lines.take() !== 'ok') return void this.#suppressed++;
    const fields = { address, bound, ...(this.#suppressed > 0 && { suppressed: this.#suppressed }) };
    this.#suppressed = 0;
    this.#options.log.warn(fields, 'a connection was refused: too many are open without a token');
  }

  #cutStalled(): void {
    const now = this.#options.clock.now();
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
    this.#options.log.info({ address }, 'a connection was cut: its peer reads nothing of its answer');
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
