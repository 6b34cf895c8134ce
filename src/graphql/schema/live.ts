/** Makes each event of a subscription read its nested fields again. */
import type { LiveEvent } from '../../core/live.ts';
import type { Context } from './context.ts';

/**
 * Resolves one event of a subscription after clearing the loaders and what was read, so that nothing cached for an earlier event is
 * shown.
 */
export function fresh<T>(live: LiveEvent<T>, _args: unknown, { loaders, reading }: Context): LiveEvent<T> {
  loaders.forget();
  reading.forget();
  return live;
}
