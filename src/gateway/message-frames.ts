/** Splits a message into its frames. It does not read them. */
import type { Buffer } from 'node:buffer';
import { FRAMES_PER_MESSAGE, FRAME_SEPARATOR } from '../protocol/frame.ts';

/** The separator is one byte in UTF-8, and no other character contains that byte. */
const SEPARATOR = FRAME_SEPARATOR.charCodeAt(0);

/**
 * The texts of the frames of a message, nearly always one. Each is a string of its own, so that no frame keeps the
 * whole message in memory. What exceeds FRAMES_PER_MESSAGE stays in the last text, which is then not a valid frame.
 */
export function framesIn(message: Buffer): readonly string[] {
  const texts: string[] = [];
  let from = 0;
  for (let end = message.indexOf(SEPARATOR); end >= 0 && texts.length < FRAMES_PER_MESSAGE - 1;) {
    texts.push(message.toString('utf8', from, end));
    from = end + 1;
    end = message.indexOf(SEPARATOR, from);
  }
  texts.push(from === 0 ? message.toString() : message.toString('utf8', from));
  return texts;
}

/** The length of a frame's first line. */
export function headerLength(text: string): number {
  const cut = text.indexOf('\n');
  return cut < 0 ? text.length : cut;
}
