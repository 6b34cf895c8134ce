/** Makes each event of a subscription read its nested fields again. */
import type { LiveEvent } from '../../core/live.ts';
import type { Context } from './context.ts';

/**
 * Resolves one event of a subscription after clearing the loaders, so that nothing cached for an earlier event is
 * shown.
 */
export function fresh<T>(live: LiveEvent<T>, _args: unknown, { loaders }: Context): LiveEvent<T> {
  loaders.forget();
  return live;
}
