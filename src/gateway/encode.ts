import { Buffer } from 'node:buffer';

/** RFC 6455, 5.2: a final frame of text, as a server sends it (unmasked). */
const FINAL_TEXT = 0x81;
/** The longest payload whose length stands in the second byte; beyond, two bytes follow it, or eight. */
const SHORT = 125;
const MEDIUM = 0xffff;

/**
 * The texts as WebSocket messages, one after another in one buffer: what is said in one turn costs one write, and no object a message.
 * For a connection without extensions. A lone surrogate becomes U+FFFD, as in any UTF-8.
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

/** Where the payload begins. */
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
