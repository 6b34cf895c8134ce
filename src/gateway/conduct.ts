import type { Clock } from '../core/clock.ts';
import { FRAME_BURST, FRAME_RATE, IN_FLIGHT } from '../core/limits.ts';
import { BadFrames, Bucket, type Allowance } from './rate.ts';
import type { About } from './refusal.ts';
import type { Wire } from './wire.ts';

const UNSOLICITED: Allowance = { perSecond: FRAME_RATE, burst: FRAME_BURST };
/** Each command in the window has the allowance of a whole link, and no more: a runaway handler floods nobody. */
const PROGRESS: Allowance = { perSecond: FRAME_RATE * IN_FLIGHT, burst: FRAME_BURST * IN_FLIGHT };

/** How a peer behaves: counts what it should not send, refuses what is too much, closes the link of who goes on. */
export class Conduct {
  readonly #wire: Wire;
  readonly #clock: Clock;
  /** Each made with the first frame that it counts: most links are idle, and a bucket is full at first. */
  #bad: BadFrames | null = null;
  #unsolicited: Bucket | null = null;
  #progress: Bucket | null = null;

  constructor(clock: Clock, wire: Wire) {
    this.#wire = wire;
    this.#clock = clock;
  }

  /** A frame that nothing asked for. False: it was refused, and is not to be handled. */
  unsolicited(about: About): boolean {
    return this.#take((this.#unsolicited ??= new Bucket(this.#clock, UNSOLICITED)), about);
  }

  /** Progress of a command in flight. */
  progress(about: About): boolean {
    return this.#take((this.#progress ??= new Bucket(this.#clock, PROGRESS)), about);
  }

  /** A frame that could not be understood; it is refused by name. */
  misunderstood(detail: string, about: About): void {
    if (!this.unsolicited(about)) return;
    this.#wire.refuse({ code: 'invalid_argument', message: detail }, about);
    this.#bad ??= new BadFrames(this.#clock);
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
