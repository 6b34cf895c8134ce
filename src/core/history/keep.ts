import type { Clock } from '../clock.ts';
import type { Crypto } from '../crypto.ts';
import { CallboardError } from '../errors.ts';
import { longerThan, utf8Length, type JsonText } from '../json.ts';
import { INLINE_PAYLOAD_BYTES } from '../limits.ts';
import type { Log } from '../log.ts';
import type { Maybe } from '../maybe.ts';
import type { Metrics } from '../metrics.ts';
import { NO_PAYLOAD, type KeptPayload, type PayloadRef } from './message.ts';
import type { SpillStore } from './spill.ts';

export type KeeperParts = {
  readonly spill: SpillStore;
  readonly clock: Clock;
  readonly crypto: Pick<Crypto, 'sha256'>;
  readonly log: Log;
  readonly metrics: Metrics;
  /** How long history keeps a message: an object expires as its message does. */
  readonly retentionMs: number;
};

/** Payloads on their way into history: small ones stay in the message, larger ones go to the spill store before the act that refers to them. */
export interface Keeper {
  /** In the same tick where the payload is small. Throws `share_exceeded` or `store_full`, of the share `spilled_bytes`. */
  keep(text: JsonText | null, userId: string): Maybe<KeptPayload>;
  /** As `keep`, for what has happened already and must be recorded: where there is no room, size and digest are kept alone. */
  keepAnyway(text: JsonText | null, userId: string): Maybe<KeptPayload>;
  /** Size and digest of a large payload; a small one whole. Writes nothing. */
  note(text: JsonText | null): KeptPayload;
  /** No message came of it: its object goes. Never throws. */
  discard(kept: KeptPayload): void;
}

/** Whether a payload goes to the spill store. */
export function isLarge(text: JsonText): boolean {
  return longerThan(text, INLINE_PAYLOAD_BYTES);
}

export function createKeeper(parts: KeeperParts): Keeper {
  const { spill, clock, metrics, log, retentionMs } = parts;
  const put = async (text: JsonText, userId: string): Promise<KeptPayload> => {
    const ref = await spill.put(text, clock.now() + retentionMs, userId).catch((error: unknown) => {
      metrics.count('payloads_unstored');
      throw error instanceof CallboardError ? error : storeFailed(error);
    });
    metrics.count('payloads_spilled');
    return { payload: null, spill: ref };
  };
  const keep = (text: JsonText | null, userId: string): Maybe<KeptPayload> =>
    text !== null && isLarge(text) ? put(text, userId) : inline(text);
  const note = (text: JsonText | null): KeptPayload =>
    text !== null && isLarge(text) ? { payload: null, spill: unstored(parts, text) } : inline(text);
  return {
    keep,
    note,
    keepAnyway(text, userId) {
      const kept = keep(text, userId);
      if (!(kept instanceof Promise)) return kept;
      return kept.catch((error: unknown) => {
        log.warn({ err: error }, 'a payload was not stored');
        return note(text);
      });
    },
    discard({ spill: ref }) {
      if (!ref || ref.name === null || !spill.managed) return;
      const failed = (error: unknown): void => log.warn({ err: error }, 'a payload that nothing refers to was left');
      try {
        const done = spill.discard({ ...ref, name: ref.name });
        if (done instanceof Promise) done.catch(failed);
      } catch (error) {
        failed(error);
      }
    },
  };
}

function inline(text: JsonText | null): KeptPayload {
  return text === null ? NO_PAYLOAD : { payload: text, spill: null };
}

function unstored({ clock, crypto, retentionMs }: KeeperParts, text: JsonText): PayloadRef {
  return { name: null, bytes: utf8Length(text), sha256: crypto.sha256(text), expiresAt: clock.now() + retentionMs };
}

/** A store of somebody's own may throw anything. */
function storeFailed(cause: unknown): CallboardError {
  return new CallboardError('store_full', 'The payload could not be stored.', { cause, share: 'spilled_bytes' });
}
