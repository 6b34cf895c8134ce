/** Limits how many frames a peer may send, and refuses malformed ones. Does not handle frames. */
import { invalid } from '../core/errors.ts';
import {
  checkedJson,
  isArrayText,
  isObjectText,
  itemsOf,
  membersOf,
  readMembers,
  type JsonText,
  type Members,
} from '../core/json.ts';
import {
  BAD_FRAMES,
  BAD_FRAMES_MS,
  ENVELOPE_PARTS,
  FRAME_BURST,
  FRAME_RATE,
  HEADER_CHARS,
  IN_FLIGHT,
} from '../core/limits.ts';
import type { Clock } from '../core/ports.ts';
import { SlidingWindow, TokenBucket, type BucketRate, type WindowRate } from '../core/rates.ts';
import type { OffendingFrame } from './close.ts';
import type { FrameWriter } from './socket.ts';

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

// Checks that the payload of a frame is JSON, and takes members out of it.

/** The error for a payload that is not JSON. Its frame counts as a bad frame of its sender. */
export class BadPayload extends Error {
  constructor() {
    super('payload: not JSON, or nested too deeply');
  }
}

/** Returns the payload unchanged if it is JSON; null if the frame has no payload. Else throws BadPayload. */
export function payloadOf({ payload }: { readonly payload: string | null }): JsonText | null {
  if (payload === null) return null;
  const json = checkedJson(payload);
  if (json === null) throw new BadPayload();
  return json;
}

/**
 * Returns the members of a JSON object, as JSON texts. Throws `invalid_argument` for the parameter `where` if the text
 * is not an object.
 */
export function objectOf(where: string, json: JsonText): Members {
  if (!isObjectText(json)) return invalid(where, 'an object was expected');
  return membersOf(json, ENVELOPE_PARTS) ?? invalid(where, `at most ${ENVELOPE_PARTS} members are allowed`);
}

/** Does the same as `objectOf`, for the payload of a frame, which has not been checked yet. */
export function payloadMembers(payload: string | null): Members {
  const members = payload === null ? 'syntax' : readMembers(payload, ENVELOPE_PARTS);
  if (members === null) return invalid('payload', 'an object was expected');
  if (members === 'members') return invalid('payload', `at most ${ENVELOPE_PARTS} members are allowed`);
  if (typeof members === 'string') return invalid('payload', 'not JSON, or nested too deeply');
  return members;
}

/**
 * Returns the items of a JSON array. Throws `invalid_argument` for the parameter `where` if the text is not an array,
 * or has more than `most` items.
 */
export function arrayOf(where: string, json: JsonText, most: number): readonly JsonText[] {
  if (!isArrayText(json)) return invalid(where, 'an array was expected');
  return itemsOf(json, most) ?? invalid(where, `at most ${most} items are allowed`);
}

/** Returns the value of a member as JSON text; null if it is absent or JSON `null`. */
export function memberIn(members: Members, name: string): JsonText | null {
  const json = members.get(name);
  return json === undefined || json === 'null' ? null : json;
}

/** Reads a string, or null. Throws `invalid_argument` for the parameter `where` if the value is anything else. */
export function textIn(where: string, json: JsonText | null): string | null {
  const value = scalarOf(json);
  return value === null || typeof value === 'string' ? value : invalid(where, 'a string was expected');
}

/** Reads a boolean, or null. Throws `invalid_argument` for the parameter `where` if the value is anything else. */
export function flagIn(where: string, json: JsonText | null): boolean | null {
  const value = scalarOf(json);
  return value === null || typeof value === 'boolean' ? value : invalid(where, 'true or false was expected');
}

/**
 * Reads a JSON string, number, boolean or null. Returns an empty object for an object or an array, without parsing it.
 */
export function scalarOf(json: JsonText | null): unknown {
  if (json === null) return null;
  return isObjectText(json) || isArrayText(json) ? {} : JSON.parse(json);
}
