/** Splits a WebSocket message into the texts of its frames. Does not parse them. */
import type { Buffer } from 'node:buffer';
import { FRAMES_PER_MESSAGE, FRAME_SEPARATOR } from '../protocol/frame.ts';

/** The byte between two frames of a message. In UTF-8 no other character contains this byte. */
const SEPARATOR = FRAME_SEPARATOR.charCodeAt(0);

/**
 * Returns the texts of the frames of a message, nearly always one. Each is a string of its own, so that no frame keeps
 * the whole message in memory. Frames beyond FRAMES_PER_MESSAGE stay in the last text, which is then not a valid frame.
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

/** Returns the length of a frame's first line, in characters. */
export function headerLength(text: string): number {
  const cut = text.indexOf('\n');
  return cut < 0 ? text.length : cut;
}
