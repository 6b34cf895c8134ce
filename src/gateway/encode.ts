/** Encodes text frames as WebSocket messages (RFC 6455), many of them in one buffer. */
import { Buffer } from 'node:buffer';

/** The first byte of a final text frame (RFC 6455, 5.2). Frames of a server are not masked. */
const FINAL_TEXT = 0x81;
/**
 * The greatest payload length, in bytes, that fits in the second byte of a message. A length up to MEDIUM takes two
 * more bytes, and a greater length takes eight.
 */
const SHORT = 125;
const MEDIUM = 0xffff;
const NEWLINE = 0x0a;
/**
 * The number of spare bytes behind the frames. A text that is not ASCII takes more bytes than it has characters. With
 * the spare bytes, `write` reports more bytes than characters for such a text, even if its end is cut off.
 */
const SLACK = 4;

/** The two parts of each frame, one after another: its header line, and its payload or null. */
export type FrameParts = readonly (string | null)[];

/**
 * Encodes frames as consecutive WebSocket messages in one buffer. So all frames of one turn of the event loop take one
 * write, without an object for each message and without joining header and payload first. Only for connections without
 * extensions. A lone surrogate becomes U+FFFD, as in any UTF-8.
 */
export function encodeFrames(parts: FrameParts): Buffer {
  return encodeAscii(parts) ?? encodeAny(parts);
}

/**
 * Encodes frames of ASCII text, whose lengths in bytes and characters are equal; null if there are other characters.
 */
function encodeAscii(parts: FrameParts): Buffer | null {
  let total = 0;
  for (let i = 0; i < parts.length; i += 2) {
    const length = lengthOf(parts[i] ?? '', parts[i + 1] ?? null, charsOf);
    total += headLength(length) + length;
  }
  const bytes = Buffer.allocUnsafe(total + SLACK);
  let at = 0;
  for (let i = 0; i < parts.length; i += 2) {
    const header = parts[i] ?? '';
    const payload = parts[i + 1] ?? null;
    at = writeHead(bytes, at, lengthOf(header, payload, charsOf));
    if (bytes.write(header, at, 'utf8') !== header.length) return null;
    at += header.length;
    if (payload === null) continue;
    bytes[at++] = NEWLINE;
    if (bytes.write(payload, at, 'utf8') !== payload.length) return null;
    at += payload.length;
  }
  return bytes.subarray(0, total);
}

function encodeAny(parts: FrameParts): Buffer {
  const lengths: number[] = [];
  let total = 0;
  for (let i = 0; i < parts.length; i += 2) {
    const length = lengthOf(parts[i] ?? '', parts[i + 1] ?? null, bytesOf);
    lengths.push(length);
    total += headLength(length) + length;
  }
  const bytes = Buffer.allocUnsafe(total);
  let at = 0;
  for (let i = 0; i < parts.length; i += 2) {
    const payload = parts[i + 1] ?? null;
    at = writeHead(bytes, at, lengths[i >> 1] ?? 0);
    at += bytes.write(parts[i] ?? '', at, 'utf8');
    if (payload === null) continue;
    bytes[at++] = NEWLINE;
    at += bytes.write(payload, at, 'utf8');
  }
  return bytes;
}

function lengthOf(header: string, payload: string | null, measure: (text: string) => number): number {
  return measure(header) + (payload === null ? 0 : 1 + measure(payload));
}

function charsOf(text: string): number {
  return text.length;
}

function bytesOf(text: string): number {
  return Buffer.byteLength(text);
}

function headLength(length: number): number {
  return length <= SHORT ? 2 : length <= MEDIUM ? 4 : 10;
}

/** Writes the head of a message. Returns the offset at which its payload begins. */
function writeHead(bytes: Buffer, start: number, length: number): number {
  bytes[start] = FINAL_TEXT;
  if (length <= SHORT) bytes[start + 1] = length;
  else if (length <= MEDIUM) {
    bytes[start + 1] = 126;
    bytes[start + 2] = length >> 8;
    bytes[start + 3] = length & 0xff;
  } else {
    bytes[start + 1] = 127;
    bytes.writeUInt32BE(0, start + 2);
    bytes.writeUInt32BE(length, start + 6);
  }
  return start + headLength(length);
}
