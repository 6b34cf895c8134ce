/** Limits the bytes that a user's links may send, by pausing the sockets. */
import type { Principal } from '../core/auth/principal.ts';
import type { Cancel, Clock } from '../core/clock.ts';
import type { Metrics } from '../core/metrics.ts';
import type { ByteRates, HeldRate } from '../core/shares/byte-rate.ts';

/** The reading side of a link's socket. */
export type Readable = { pause(): void; resume(): void };

export type InboundOptions = {
  readonly held: HeldRate;
  readonly socket: Readable;
  readonly clock: Clock;
  readonly metrics: Metrics;
};

type InboundParts = Pick<InboundOptions, 'clock' | 'metrics'> & { readonly inbound: ByteRates };

/** Limits a welcomed link to the byte rate of its user. Null for an administrator, who is not limited. */
export function limitInbound(
  principal: Principal,
  socket: Readable,
  { inbound, clock, metrics }: InboundParts,
): Inbound | null {
  return principal.kind === 'user'
    ? new Inbound({ held: inbound.hold(principal.userId), socket, clock, metrics })
    : null;
}

/**
 * Holds a link to its user's byte rate. Above the rate, the socket is not read for as long as the rate requires, so
 * back pressure on the connection slows the peer and no frame is lost. Frames that were read before the pause are still
 * handled. The paused links of a user resume one after the other: a link that resumes charges the size of its last
 * frame in advance. If all of them resumed together, their frames would arrive together and stall the event loop.
 */
export class Inbound {
  readonly #held: HeldRate;
  readonly #socket: Readable;
  readonly #clock: Clock;
  readonly #metrics: Metrics;
  #cancel: Cancel | null = null;
  #over = false;
  /** The size of the last frame, in bytes. */
  #last = 0;
  /** The number of bytes that were charged in advance for the next frame. */
  #reserved = 0;

  constructor({ held, socket, clock, metrics }: InboundOptions) {
    this.#held = held;
    this.#socket = socket;
    this.#clock = clock;
    this.#metrics = metrics;
  }

  /** Whether reading is paused. */
  get paused(): boolean {
    return this.#cancel !== null;
  }

  /** Charges a received frame, in bytes, and pauses reading if the rate is exceeded. */
  charge(bytes: number): void {
    const wait = this.#held.rate.charge(bytes - this.#reserved);
    this.#last = bytes;
    this.#reserved = 0;
    if (wait > 0 && !this.#over && this.#cancel === null) this.#pause(wait);
  }

  /**
   * Resumes reading for good because the link is closing, so that the peer's last frames and its close frame are read.
   */
  readOn(): void {
    this.#over = true;
    this.#resume();
  }

  /** Resumes reading for good and releases the user's rate. Call it once, when the socket is gone. */
  release(): void {
    this.readOn();
    this.#held.rate.charge(-this.#reserved);
    this.#reserved = 0;
    this.#held.release();
  }

  #pause(ms: number): void {
    this.#metrics.count('inbound_limited', 'link');
    this.#socket.pause();
    this.#cancel = this.#clock.after(ms, () => this.#look());
  }

  /** Resumes reading. If other links of the user have used up the rate in the meantime, waits again instead. */
  #look(): void {
    const { rate } = this.#held;
    const wait = rate.charge(0);
    if (wait > 0) {
      this.#cancel = this.#clock.after(wait, () => this.#look());
      return;
    }
    this.#reserved = this.#last;
    rate.charge(this.#reserved);
    this.#resume();
  }

  #resume(): void {
    if (this.#cancel === null) return;
    this.#cancel();
    this.#cancel = null;
    this.#socket.resume();
  }
}
