/** Runs the contract of large payloads over a directory. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDirectorySpill } from '../../src/backends/spill/directory.ts';
import { createSpillThread } from '../../src/backends/spill/thread.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { FakeClock } from '../kit/clock.ts';
import { spillContract, spillShares } from './spill.ts';

spillContract('a directory', async (total, guarantee) => {
  const clock = new FakeClock();
  const parent = await mkdtemp(join(tmpdir(), 'callboard-spill-'));
  const root = join(parent, 'made', 'by', 'the store');
  return {
    store: createDirectorySpill({
      random: createCrypto('test'),
      files: createSpillThread(root),
      clock,
      log: silentLog,
      shares: spillShares(total, guarantee),
    }),
    now: () => clock.now(),
    advance: (ms) => clock.advance(ms),
    close: () => rm(parent, { recursive: true, force: true }),
  };
});
