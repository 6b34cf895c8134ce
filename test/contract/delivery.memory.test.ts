/** Runs the contracts of delivery over the memory backend. */
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { FakeClock } from '../kit/clock.ts';
import { commandContract } from './commands.ts';
import { inspectorContract } from './inspector.ts';
import { newestContract } from './inspector-newest.ts';
import type { Bench } from './kit/bench.ts';
import { commandModel } from './commands-model.ts';
import { nodeContract } from './nodes.ts';
import { waiterContract } from './waiters.ts';

async function memory(): Promise<Bench> {
  const clock = new FakeClock();
  const { sha256 } = createCrypto('test');
  const backend = createMemoryBackend({ markSecret: 'x', clock, log: silentLog, sha256 });
  return {
    backend,
    advance: (ms) => clock.advance(ms),
    now: () => clock.now(),
    setBack: (ms) => clock.stepWall(-ms),
    async close() {
      await backend.close();
    },
  };
}

commandContract('memory', memory);
waiterContract('memory', memory);
nodeContract('memory', memory);
inspectorContract('memory', memory, 200);
newestContract('memory', memory);
commandModel('memory', memory);
