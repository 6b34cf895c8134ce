/** Checks whether a node takes new links and commands. `/readyz` and the metric `ready` report the result. */
import type { Core } from '../core/core.ts';

/** Rejects with the CallboardError of the first part that is not ready. */
export async function requireReady(parts: readonly Partial<Pick<Core, 'ready'>>[]): Promise<void> {
  for (const part of parts) await part.ready?.();
}
