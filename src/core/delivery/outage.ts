/** Logs the beginning and the end of an outage of the store, once each. */
import type { Deps } from '../deps.ts';
import { isStoreUnavailable } from '../errors.ts';

/** Wraps a repeated task: logs once that the store is unavailable and once that it is back. */
export interface Outage {
  /** Runs the task. Errors are logged, except further ones while the store is unavailable. Never rejects. */
  run(what: string, turn: () => Promise<void>): Promise<void>;
}

export function createOutage({ clock, log }: Pick<Deps, 'clock' | 'log'>): Outage {
  let since: number | null = null;
  let backAt = -Infinity;
  return {
    async run(what, turn) {
      const began = clock.now();
      try {
        await turn();
        // A run that began before the outage does not prove that the outage ended. Likewise, a failed run that began
        // during an outage does not prove a new one.
        if (since === null || began < since) return;
        log.info({ awayMs: clock.now() - since }, 'the store is back');
        since = null;
        backAt = clock.now();
      } catch (error) {
        if (!isStoreUnavailable(error)) return log.error({ err: error }, `${what} failed`);
        if (began < backAt) return;
        if (since === null) log.error({ err: error }, 'the store is unavailable');
        since ??= clock.now();
      }
    },
  };
}
