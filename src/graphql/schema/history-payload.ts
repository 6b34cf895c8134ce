/** Loads payloads of messages for one request, within the bytes that one answer may fetch. */
import DataLoader from 'dataloader';
import type { Principal } from '../../core/auth/principal.ts';
import type { Core } from '../../core/core.ts';
import { streamKey, type Message, type ShownPayload } from '../../core/history/message.ts';
import { ANSWER_SPILL_BYTES } from '../../core/limits.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';

export type Payloads = { readonly load: (message: Message) => MaybePromise<ShownPayload>; readonly forget: () => void };

const NOT_SHOWN: ShownPayload = { state: 'redacted', text: null };

/**
 * Loads payloads for one request; each is looked up once, however many fields read it. Large payloads are fetched up to
 * ANSWER_SPILL_BYTES per request. Large payloads beyond that stay redacted, because otherwise one page could fill the
 * relay's memory.
 */
export function createPayloads(core: Core, requester: Principal | null): Payloads {
  const read = async (messages: readonly Message[]): Promise<readonly ShownPayload[]> =>
    core.history.payloads(requester, messages);
  const loader = new DataLoader<Message, ShownPayload, string>(read, { cacheKeyFn: keyOf });
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
      loader.clearAll();
      decided.clear();
      left = ANSWER_SPILL_BYTES;
    },
  };
}

function keyOf({ userId, suffix, seq }: Message): string {
  return `${streamKey(userId, suffix)}/${seq}`;
}
