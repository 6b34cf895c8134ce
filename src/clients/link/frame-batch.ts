/** Sends the frames of one turn in as few messages as the relay allows. It knows no sockets. */
import { FRAME_SEPARATOR } from '../../protocol/frame.ts';
import type { Welcome } from './status.ts';

/** The most bytes of UTF-8 for one UTF-16 code unit. */
const UNIT_BYTES = 3;

/**
 * Joins frames into messages. Until `allow` is called, and for a relay that reads one frame from a message, each frame
 * is sent at once.
 */
export class FrameBatch {
  readonly #write: (message: string) => boolean;
  #texts: string[] = [];
  #chars = 0;
  #mostFrames = 1;
  #mostChars = 0;

  /** `write` returns false when the message cannot be sent. */
  constructor(write: (message: string) => boolean) {
    this.#write = write;
  }

  /** The length of the frames that wait for the end of the turn. */
  get chars(): number {
    return this.#chars;
  }

  /** Sets the limits of a message from the relay's `welcome`. */
  allow({ frames_per_message: frames = 1, max_frame_bytes: bytes }: Welcome): void {
    this.#mostFrames = frames;
    this.#mostChars = Math.floor(bytes / UNIT_BYTES);
  }

  /** Returns false when the frame cannot be sent. Frames leave in the order of the calls. */
  send(text: string): boolean {
    if (this.#mostFrames <= 1) return this.#write(text);
    if (this.#texts.length >= this.#mostFrames || this.#chars + text.length >= this.#mostChars) this.flush();
    this.#texts.push(text);
    this.#chars += text.length + FRAME_SEPARATOR.length;
    if (this.#texts.length === 1) this.#flushAfter(0);
    return true;
  }

  /**
   * Flushes once a round of microtasks adds no frame, because what a turn sends comes from promises of different depths.
   * `frames`: how many waited before the last round.
   */
  #flushAfter(frames: number): void {
    queueMicrotask(() => {
      const { length } = this.#texts;
      if (length > frames) this.#flushAfter(length);
      else this.flush();
    });
  }

  /** Sends the waiting frames at once. */
  flush(): void {
    if (this.#texts.length === 0) return;
    const message = this.#texts.join(FRAME_SEPARATOR);
    this.#texts = [];
    this.#chars = 0;
    this.#write(message);
  }
}
