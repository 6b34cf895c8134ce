import { createMemorySpill } from '../../src/backends/spill/memory.ts';
import { createCrypto } from '../../src/platform/crypto.ts';
import { FakeClock } from '../kit/clock.ts';
import { spillContract } from './spill.ts';

spillContract('memory', async (maxBytes) => {
  const clock = new FakeClock();
  return {
    store: createMemorySpill(clock, createCrypto('test'), maxBytes),
    now: () => clock.now(),
    advance: (ms) => clock.advance(ms),
    close: async () => {},
  };
});
