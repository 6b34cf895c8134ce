/** Encodes text frames as WebSocket bytes (RFC 6455), many frames in one buffer. */
import { Buffer } from 'node:buffer';

/** RFC 6455, 5.2: the first byte of a final text frame. Frames of a server are not masked. */
const FINAL_TEXT = 0x81;
/**
 * The largest payload, in bytes, whose length fits in the second byte; up to MEDIUM two more bytes hold it, beyond that
 * eight.
 */
const SHORT = 125;
const MEDIUM = 0xffff;

/**
 * Encodes the texts as consecutive WebSocket messages in one buffer, so the frames of one turn cost one write and no
 * object per message. For connections without extensions. A lone surrogate becomes U+FFFD, as in any UTF-8.
 */
export function encodeTexts(texts: readonly string[]): Buffer {
  let total = 0;
  const lengths = texts.map((text) => {
    const length = Buffer.byteLength(text);
    total += length + (length <= SHORT ? 2 : length <= MEDIUM ? 4 : 10);
    return length;
  });
  const bytes = Buffer.allocUnsafe(total);
  let at = 0;
  texts.forEach((text, i) => {
    at = writeHead(bytes, at, lengths[i] ?? 0);
    at += bytes.write(text, at, 'utf8');
  });
  return bytes;
}

/** Returns the offset at which the payload begins. */
function writeHead(bytes: Buffer, start: number, length: number): number {
  bytes[start] = FINAL_TEXT;
  if (length <= SHORT) return bytes.writeUInt8(length, start + 1);
  if (length <= MEDIUM) {
    bytes[start + 1] = 126;
    return bytes.writeUInt16BE(length, start + 2);
  }
  bytes[start + 1] = 127;
  bytes.writeUInt32BE(0, start + 2);
  return bytes.writeUInt32BE(length, start + 6);
}
