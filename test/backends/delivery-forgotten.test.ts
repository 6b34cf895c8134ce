/** Tests listings of the memory backend after ended commands were dropped early. */
import { expect, it } from 'vitest';
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import { ANY_COMMAND } from '../../src/core/commands/delivery-inspector.ts';
import { TERMINAL_MS } from '../../src/core/limits.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { silentLog } from '../../src/core/ports.ts';
import type { Stage } from '../../src/core/commands/command.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { admission, BOUND, dispatched, ending, keyFor, ALICE, type Bench } from '../contract/kit/bench.ts';
import { FakeClock } from '../kit/clock.ts';

function small(terminalRecords: number): Bench {
  const clock = new FakeClock();
  const shares = createShares({ ended_records: { guarantee: 1, total: terminalRecords } });
  const { sha256 } = createCrypto('test');
  const backend = createMemoryBackend({ markSecret: 'x', clock, log: silentLog, sha256, shares });
  return {
    backend,
    advance: (ms) => clock.advance(ms),
    now: () => clock.now(),
    setBack: (ms) => clock.stepWall(-ms),
    close: async () => {},
  };
}

it('a listing reports that ended commands were dropped early, for as long as they would otherwise be shown', async () => {
  const bench = small(2);
  const { commands, inspector } = bench.backend;
  const gaps = async (stage: Stage | null = null) => {
    const filter = { ...ANY_COMMAND, stage };
    return (await inspector.list(filter, { first: 10, after: null })).gaps;
  };
  await commands.rebind(ALICE, BOUND, 'up');
  for (const id of ['c1', 'c2']) {
    await dispatched(bench, id);
    await commands.finish(keyFor(id), ending());
  }
  expect(await gaps()).toEqual([]);
  await dispatched(bench, 'c3');
  await commands.finish(keyFor('c3'), ending());
  await commands.admit(admission('live'));
  expect(await commands.get([keyFor('c1')])).toEqual([null]);
  expect(await gaps()).toMatchObject([{ source: 'delivery', complete: false, reason: 'evicted' }]);
  expect(await gaps('terminal')).toHaveLength(1);
  expect(await gaps('queued')).toEqual([]);
  await bench.advance(TERMINAL_MS - 1);
  expect(await gaps()).toHaveLength(1);
  await bench.advance(1);
  expect(await gaps()).toEqual([]);
});
