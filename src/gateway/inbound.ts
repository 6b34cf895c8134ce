import type { Cancel, Clock } from '../core/clock.ts';
import type { Metrics } from '../core/metrics.ts';
import type { HeldRate } from '../core/shares/byte-rate.ts';

/** The reading side of a link's socket. */
export type Readable = { pause(): void; resume(): void };

export type InboundOptions = {
  readonly held: HeldRate;
  readonly socket: Readable;
  readonly clock: Clock;
  readonly metrics: Metrics;
};

/**
 * Holds a link to its user's rate in bytes: above it the socket is not read for as long as the rate says, so the peer is slowed by its own
 * connection and no frame is lost. Frames that the socket had read before still come.
 */
export class Inbound {
  readonly #options: InboundOptions;
  #cancel: Cancel | null = null;
  #over = false;

  constructor(options: InboundOptions) {
    this.#options = options;
  }

  /** Not read now. */
  get paused(): boolean {
    return this.#cancel !== null;
  }

  /** A frame of so many bytes came. */
  charge(bytes: number): void {
    const wait = this.#options.held.rate.charge(bytes);
    if (wait > 0 && !this.#over && this.#cancel === null) this.#pause(wait);
  }

  /** The link closes: what is still sent is read, its close frame among it. */
  readOn(): void {
    this.#over = true;
    this.#resume();
  }

  /** The socket is gone. Call it once. */
  release(): void {
    this.readOn();
    this.#options.held.release();
  }

  #pause(ms: number): void {
    const { socket, clock, metrics } = this.#options;
    metrics.count('inbound_limited', 'link');
    socket.pause();
    this.#cancel = clock.after(ms, () => this.#look());
  }

  /** Other links of the user may have sent since. */
  #look(): void {
    const wait = this.#options.held.rate.charge(0);
    if (wait > 0) this.#cancel = this.#options.clock.after(wait, () => this.#look());
    else this.#resume();
  }

  #resume(): void {
    if (this.#cancel === null) return;
    this.#cancel();
    this.#cancel = null;
    this.#options.socket.resume();
  }
}
