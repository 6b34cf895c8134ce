/** Runs the contracts of the stores over the memory backend with a data directory. */
import { afterAll } from 'vitest';
import { createShares } from '../../src/core/shares/shares.ts';
import { openDurable, removeFolders } from '../backends/kit/durable.ts';
import { FakeClock } from '../kit/clock.ts';
import { commandContract } from './commands.ts';
import { commandModel } from './commands-model.ts';
import { commandShares } from './command-shares.ts';
import { connectionContract } from './connections.ts';
import { contextContract } from './contexts.ts';
import { dedupContract } from './dedup.ts';
import { historyContract } from './history.ts';
import { inspectorContract } from './inspector.ts';
import type { Bench, HistoryBounds } from './kit/bench.ts';
import { linkHistoryContract } from './link-history.ts';
import { nodeContract } from './nodes.ts';
import { pauseContract } from './pauses.ts';
import { sessionContract } from './sessions.ts';
import { siteContract } from './sites.ts';
import { revocationContract } from './revocations.ts';
import { ticketContract } from './tickets.ts';
import { waiterContract } from './waiters.ts';

async function durable(history: HistoryBounds = {}): Promise<Bench> {
  const clock = new FakeClock();
  const { backend } = await openDurable({ clock, memory: { history } });
  return {
    backend,
    advance: (ms) => clock.advance(ms),
    now: () => clock.now(),
    setBack: (ms) => clock.stepWall(-ms),
    close: async () => void (await backend.close()),
  };
}

afterAll(removeFolders);

const name = 'memory with a data directory';
// There are fewer random runs than in memory alone, which decides the same: each run opens a directory.
const FEWER = { runs: 40 };
connectionContract(name, () => durable(), FEWER);
contextContract(name, () => durable(), FEWER);
historyContract(name, durable, FEWER);
linkHistoryContract(name, durable);
dedupContract(name, () => durable(), FEWER);
siteContract(name, () => durable());
sessionContract(name, () => durable());
ticketContract(name, () => durable());
revocationContract(name, () => durable());
pauseContract(name, () => durable());
commandContract(name, () => durable());
commandModel(name, () => durable(), 80);
waiterContract(name, () => durable());
nodeContract(name, () => durable());
inspectorContract(name, () => durable());
commandShares(
  name,
  async (bounds) => {
    const clock = new FakeClock();
    const shares = createShares(bounds);
    const { backend } = await openDurable({ clock, memory: { shares } });
    return {
      backend,
      advance: (ms) => clock.advance(ms),
      now: () => clock.now(),
      setBack: (ms) => clock.stepWall(-ms),
      close: async () => void (await backend.close()),
      async used(share) {
        // A read drops what has expired.
        await backend.commands.get([{ userId: 'nobody', clientId: 'tab', commandId: 'c' }]);
        return shares.used(share);
      },
    };
  },
  { runs: 20 },
);
