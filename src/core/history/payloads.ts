/** Reads the payloads of messages, and stores large payloads in the spill store. */
import type { Principal } from '../auth/principal.ts';
import type { Deps } from '../deps.ts';
import { CallboardError } from '../errors.ts';
import { longerThan, utf8Length, type JsonText } from '../json.ts';
import { INLINE_PAYLOAD_BYTES } from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import { holderOf } from '../shares/shares.ts';
import { NO_PAYLOAD, type Message, type ShownPayload, type SpillRead, type StoredPayload } from './message.ts';

/**
 * How many payloads one answer reads at the same time, and how many bytes those in the spill store may have together. A
 * single object may have more bytes.
 */
const AT_ONCE = { objects: 16, bytes: 1024 * 1024 } as const;

const SHOWN: Readonly<Record<SpillRead['state'], ShownPayload['state']>> = {
  present: 'spilled_included',
  expired: 'expired',
  unavailable: 'unavailable',
};

/**
 * Returns one payload per message, in the order given. A large payload is read from the spill store, and is `expired`
 * once its time is over. Between groups of reads the loop does other work. All reads of one answer take one turn of
 * `ReadTurns` together. If each read took a turn, an answer would hold its first payloads in memory until the last
 * turn.
 */
export async function readPayloads(
  deps: Deps,
  requester: Principal | null,
  messages: readonly Message[],
): Promise<readonly ShownPayload[]> {
  return deps.readTurns.run(holderOf(requester), async () => {
    const shown: ShownPayload[] = [];
    for (const group of groupsOf(messages)) {
      // The text of each object is compared with its digest, which takes a millisecond for each mebibyte.
      if (shown.length > 0) await new Promise<void>((resolve) => deps.loop.afterOthers(resolve));
      shown.push(...(await Promise.all(group.map((message) => readOne(deps, message)))));
    }
    return shown;
  });
}

function* groupsOf(messages: readonly Message[]): Generator<readonly Message[]> {
  let group: Message[] = [];
  let bytes = 0;
  for (const message of messages) {
    const more = message.spill?.bytes ?? 0;
    if (group.length === AT_ONCE.objects || (group.length > 0 && bytes + more > AT_ONCE.bytes)) {
      yield group;
      group = [];
      bytes = 0;
    }
    group.push(message);
    bytes += more;
  }
  if (group.length > 0) yield group;
}

async function readOne(deps: Deps, { payload, spill }: Message): Promise<ShownPayload> {
  if (payload !== null) return { state: 'included', text: payload };
  if (spill === null) return { state: 'none', text: null };
  if (deps.clock.now() >= spill.expiresAt) return { state: 'expired', text: null };
  if (spill.name === null) return { state: 'unavailable', text: null };
  const read = await readSafely(deps, { ...spill, name: spill.name });
  return { state: SHOWN[read.state], text: read.state === 'present' ? read.text : null };
}

/**
 * Reads an object; `unavailable` if the store fails. An operator's own store may throw, or return another text than the
 * stored one.
 */
async function readSafely({ spill, log, crypto }: Deps, ref: Parameters<typeof spill.read>[0]): Promise<SpillRead> {
  try {
    const read = await spill.read(ref);
    // A managed store has already checked the digest.
    const whole = read.state !== 'present' || spill.managed || crypto.sha256(read.text) === ref.sha256;
    if (whole) return read;
  } catch (error) {
    log.warn({ err: error }, 'a stored payload could not be read');
  }
  return { state: 'unavailable' };
}

// Stores large payloads in the spill store before the act that refers to them, and discards them if that act fails.

/** Whether a payload is kept in the spill store. */
export function isLarge(text: JsonText): boolean {
  return longerThan(text, INLINE_PAYLOAD_BYTES);
}

/**
 * Prepares payloads for history. A small payload stays in the message; a large one is written to the spill store before
 * the act that refers to it.
 */
export type PayloadStorage = ReturnType<typeof createPayloadStorage>;

export function createPayloadStorage(deps: Pick<Deps, 'spill' | 'clock' | 'crypto' | 'log' | 'metrics' | 'backend'>) {
  const { spill, clock, crypto, metrics, log } = deps;
  // The stored object of a payload expires at the same time as its message.
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
     * Prepares a payload for history, in the same tick if it is small. Throws `share_exceeded` or `store_full` (share
     * `spilled_bytes`).
     */
    keep,
    /** Keeps a small payload whole, and only size and digest of a large one. Writes nothing to the spill store. */
    note,
    /**
     * Returns the error that `keep` would throw now; null if it would throw none. `unknown`: the store cannot tell
     * without writing. Writes nothing.
     */
    preview(text: JsonText | null, userId: string): MaybePromise<CallboardError | 'unknown' | null> {
      if (text === null || !isLarge(text)) return null;
      return spill.preview ? spill.preview(utf8Length(text), userId) : 'unknown';
    },
    /**
     * Does the same as `keep`, for an event that has happened already and must be recorded: if storing fails, only size
     * and digest are kept. Never throws.
     */
    keepAnyway(text: JsonText | null, userId: string): MaybePromise<StoredPayload> {
      const kept = keep(text, userId);
      if (!(kept instanceof Promise)) return kept;
      return kept.catch((error: unknown) => {
        log.warn({ err: error }, 'a payload could not be stored: only its size and digest are kept');
        return note(text);
      });
    },
    /** Removes the stored object of a payload whose message was not retained. Never throws. */
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

/** Converts the error of a spill store; an operator's own store may throw any error. */
function storeFailed(cause: unknown): CallboardError {
  return new CallboardError('store_full', 'The payload could not be stored.', { cause, share: 'spilled_bytes' });
}
