/** Runs the contract of large payloads over memory. */
import { createMemorySpill } from '../../src/backends/spill/memory.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { FakeClock } from '../kit/clock.ts';
import { spillContract, spillShares } from './spill.ts';

spillContract('memory', async (total, guarantee) => {
  const clock = new FakeClock();
  return {
    store: createMemorySpill(clock, createCrypto('test'), spillShares(total, guarantee)),
    now: () => clock.now(),
    advance: (ms) => clock.advance(ms),
    close: async () => {},
  };
});
