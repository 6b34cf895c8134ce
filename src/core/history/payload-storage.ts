/**
 * Stores large payloads in the spill store before the act that refers to them, and removes them again if the act fails.
 */
import type { Deps } from '../deps.ts';
import { CallboardError } from '../errors.ts';
import { utf8Length, type JsonText, longerThan } from '../json.ts';
import { INLINE_PAYLOAD_BYTES } from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import { NO_PAYLOAD, type StoredPayload } from './message.ts';

/** Whether a payload is so large that it is stored in the spill store. */
export function isLarge(text: JsonText): boolean {
  return longerThan(text, INLINE_PAYLOAD_BYTES);
}

/**
 * Prepares payloads for history. A small payload is stored in its message. A large one is written to the spill store
 * before the act that refers to it.
 */
export type PayloadStorage = ReturnType<typeof createPayloadStorage>;

export function createPayloadStorage(deps: Pick<Deps, 'spill' | 'clock' | 'crypto' | 'log' | 'metrics' | 'backend'>) {
  const { spill, clock, crypto, metrics, log } = deps;
  // A spilled payload expires at the same time as its message.
  const { retentionMs } = deps.backend.history;
  const put = async (text: JsonText, userId: string): Promise<StoredPayload> => {
    try {
      const ref = await spill.put(text, clock.now() + retentionMs, userId);
      metrics.count('payloads_spilled');
      return { payload: null, spill: ref };
    } catch (error) {
      metrics.count('payloads_unstored');
      throw error instanceof CallboardError ? error : storeFailed(error);
    }
  };
  const keep = (text: JsonText | null, userId: string): MaybePromise<StoredPayload> =>
    text !== null && isLarge(text) ? put(text, userId) : inline(text);
  const note = (text: JsonText | null): StoredPayload => {
    if (text === null || !isLarge(text)) return inline(text);
    const sha256 = crypto.sha256(text);
    return {
      payload: null,
      spill: { name: null, bytes: utf8Length(text), sha256, expiresAt: clock.now() + retentionMs },
    };
  };
  return {
    /**
     * Prepares a payload for history: in the same tick if it is small. Throws `share_exceeded` or `store_full` (share
     * `spilled_bytes`).
     */
    keep,
    /** Keeps a small payload, and only the size and the digest of a large one. Writes nothing to the spill store. */
    note,
    /**
     * Returns the error that `keep` would throw now; null if it would throw none; `unknown` if the store cannot tell
     * without writing. Writes nothing.
     */
    preview(text: JsonText | null, userId: string): MaybePromise<CallboardError | 'unknown' | null> {
      if (text === null || !isLarge(text)) return null;
      return spill.preview ? spill.preview(utf8Length(text), userId) : 'unknown';
    },
    /**
     * Prepares a payload like `keep`, for an event that has already happened and must be recorded. If the payload
     * cannot be stored, keeps only its size and digest. Never throws.
     */
    keepAnyway(text: JsonText | null, userId: string): MaybePromise<StoredPayload> {
      const kept = keep(text, userId);
      if (!(kept instanceof Promise)) return kept;
      return kept.catch((error: unknown) => {
        log.warn({ err: error }, 'a payload could not be stored: only its size and digest are kept');
        return note(text);
      });
    },
    /** Removes the spilled object of a payload whose message was not written. Never throws. */
    discard({ spill: ref }: StoredPayload): void {
      if (!ref || ref.name === null || !spill.managed) return;
      const failed = (error: unknown): void =>
        log.warn({ err: error }, 'could not remove a stored payload that no message refers to');
      try {
        const done = spill.discard({ ...ref, name: ref.name });
        if (done instanceof Promise) done.catch(failed);
      } catch (error) {
        failed(error);
      }
    },
  };
}

function inline(text: JsonText | null): StoredPayload {
  return text === null ? NO_PAYLOAD : { payload: text, spill: null };
}

/** Converts an error of the spill store. A store of the operator may throw any error. */
function storeFailed(cause: unknown): CallboardError {
  return new CallboardError('store_full', 'The payload could not be stored.', { cause, share: 'spilled_bytes' });
}
