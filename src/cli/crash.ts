/** Ends a relay after an uncaught error, because the state of the relay is then unknown. */
import type { Callboard } from '../callboard.ts';
import type { Log } from '../core/ports.ts';
import type { Io } from './io.ts';

/**
 * From now on, an uncaught error is logged with its cause. Then the relay that was passed to `ends`, if any, is
 * aborted, and the process exits with the code CRASHED.
 */
export function endOnCrash(io: Pick<Io, 'onCrash'>, log: Log): { ends(callboard: Pick<Callboard, 'abort'>): void } {
  let relay: Pick<Callboard, 'abort'> | null = null;
  io.onCrash?.(async (error) => {
    log.error({ err: error }, 'an error that nothing caught: the relay ends');
    await relay?.abort();
  });
  return {
    ends(callboard) {
      relay = callboard;
    },
  };
}
