import type { JsonText } from '../core/json.ts';
import { checkedJson } from './json.ts';

/** The frame's payload is not JSON: the frame was not understood, which counts against its sender. */
export class BadPayload extends Error {
  constructor() {
    super('payload: not JSON, or nested too deeply');
  }
}

/** The payload to the letter, once it is known to be JSON. Throws BadPayload. */
export function payloadOf({ payload }: { readonly payload: string | null }): JsonText | null {
  if (payload === null) return null;
  const json = checkedJson(payload);
  if (json === null) throw new BadPayload();
  return json;
}
