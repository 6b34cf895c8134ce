import type { Live } from '../core/live.ts';
import type { Context } from './context.ts';

/** Resolves one event of a subscription with nothing remembered from the events before it. */
export function fresh<T>(live: Live<T>, _args: unknown, { loaders }: Context): Live<T> {
  loaders.forget();
  return live;
}
