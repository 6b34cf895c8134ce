/** Runs the contracts of the shares that a store counts over the memory backend. */
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import { silentLog } from '../../src/core/ports.ts';
import type { ShareBounds } from '../../src/core/shares/share-bounds.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { FakeClock } from '../kit/clock.ts';
import { commandShares, type SharesBench } from './command-shares.ts';
import { dedupShares } from './dedup.ts';
import { historyShares } from './history-shares.ts';
import type { HistoryBounds } from './kit/bench.ts';

async function memory(bounds: ShareBounds, limits: HistoryBounds = {}): Promise<SharesBench> {
  const clock = new FakeClock();
  const shares = createShares(bounds);
  const { sha256 } = createCrypto('test');
  const history = { ...limits, bytes: bounds.history_bytes.total ?? Infinity };
  const backend = createMemoryBackend({ markSecret: 'x', clock, log: silentLog, sha256, shares, history });
  return {
    backend,
    advance: (ms) => clock.advance(ms),
    now: () => clock.now(),
    setBack: (ms) => clock.stepWall(-ms),
    async close() {
      await backend.close();
    },
    async used(share) {
      // A read drops what has expired.
      await backend.commands.get([{ userId: 'nobody', clientId: 'tab', commandId: 'c' }]);
      return shares.used(share);
    },
  };
}

dedupShares('memory', memory);
commandShares('memory', (bounds) => memory(bounds), { runs: 100 });
historyShares('memory', memory, { runs: 60 });
