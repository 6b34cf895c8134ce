/** Limits how many frames a peer may send, and refuses malformed ones. Does not handle frames. */
import type { Clock } from '../core/clock.ts';
import { BAD_FRAMES, BAD_FRAMES_MS, FRAME_BURST, FRAME_RATE, HEADER_CHARS, IN_FLIGHT } from '../core/limits.ts';
import { SlidingWindow, TokenBucket, type BucketRate, type WindowRate } from '../core/rates.ts';
import type { OffendingFrame } from './refusal.ts';
import type { FrameWriter } from './frame-writer.ts';

const UNSOLICITED: BucketRate = { perSecond: FRAME_RATE, burst: FRAME_BURST };
/**
 * The allowance of progress frames of one link: as much as UNSOLICITED, for each of the IN_FLIGHT commands. Further
 * progress frames are refused, so a runaway handler cannot slow other links.
 */
const PROGRESS: BucketRate = { perSecond: FRAME_RATE * IN_FLIGHT, burst: FRAME_BURST * IN_FLIGHT };

/** The malformed frames that a link may send; the next one closes it. */
const TOLERATED: WindowRate = { most: BAD_FRAMES - 1, ms: BAD_FRAMES_MS };

/**
 * The frame limits of one link: counts unsolicited frames, refuses those over the limit, and closes a link that keeps
 * sending.
 */
export class FrameLimits {
  readonly #writer: FrameWriter;
  readonly #clock: Clock;
  /** The counters are created with the first frame that they count: most links are idle, and a new bucket is full. */
  #bad: SlidingWindow | null = null;
  #countUnsolicited: TokenBucket | null = null;
  #countProgress: TokenBucket | null = null;

  constructor(clock: Clock, writer: FrameWriter) {
    this.#writer = writer;
    this.#clock = clock;
  }

  /** Counts an unsolicited frame. False: the frame was refused and must not be handled. */
  countUnsolicited(about: OffendingFrame): boolean {
    return this.#take((this.#countUnsolicited ??= new TokenBucket(this.#clock, UNSOLICITED)), UNSOLICITED, about);
  }

  /** Counts a progress frame of a command in flight. False: the frame was refused and must not be handled. */
  countProgress(about: OffendingFrame): boolean {
    return this.#take((this.#countProgress ??= new TokenBucket(this.#clock, PROGRESS)), PROGRESS, about);
  }

  /**
   * Refuses a frame that is malformed or not allowed here, with `detail` as the reason; too many of them close the
   * link.
   */
  refuseBadFrame(detail: string, about: OffendingFrame): void {
    if (!this.countUnsolicited(about)) return;
    this.#writer.refuse({ code: 'invalid_argument', message: detail }, about);
    this.#bad ??= new SlidingWindow(this.#clock, TOLERATED);
    if (this.#bad.take() > 0) this.#writer.close('protocol_error');
  }

  /** A link that was refused `burst` frames since its bucket was last full is closed: it does not slow down. */
  #take(bucket: TokenBucket, { burst }: BucketRate, about: OffendingFrame): boolean {
    const retryAfterMs = bucket.take();
    if (retryAfterMs === 0) return true;
    this.#writer.refuse({ code: 'rate_limited', message: 'Too many frames.', retryAfterMs }, about);
    if (bucket.refused >= burst) this.#writer.close('rate_limited');
    return false;
  }
}

/** Says whether the first line of a frame is longer than HEADER_CHARS. */
export function isHeaderTooLong(text: string): boolean {
  const cut = text.indexOf('\n');
  return (cut < 0 ? text.length : cut) > HEADER_CHARS;
}
