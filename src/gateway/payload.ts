import { trustJson, type JsonText } from '../core/json.ts';
import { checkedJson, isShallow } from './json.ts';

/** The frame's payload is not JSON: the frame was not understood, which counts against its sender. */
export class BadPayload extends Error {
  constructor() {
    super('payload: not JSON, or nested too deeply');
  }
}

/** A payload to the letter, and what it says. */
export type ReadPayload = { readonly text: JsonText; readonly value: unknown };

/** As payloadOf, for who needs the value too: it is parsed once. Throws BadPayload. */
export function readPayload({ payload }: { readonly payload: string | null }): ReadPayload | null {
  if (payload === null) return null;
  let value: unknown;
  try {
    value = JSON.parse(payload);
  } catch {
    throw new BadPayload();
  }
  if (!isShallow(payload)) throw new BadPayload();
  return { text: trustJson(payload), value };
}

/** The payload to the letter, once it is known to be JSON. Throws BadPayload. */
export function payloadOf({ payload }: { readonly payload: string | null }): JsonText | null {
  if (payload === null) return null;
  const json = checkedJson(payload);
  if (json === null) throw new BadPayload();
  return json;
}
