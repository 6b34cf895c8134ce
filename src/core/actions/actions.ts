import { requireAdmin } from '../auth/principal.ts';
import { isLive, type Connection } from '../connections/connection.ts';
import type { Actions, ActionSample, AdvertisedAction } from '../core.ts';
import { completenessOf } from '../cursor.ts';
import type { Deps } from '../deps.ts';
import { name as checkName } from '../ids.ts';
import { ACTION_SAMPLE, ACTION_SAMPLE_CONNECTIONS } from '../limits.ts';
import { SCAN_BUDGET, type ObservedSource, type Position } from '../page.ts';

/** What live clients say that they can do. Capability, never authorization. */
export function createActions(deps: Deps): Actions {
  return {
    async sample(who, name) {
      requireAdmin(who);
      const sample = new Sample(name === null ? null : checkName('name', name));
      const gaps = await fill(deps, sample);
      return sample.answer(deps.clock.now(), gaps);
    },
  };
}

/**
 * Reads the registry in its order until the sample is cut, all was seen, or SCAN_BUDGET rows were looked at. A sample that is just full is
 * only known to be whole once nothing more was found, so reading goes on past a full one until something is left out.
 */
async function fill({ backend, clock }: Deps, sample: Sample): Promise<readonly ObservedSource[]> {
  const filter = { userId: null, nodeId: null, status: null };
  const gaps: ObservedSource[] = [];
  let after: Position | null = null;
  for (let seen = 0; seen < SCAN_BUDGET && !sample.cut; seen += ACTION_SAMPLE_CONNECTIONS) {
    const scan = await backend.connections.list(filter, { first: ACTION_SAMPLE_CONNECTIONS, after });
    const now = clock.now();
    for (const { row } of scan.rows) if (isLive(row, now)) sample.take(row);
    gaps.push(...scan.gaps);
    after = scan.next;
    if (after === null) return gaps;
  }
  sample.cutConnections = sample.cut ? sample.cutConnections : true;
  return gaps;
}
