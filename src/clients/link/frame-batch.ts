/** Sends the frames of one turn of the event loop in as few messages as the relay allows. It knows no sockets. */
import { FRAME_SEPARATOR } from '../../protocol/frame.ts';
import type { Welcome } from './status.ts';

/** The most bytes that one UTF-16 code unit takes in UTF-8. */
const UNIT_BYTES = 3;

/**
 * Joins frames into messages. Before `allow` is called, each frame is sent alone and immediately. If the relay
 * accepts only one frame in a message, this stays so.
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

  /** The total length of the frames that are not sent yet, in UTF-16 code units. */
  get chars(): number {
    return this.#chars;
  }

  /** Sets the limits of a message from the relay's `welcome`. */
  allow({ frames_per_message: frames = 1, max_frame_bytes: bytes }: Welcome): void {
    this.#mostFrames = frames;
    this.#mostChars = Math.floor(bytes / UNIT_BYTES);
  }

  /**
   * Sends a frame, or keeps it for the next message. Returns false when it cannot be sent. Frames are sent in the order
   * of the calls.
   */
  send(text: string): boolean {
    if (this.#mostFrames <= 1) return this.#write(text);
    if (this.#texts.length >= this.#mostFrames || this.#chars + text.length >= this.#mostChars) this.flush();
    this.#texts.push(text);
    this.#chars += text.length + FRAME_SEPARATOR.length;
    if (this.#texts.length === 1) this.#flushAfter(0);
    return true;
  }

  /**
   * Sends the waiting frames after the first round of microtasks that adds no frame. One round is not enough, because
   * the frames of one turn come from chains of promises of different lengths. `frames`: how many frames waited before
   * the last round.
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
