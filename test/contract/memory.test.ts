/** Runs the contracts of the stores over the memory backend, except those of delivery, the audit and large payloads. */
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { FakeClock } from '../kit/clock.ts';
import { connectionContract } from './connections.ts';
import { contextContract } from './contexts.ts';
import { dedupContract } from './dedup.ts';
import { historyContract } from './history.ts';
import type { Bench, HistoryBounds } from './kit/bench.ts';
import { linkHistoryContract } from './link-history.ts';
import { pauseBoundContract, pauseContract } from './pauses.ts';
import { reconnectContract } from './reconnects.ts';
import { sessionContract } from './sessions.ts';
import { revocationContract } from './revocations.ts';
import { ticketContract } from './tickets.ts';
import { siteContract } from './sites.ts';

async function memory(history: HistoryBounds = {}): Promise<Bench> {
  const clock = new FakeClock();
  const backend = createMemoryBackend({
    markSecret: 'x',
    clock,
    log: silentLog,
    sha256: createCrypto('test').sha256,
    history,
  });
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

connectionContract('memory', () => memory());
contextContract('memory', () => memory());
historyContract('memory', memory);
linkHistoryContract('memory', memory);
dedupContract('memory', () => memory());
siteContract('memory', () => memory());
sessionContract('memory', () => memory());
reconnectContract('memory', () => memory());
ticketContract('memory', () => memory());
revocationContract('memory', () => memory());
pauseContract('memory', () => memory());
pauseBoundContract('memory', () => memory());
