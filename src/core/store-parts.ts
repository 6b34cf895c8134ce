/** Runs an act in each part of the store that has commands of a user, and again in parts that do not answer. */
import type { Backend } from './backend.ts';
import type { Deps } from './deps.ts';
import { isStoreUnavailable } from './errors.ts';

/** How long an answer waits for each part of the store, in milliseconds. A takeover takes less. */
const PART_MS = 10_000;
/** How soon a part that did not answer is tried again, in milliseconds. */
const AGAIN_MS = 1_000;

/**
 * Whether an act reached all parts of the store. `partial`: some parts have not answered; the relay goes on trying.
 * `silent`: what did not answer, by the ids of nodes, or as `partition <n>`.
 */
export type ReachedParts = { readonly partial: boolean; readonly silent: readonly string[] };

export type PartsDeps = Pick<Deps, 'clock' | 'log' | 'closed'> & { readonly backend: Pick<Backend, 'pauses'> };

export type PartsAct = {
  /** The user whose commands the act concerns; null: all users. */
  readonly userId: string | null;
  /** Whether there is no use any more in trying again. */
  readonly isOver: () => boolean;
  /** Runs in one part. It may run twice at the same time, so it must be idempotent. */
  readonly act: (part: number) => Promise<void>;
  /** What the log says of an error in the background. */
  readonly failure: string;
  /**
   * The parts that did not answer earlier acts. This one does not wait for them, and adds those that do not answer it.
   * Absent: it waits for all.
   */
  readonly missing?: Set<number>;
};

/**
 * Runs an act in the parts. Resolves when each has answered or is late. Parts that are late, or unavailable, are tried
 * again in the background until they answer, the act is over or core is closed. Rejects if the act fails for another
 * reason.
 */
export async function inEachPart(
  deps: PartsDeps,
  { userId, isOver, act, failure, missing = new Set() }: PartsAct,
): Promise<ReachedParts> {
  const { pauses } = deps.backend;
  const tryOnce = async (part: number): Promise<boolean> => {
    const running = act(part).then(
      () => true,
      (error: unknown) => {
        if (isStoreUnavailable(error)) return false;
        throw error;
      },
    );
    const { promise: late, resolve } = Promise.withResolvers<false>();
    const cancel = deps.clock.after(PART_MS, () => resolve(false));
    return Promise.race([running, late]).finally(cancel);
  };
  const again = (part: number): void => {
    deps.clock.after(AGAIN_MS, () => {
      if (deps.closed.aborted || isOver()) return;
      tryOnce(part)
        .then((isDone) => void (isDone || again(part)))
        .catch((error: unknown) => deps.log.warn({ err: error, part }, failure));
    });
  };
  const parts = pauses.parts(userId);
  const tried = parts.filter((part) => !missing.has(part));
  const done = await Promise.all(tried.map(tryOnce));
  for (const [i, part] of tried.entries()) if (!done[i]) missing.add(part);
  const late = parts.filter((part) => missing.has(part));
  for (const part of late) again(part);
  const silent = late.map((part) => pauses.deciderOf(part) ?? `partition ${part}`);
  return { partial: late.length > 0, silent: [...new Set(silent)] };
}
