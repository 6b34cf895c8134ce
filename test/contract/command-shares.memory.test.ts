/** Runs the contract of the shares of commands over the memory backend. */
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import { silentLog } from '../../src/core/log.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { createCrypto } from '../../src/platform/crypto.ts';
import { FakeClock } from '../kit/clock.ts';
import { commandShares } from './command-shares.ts';

commandShares(
  'memory',
  async (bounds) => {
    const clock = new FakeClock();
    const shares = createShares(bounds);
    const { sha256 } = createCrypto('test');
    const backend = createMemoryBackend({ clock, log: silentLog, sha256, shares });
    return {
      backend,
      advance: (ms) => clock.advance(ms),
      now: () => clock.now(),
      async close() {
        await backend.close();
      },
      async used(share) {
        // A read drops what has expired.
        await backend.commands.get([{ userId: 'nobody', clientId: 'tab', commandId: 'c' }]);
        return shares.used(share);
      },
    };
  },
  { runs: 100 },
);
