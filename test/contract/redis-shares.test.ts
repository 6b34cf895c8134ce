/** Runs the contracts of the shares that a store counts over Redis. */
import { describe, expect, it } from 'vitest';
import { silentLog, type Log } from '../../src/core/ports.ts';
import { silentMetrics } from '../../src/core/metrics.ts';
import { shareBounds, type ShareBounds } from '../../src/core/shares/share-bounds.ts';
import { commandShares, type SharesBench } from './command-shares.ts';
import { dedupShares } from './dedup.ts';
import { historyShares } from './history-shares.ts';
import { admission, ALICE, BOUND, dispatched, ending, keyFor, openNode, type HistoryBounds } from './kit/bench.ts';
import { newMessage } from './kit/history-model.ts';
import { auditedBench, redisBench } from './kit/redis-bench.ts';
import { boundsOf, sharesBench } from './redis-contracts.ts';

function redis(bounds: ShareBounds, limits: HistoryBounds = {}): Promise<SharesBench> {
  return sharesBench(auditedBench, { bounds, ...boundsOf(limits) });
}

describe('what Redis drops', () => {
  it('is counted, and logged once for each user, by the node that drops it', async () => {
    const counts: Record<string, number> = {};
    const count = (name: string, label?: string): void => {
      const counter = label === undefined ? name : `${name}:${label}`;
      counts[counter] = (counts[counter] ?? 0) + 1;
    };
    const bound = (total: number) => ({ guarantee: total, total });
    const bounds = shareBounds({ ended_records: bound(2), marks: bound(4), dedup_marks: bound(3) });
    const warned: unknown[] = [];
    const log: Log = { ...silentLog, warn: (fields, text) => void warned.push([fields, text]) };
    const bench = await auditedBench({ partitions: 1, bounds, log, metrics: { ...silentMetrics, count } });
    const { commands, history } = bench.backend;
    await openNode(bench);
    await commands.rebind(ALICE, BOUND, 'up');
    for (let i = 0; i < 6; i++) {
      await dispatched(bench, `r${i}`, { chosenId: false });
      await commands.finish(keyFor(`r${i}`), ending());
    }
    for (let i = 0; i < 5; i++) await history.ingest({ ...newMessage({ id: `m${i}` }), clientId: 'tab' });
    await bench.quiet();
    await bench.close();
    expect(counts).toEqual({ records_reduced: 4, 'results_given_up:record': 4, dedup_marks_evicted: 2 });
    expect(warned).toEqual([[{ userId: 'alice' }, 'no room for deduplication marks: some are dropped early']]);
  });
});

it('the index of the oldest ended commands is right although the clocks of the relays differ', async () => {
  const bench = await auditedBench({ partitions: 1 });
  const ahead = await redisBench({ partitions: 1, beside: bench, aheadMs: 58 });
  await openNode(bench);
  await bench.backend.commands.rebind(ALICE, BOUND, 'up');
  for (const [id, { backend }] of [['later', ahead] as const, ['earlier', bench] as const]) {
    await dispatched(bench, id);
    await backend.commands.finish(keyFor(id), ending());
  }
  expect(await bench.audit()).toEqual([]);
  await ahead.close();
  await bench.close();
});

describe('the bucket of a rate rule', () => {
  it('holds over all nodes', async () => {
    const bench = await auditedBench({ partitions: 1 });
    const other = await redisBench({ partitions: 1, beside: bench });
    const rate = { rule: 'slow', caller: 'alice', burst: 4, perSecond: 0.001 };
    await bench.backend.commands.rebind(ALICE, BOUND, 'up');
    const stores = [bench.backend.commands, other.backend.commands];
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, i) => stores[i % 2]?.admit(admission(`c${i}`, { rate }))),
    );
    await other.close();
    await bench.close();
    expect(answers.filter((answer) => answer?.kind === 'admitted')).toHaveLength(4);
  });
});

dedupShares('redis', redis);
commandShares('redis', (bounds) => redis(bounds), { runs: 12 });
historyShares('redis', redis, { runs: 12 });
