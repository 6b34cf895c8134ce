/** Loads payloads of messages for one request, within the bytes that one answer may fetch. */
import { streamKey, type Message, type ShownPayload } from '../../core/history/message.ts';
import { ANSWER_SPILL_BYTES } from '../../core/limits.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { Context } from './context.ts';
import { loadInBatches, loaderOf, type Load } from './loaders.ts';

const payloadsOf = loaderOf(createPayloads);

/** Loads the payload of a message. The resolver decides whether the requester asked for it. */
export function loadPayload(context: Context, message: Message): MaybePromise<ShownPayload> {
  return payloadsOf(context).load(message);
}

const NOT_SHOWN: ShownPayload = { state: 'redacted', text: null };

/**
 * Loads payloads for one request; each is looked up once, however many fields read it. Large payloads are fetched up to
 * ANSWER_SPILL_BYTES per request. Large payloads beyond that stay redacted, because otherwise one page could fill the
 * relay's memory.
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
