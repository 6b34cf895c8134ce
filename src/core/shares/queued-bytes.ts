/** Estimates how many bytes the params of a command count in the share `queued_bytes`. */
import type { JsonText } from '../json.ts';
import { INLINE_PAYLOAD_BYTES } from '../limits.ts';

/** The maximum number of UTF-8 bytes for one UTF-16 code unit. */
const UNIT_BYTES = 3;

/** Returns the most bytes that a text of this length can have as UTF-8. This is cheaper than counting the bytes. */
export function paramsBytesAtMost(params: JsonText): number {
  return params.length * UNIT_BYTES;
}

/**
 * Whether the params are so small that they are never refused if the command can be dispatched at once: its client is
 * connected and has no queue.
 */
export function paramsAreSmall(params: JsonText | null): boolean {
  return params === null || paramsBytesAtMost(params) <= INLINE_PAYLOAD_BYTES;
}
