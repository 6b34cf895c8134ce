/** Estimates the bytes that the params of a command take from the share `queued_bytes`. */
import type { JsonText } from '../json.ts';
import { INLINE_PAYLOAD_BYTES } from '../limits.ts';

/** The most UTF-8 bytes of one UTF-16 code unit. */
const UNIT_BYTES = 3;

/** Returns the most UTF-8 bytes that a text of this length can have. This is cheaper than counting them. */
export function paramsBytesAtMost(params: JsonText): number {
  return params.length * UNIT_BYTES;
}

/**
 * Whether the params are so small that they are never refused for a command that can be dispatched at once, because its
 * client is connected and no command waits for it.
 */
export function paramsAreSmall(params: JsonText | null): boolean {
  return params === null || paramsBytesAtMost(params) <= INLINE_PAYLOAD_BYTES;
}
