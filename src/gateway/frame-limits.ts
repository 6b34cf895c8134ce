import type { Clock } from '../core/clock.ts';
import { FRAME_BURST, FRAME_RATE, IN_FLIGHT } from '../core/limits.ts';
import { BadFrames, Bucket, type Allowance } from './rate.ts';
import type { About } from './refusal.ts';
import type { FrameWriter } from './frame-writer.ts';

const UNSOLICITED: Allowance = { perSecond: FRAME_RATE, burst: FRAME_BURST };
/**
 * Each of the IN_FLIGHT commands gets the allowance of a whole link, and no more, so a runaway handler floods nobody.
 */
const PROGRESS: Allowance = { perSecond: FRAME_RATE * IN_FLIGHT, burst: FRAME_BURST * IN_FLIGHT };

/**
 * The frame limits of one link: counts unsolicited frames, refuses those over the limit, and closes a link that keeps
 * sending.
 */
export class FrameLimits {
  readonly #wire: FrameWriter;
  readonly #clock: Clock;
  /** Each is created with the first frame that it counts: most links are idle, and a new bucket is full. */
  #bad: BadFrames | null = null;
  #unsolicited: Bucket | null = null;
  #progress: Bucket | null = null;

  constructor(clock: Clock, wire: FrameWriter) {
    this.#wire = wire;
    this.#clock = clock;
  }

  /** Counts an unsolicited frame. False: the frame was refused and must not be handled. */
  unsolicited(about: About): boolean {
    return this.#take((this.#unsolicited ??= new Bucket(this.#clock, UNSOLICITED)), about);
  }

  /** Counts a progress frame of a command in flight. False: the frame was refused and must not be handled. */
  progress(about: About): boolean {
    return this.#take((this.#progress ??= new Bucket(this.#clock, PROGRESS)), about);
  }

  /**
   * Refuses a frame that is malformed or not allowed here, with `detail` as the reason; too many of them close the
   * link.
   */
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
