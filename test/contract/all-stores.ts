/** The contracts of all stores but those of delivery, for any backend that has them. */
import { auditContract } from './audit.ts';
import { connectionContract } from './connections.ts';
import { contextContract } from './contexts.ts';
import { dedupContract } from './dedup.ts';
import { historyContract } from './history.ts';
import type { Bench, HistoryBounds } from './kit/bench.ts';
import { linkHistoryContract } from './link-history.ts';
import { pauseContract } from './pauses.ts';
import { reconnectContract } from './reconnects.ts';
import { sessionContract } from './sessions.ts';
import { siteContract } from './sites.ts';
import { revocationContract } from './revocations.ts';
import { ticketContract } from './tickets.ts';

type Open = (history?: HistoryBounds) => Promise<Bench>;

/** Declares the tests. `runs`: how many random runs a property has. */
export function storeContracts(name: string, open: Open, runs: number): void {
  connectionContract(name, () => open(), { runs });
  contextContract(name, () => open(), { runs });
  historyContract(name, open, { runs });
  linkHistoryContract(name, open);
  dedupContract(name, () => open(), { runs });
  siteContract(name, () => open());
  sessionContract(name, () => open());
  reconnectContract(name, () => open());
  ticketContract(name, () => open());
  revocationContract(name, () => open());
  // These benches are of a process beside the owners.
  pauseContract(name, () => open(), { decidesAll: false, hasMail: false });
  auditContract(name, async () => {
    const { backend, ...bench } = await open();
    return { ...bench, stores: [backend.audit, backend.audit] };
  });
}
