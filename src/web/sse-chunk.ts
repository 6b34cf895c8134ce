/** Holds text of event streams, and encodes its bytes once for all streams that it is written to. */

/** The text before and after a result in its SSE frame. */
export type Envelope = { readonly head: string; readonly tail: string };

/**
 * Text that is written to one or many streams. Its bytes are encoded at most once for each way of writing them, when
 * first needed.
 */
export class Chunk {
  readonly #text: string;
  #plain: Buffer | null = null;
  #framed: Buffer | null = null;

  /** The text has at least one character: an empty chunk would end the body. */
  constructor(text: string) {
    this.#text = text;
  }

  get plain(): Buffer {
    return (this.#plain ??= Buffer.from(this.#text));
  }

  /** The bytes as one chunk of HTTP/1.1 chunked encoding. */
  get framed(): Buffer {
    return (this.#framed ??= frame(this.#text));
  }
}

function frame(text: string): Buffer {
  return Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
}
