/** Checks the rights of the Redis user while the relay runs, because an operator can take them away. */
import { CallboardError } from '../../core/errors.ts';
import type { Clock, Log } from '../../core/ports.ts';
import type { RightsOptions } from './rights-commands.ts';
import { isRefusal, missingRights } from './rights.ts';

/** After a refusal, further refusals within this time cause no other check, in milliseconds. */
const CHECK_MS = 1_000;

/** Watches the rights of the Redis user. */
type RightsWatch = {
  /** Throws `store_unavailable`: with `reason` if a right is missing now, without `reason` if Redis does not answer. */
  check(): Promise<void>;
  /**
   * Checks the rights if this error is a refusal, and logs the missing rights if they have changed. Call it with every
   * error of Redis.
   */
  noticed(error: unknown): void;
};

export function watchRights(options: RightsOptions & { readonly system: Clock; readonly log: Log }): RightsWatch {
  const { system, log } = options;
  let missing = '';
  let checkedAt = -Infinity;
  const check = async (): Promise<void> => {
    const found = (await missingRights(options)).join(' ');
    if (found !== missing) {
      if (found === '') log.info({}, 'the Redis user has all its rights again');
      else log.warn({ missing: found }, 'the Redis user lacks rights');
    }
    missing = found;
    if (found !== '')
      throw new CallboardError('store_unavailable', 'The store refuses the relay.', {
        reason: found,
        retryAfterMs: CHECK_MS,
      });
  };
  return {
    check,
    noticed(error) {
      if (!(error instanceof Error) || !isRefusal(error.message)) return;
      if (system.monotonic() - checkedAt < CHECK_MS) return;
      checkedAt = system.monotonic();
      // `check` logs the missing rights. If Redis does not answer, the connection logs that.
      check().catch(() => {});
    },
  };
}
