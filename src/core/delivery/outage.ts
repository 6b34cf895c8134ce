import type { Deps } from '../deps.ts';
import { isAway } from '../errors.ts';

/** What runs again and again, and says once that the store is away and once that it is back. */
export interface Outage {
  /** Runs it. What goes wrong is logged, and nothing is while the store is still away. Never rejects. */
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
        // One that began before the outage proves nothing of its end, nor one that began in it of another.
        if (since === null || began < since) return;
        log.info({ awayMs: clock.now() - since }, 'the store is back');
        since = null;
        backAt = clock.now();
      } catch (error) {
        if (!isAway(error)) return log.error({ err: error }, `${what} failed`);
        if (began < backAt) return;
        if (since === null) log.error({ err: error }, 'the store is away: what it must be told or asked waits');
        since ??= clock.now();
      }
    },
  };
}
