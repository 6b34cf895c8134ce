/** Writes the frames that the client libraries send to the relay. */
import { joinFrame } from '../../protocol/frame.ts';
import type { UpHeader } from '../../protocol/frames.ts';

/** Returns the text of a frame to the relay. `payload` must be JSON text. */
export function upFrame(header: UpHeader, payload: string | null = null): string {
  return joinFrame(header, payload);
}
