/** How large the params of a command are for the share `queued_bytes`. */
import type { JsonText } from '../json.ts';
import { INLINE_PAYLOAD_BYTES } from '../limits.ts';

/** The maximum number of UTF-8 bytes for one UTF-16 code unit. */
const UNIT_BYTES = 3;

/** No text of this length has more UTF-8 bytes. Cheaper than counting them. */
export function paramsBytesAtMost(params: JsonText): number {
  return params.length * UNIT_BYTES;
}

/**
 * Whether these params are never refused for a connected client without a queue, because they are about to be
 * dispatched.
 */
export function paramsAreSmall(params: JsonText | null): boolean {
  return params === null || paramsBytesAtMost(params) <= INLINE_PAYLOAD_BYTES;
}
