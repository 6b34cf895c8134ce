/** Runs the contracts of the stores over partitions whose logs are in Redis: as their owner, and as another process. */
import { auditContract } from './audit.ts';
import { connectionContract } from './connections.ts';
import { contextContract } from './contexts.ts';
import { dedupContract } from './dedup.ts';
import { historyContract } from './history.ts';
import type { HistoryBounds } from './kit/bench.ts';
import { ownedRedisBench } from './kit/owned-redis-bench.ts';
import { linkHistoryContract } from './link-history.ts';
import { reconnectContract } from './reconnects.ts';
import { sessionContract } from './sessions.ts';
import { siteContract } from './sites.ts';
import { ticketContract } from './tickets.ts';

// There are fewer random runs than in memory alone, which decides the same.
const FEWER = { runs: 5 };

for (const role of ['owner', 'foreign'] as const) {
  const name = role === 'owner' ? 'partitions of this process in Redis' : 'partitions of another process in Redis';
  const open = (history: HistoryBounds = {}) => ownedRedisBench(role, { memory: { history } });
  connectionContract(name, () => open(), FEWER);
  contextContract(name, () => open(), FEWER);
  historyContract(name, open, FEWER);
  linkHistoryContract(name, open);
  dedupContract(name, () => open(), FEWER);
  siteContract(name, () => open());
  sessionContract(name, () => open());
  reconnectContract(name, () => open());
  ticketContract(name, () => open());
  auditContract(name, async () => {
    const { backend, ...bench } = await open();
    return { ...bench, stores: [backend.audit, backend.audit] };
  });
}
