/** Finds the ends of HTTP/1.1 responses in the bytes of one connection. */

/** The bytes that end the head of a response, and those that end a chunked body. */
const END = Buffer.from('\r\n\r\n');
const LAST_CHUNK = Buffer.from('0\r\n\r\n');

/** Reads the first `length` bytes of `buffer`, which the caller may overwrite afterwards. */
type AnswerReader = (buffer: Uint8Array, length: number) => void;

/**
 * Returns a reader that calls `onAnswer` at the end of each response, with its status and the bytes of its body
 * (chunked encoding included).
 */
export function createAnswerReader(onAnswer: (bytes: number, status: number) => void): AnswerReader {
  /** The received part of a head; null while a body is being read. */
  let head: Buffer | null = Buffer.alloc(0);
  let left = 0;
  let size = 0;
  let status = 0;
  /** The last received bytes of a chunked body; null if the length of the body is known. */
  let tail: Buffer | null = null;
  const ended = (): void => {
    head = Buffer.alloc(0);
    tail = null;
    onAnswer(size, status);
  };
  const body = (bytes: Buffer): void => {
    if (tail) {
      size += bytes.length;
      tail = Buffer.concat([tail, bytes.subarray(-5)]).subarray(-5);
      if (tail.equals(LAST_CHUNK)) ended();
      return;
    }
    const taken = Math.min(left, bytes.length);
    left -= taken;
    if (left > 0) return;
    ended();
    if (taken < bytes.length) read(bytes.subarray(taken));
  };
  const read = (bytes: Buffer): void => {
    if (!head) return body(bytes);
    const all = head.length === 0 ? bytes : Buffer.concat([head, bytes]);
    const at = all.indexOf(END);
    if (at < 0) {
      // Copied, because the caller will overwrite the buffer.
      head = Buffer.from(all);
      return;
    }
    const text = all.toString('latin1', 0, at);
    status = Number(text.slice(9, 12));
    const length = /content-length: *(\d+)/i.exec(text);
    head = null;
    size = left = Number(length?.[1] ?? 0);
    tail = length || !/transfer-encoding: *chunked/i.test(text) ? null : Buffer.alloc(0);
    body(all.subarray(at + 4));
  };
  return (buffer, length) => read(Buffer.from(buffer.buffer, buffer.byteOffset, length));
}
