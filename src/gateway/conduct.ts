import type { Clock } from '../core/clock.ts';
import { FRAME_BURST, FRAME_RATE, IN_FLIGHT } from '../core/limits.ts';
import { BadFrames, Bucket } from './rate.ts';
import type { About } from './refusal.ts';
import type { Wire } from './wire.ts';

/** How a peer behaves: counts what it should not send, refuses what is too much, closes the link of who goes on. */
export class Conduct {
  readonly #wire: Wire;
  readonly #bad: BadFrames;
  readonly #unsolicited: Bucket;
  readonly #progress: Bucket;

  constructor(clock: Clock, wire: Wire) {
    this.#wire = wire;
    this.#bad = new BadFrames(clock);
    this.#unsolicited = new Bucket(clock, { perSecond: FRAME_RATE, burst: FRAME_BURST });
    // Each command in the window has the allowance of a whole link, and no more: a runaway handler floods nobody.
    this.#progress = new Bucket(clock, { perSecond: FRAME_RATE * IN_FLIGHT, burst: FRAME_BURST * IN_FLIGHT });
  }

  /** A frame that nothing asked for. False: it was refused, and is not to be handled. */
  unsolicited(about: About): boolean {
    return this.#take(this.#unsolicited, about);
  }

  /** Progress of a command in flight. */
  progress(about: About): boolean {
    return this.#take(this.#progress, about);
  }

  /** A frame that could not be understood; it is refused by name. */
  misunderstood(detail: string, about: About): void {
    if (!this.unsolicited(about)) return;
    this.#wire.refuse({ code: 'invalid_argument', message: detail }, about);
    if (this.#bad.add()) this.#wire.close('protocol_error');
  }

  #take(bucket: Bucket, about: About): boolean {
    const taken = bucket.take();
    if (taken === 'ok') return true;
    const retryAfterMs = bucket.retryAfterMs;
    this.#wire.refuse({ code: 'rate_limited', message: 'Too many frames.', retryAfterMs }, about);
    if (taken === 'flood') this.#wire.close('rate_limited');
    return false;
  }
}
