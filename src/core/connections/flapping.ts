/** Lists the clients that reconnect most, and notes each link that opens. */
import { requireAdmin, type Principal } from '../auth/principal.ts';
import { completenessOf } from '../cursor.ts';
import type { Deps } from '../deps.ts';
import { invalid } from '../errors.ts';
import type { ClientKey } from '../ids.ts';
import { FLAPPING_MAX, RECONNECT_CLIENTS } from '../limits.ts';
import { silentSources } from '../silence.ts';
import type { FlappingSample } from './reconnects.ts';

/** Lists the clients that reconnected most in the last hour. Administrators only. `first`: 1 to FLAPPING_MAX. */
export async function flapping(deps: Deps, requester: Principal | null, first: number): Promise<FlappingSample> {
  requireAdmin(requester);
  if (!Number.isInteger(first) || first < 1 || first > FLAPPING_MAX) invalid('first', `expected 1 to ${FLAPPING_MAX}`);
  const [{ rows, complete }, silent] = await Promise.all([
    deps.backend.reconnects.top(first),
    silentSources(deps, 'connections'),
  ]);
  const bound = complete
    ? { limit: null, reason: null }
    : ({ limit: RECONNECT_CLIENTS, reason: 'limit_reached' } as const);
  const own = { source: 'connections', nodeId: null, complete, observed: rows.length, ...bound } as const;
  return { items: rows, complete, completeness: completenessOf([{ ...own, asOf: deps.clock.now() }, ...silent]) };
}

/** Notes that a link opened. An error is only logged, because a link must not fail for the sake of a count. */
export function noteOpened({ backend, log }: Deps, client: ClientKey, again: boolean): void {
  const noted = backend.reconnects.note(client, again);
  if (noted instanceof Promise)
    noted.catch((error: unknown) => log.debug({ err: error }, 'a reconnect was not counted'));
}
