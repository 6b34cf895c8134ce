/** Loads payloads of messages for one request, within the number of bytes that one answer may fetch. */
import { streamKey, type Message, type ShownPayload } from '../../core/history/message.ts';
import { ANSWER_SPILL_BYTES } from '../../core/limits.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { Context } from './context.ts';
import { loadInBatches, loaderOf, type Load } from './loaders.ts';

const payloadsOf = loaderOf(createPayloads);

/** Loads the payload of a message. The resolver must have decided that the requester may see it. */
export function loadPayload(context: Context, message: Message): MaybePromise<ShownPayload> {
  return payloadsOf(context).load(message);
}

const NOT_SHOWN: ShownPayload = { state: 'redacted', text: null };

/**
 * Creates the loader of payloads for one request. Each payload is looked up once, however many fields read it. Large
 * payloads are fetched up to ANSWER_SPILL_BYTES per request, and all further ones stay redacted: otherwise one page
 * could fill the relay's memory.
 */
function createPayloads({ core, requester }: Context): Load<Message, ShownPayload> {
  const loader = loadInBatches(keyOf, (messages: readonly Message[]) => core.history.payloads(requester, messages));
  const decided = new Set<string>();
  let left = ANSWER_SPILL_BYTES;
  const mayFetch = (key: string, bytes: number): boolean => {
    if (decided.has(key)) return true;
    if (bytes > left) return false;
    left -= bytes;
    decided.add(key);
    return true;
  };
  return {
    load(message) {
      const { payload, spill } = message;
      if (spill === null) return { state: payload === null ? 'none' : 'included', text: payload };
      return mayFetch(keyOf(message), spill.bytes) ? loader.load(message) : NOT_SHOWN;
    },
    forget() {
      loader.forget();
      decided.clear();
      left = ANSWER_SPILL_BYTES;
    },
  };
}

function keyOf({ userId, suffix, seq }: Message): string {
  return `${streamKey(userId, suffix)}/${seq}`;
}
