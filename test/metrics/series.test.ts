/** Tests series over time, out of what several nodes recorded. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SeriesAnswer, SeriesQuery } from '../../src/core/metrics/series.ts';
import { CallboardError } from '../../src/core/errors.ts';
import { SERIES_ASK_MS } from '../../src/core/limits.ts';
import { meanwhile, settle } from '../kit/clock.ts';
import { admin, connect, testCore, user, type TestClient, type TestCore } from '../kit/core.ts';
import { deadNode, STORES, type TwoNodes } from '../kit/two-nodes.ts';

const alice = user('alice');
const WINDOW: SeriesQuery = { names: ['commands_ended'], windowSeconds: 3600 };

function lineOf({ items }: SeriesAnswer, name: string, label: string | null = null) {
  const line = items.find((item) => item.name === name && item.label === label);
  if (!line) throw new Error(`no series ${name} ${label}`);
  return line;
}

function sum(points: readonly (number | null)[]): number {
  return points.reduce<number>((all, point) => all + (point ?? 0), 0);
}

/** Returns the smallest duration, in seconds, that is not exceeded by this fraction of the durations. */
function trueQuantile(durations: readonly number[], quantile: number): number {
  const sorted = durations.toSorted((a, b) => a - b);
  return (sorted[Math.ceil(quantile * sorted.length) - 1] ?? 0) / 1000;
}

function expectNear(found: number | null | undefined, truth: number): void {
  expect(Math.abs((found ?? Infinity) - truth) / truth).toBeLessThanOrEqual(0.06);
}

describe.each(Object.entries(STORES))('series of two nodes over %s', (_, open) => {
  let place: TwoNodes;
  let clients: readonly TestClient[];
  beforeEach(async () => {
    place = await open();
    clients = await Promise.all(
      place.nodes.map(({ core }, i) => connect(core, alice, { clientId: `tab-${i}`, instanceId: `i${i}` })),
    );
  });
  afterEach(() => place[Symbol.asyncDispose]());

  const read = (query: SeriesQuery, at = 0): Promise<SeriesAnswer> =>
    meanwhile(place.clock, place.nodes[at]!.core.series.read(admin, query));

  /** Calls clients of both nodes in turn, a batch at a time; each call of a batch ends after its own duration. */
  async function callAll(durations: readonly number[], batchSize: number): Promise<void> {
    for (let from = 0; from < durations.length; from += batchSize) {
      const batch = durations.slice(from, from + batchSize);
      const calls = batch.map((_ms, i) =>
        place.nodes[i % 2]!.core.rpc.invoke(alice, {
          ...{ userId: 'alice', clientId: `tab-${i % 2}`, action: 'open', params: null },
          ...{ commandId: `c${from + i}`, respondWithinMs: 300_000 },
        }),
      );
      await settle();
      const due = batch.map((ms, i) => ({ ms, i })).sort((a, b) => a.ms - b.ms);
      let now = 0;
      for (const { ms, i } of due) {
        if (ms > now) await place.clock.advance(ms - now);
        now = ms;
        const command = clients[i % 2]!.sent.find((sent) => sent.command.commandId === `c${from + i}`)?.command;
        await clients[i % 2]!.result(command!);
      }
      await Promise.all(calls);
    }
  }

  it('1,000 calls of known durations: the counts are equal, p50 and p99 are within 6 %', async () => {
    // There are a hundred durations over three orders of magnitude. Each is used ten times, on both nodes.
    const durations = Array.from({ length: 1000 }, (_v, i) => 5 + Math.floor(i / 10) ** 2);
    // Each of the two nodes has a link with at most 32 unfinished commands.
    await callAll(durations, 60);
    const names = ['commands_ended', 'commands_admitted', 'command_p50', 'command_p90', 'command_p99', 'dispatch_p50'];
    const answer = await read({ names, windowSeconds: 3600, stepSeconds: 3600 });
    expect(answer.completeness).toMatchObject({
      complete: true,
      sources: [
        { nodeId: 'n1', reason: null },
        { nodeId: 'n2', reason: null },
      ],
    });
    expect(sum(lineOf(answer, 'commands_ended', 'completed').points)).toBe(1000);
    expect(sum(lineOf(answer, 'commands_admitted').points)).toBe(1000);
    expectNear(lineOf(answer, 'command_p50').points.at(-1), trueQuantile(durations, 0.5));
    expectNear(lineOf(answer, 'command_p90').points.at(-1), trueQuantile(durations, 0.9));
    expectNear(lineOf(answer, 'command_p99', 'completed').points.at(-1), trueQuantile(durations, 0.99));
    // In steps of 5 s nothing is lost or counted twice, and each node reports half of the calls.
    const fine = await read({ names: ['commands_ended'], windowSeconds: 3600, stepSeconds: 5 });
    expect(sum(lineOf(fine, 'commands_ended', 'completed').points)).toBe(1000);
    for (const nodeId of ['n1', 'n2']) {
      const own = await read({ names: ['commands_ended'], windowSeconds: 3600, nodeId });
      expect(sum(lineOf(own, 'commands_ended', 'completed').points)).toBe(500);
      expect(own.items.map((item) => item.nodeId)).toEqual([nodeId]);
      expect(own.completeness.sources.map((source) => source.nodeId)).toEqual([nodeId]);
    }
  });

  it('shows the gauges of both nodes together: sums, and the oldest wait of either', async () => {
    const names = ['commands_in_flight', 'commands_queued', 'waiters', 'oldest_wait_seconds'];
    const lastOf = async (nodeId: string | null): Promise<readonly (number | null | undefined)[]> => {
      const answer = await read({ names, windowSeconds: 60, stepSeconds: 5, nodeId });
      expect(answer.completeness.complete).toBe(true);
      return names.map((name) => lineOf(answer, name).points.at(-1));
    };
    const call = (node: 0 | 1, commandId: string) =>
      place.nodes[node].core.rpc.invoke(alice, {
        ...{ userId: 'alice', clientId: `tab-${node}`, action: 'open', params: null },
        ...{ commandId, respondWithinMs: 300_000 },
      });
    const calls = [call(0, 'g0'), call(0, 'g1')];
    await settle();
    await place.clock.advance(7_000);
    calls.push(call(1, 'g2'));
    await settle();
    await place.clock.advance(5_000);
    const about = (seconds: number): unknown => expect.closeTo(seconds, 0);
    expect(await lastOf(null)).toEqual([3, 0, 3, about(12)]);
    expect(await lastOf('n1')).toEqual([2, 0, 2, about(12)]);
    expect(await lastOf('n2')).toEqual([1, 0, 1, about(5)]);
    for (const client of clients) for (const { command } of client.sent) await client.result(command);
    await Promise.all(calls);
    await place.clock.advance(5_000);
    expect(await lastOf(null)).toEqual([0, 0, 0, 0]);
    const history = await read({ names, windowSeconds: 60, stepSeconds: 5 });
    expect(Math.max(...lineOf(history, 'commands_in_flight').points.map((point) => point ?? 0))).toBe(3);
  });

  it('names a node that does not answer within a second, and answers without it', async () => {
    await deadNode(place.nodes[0].backend, 'n3');
    const began = place.clock.now();
    const answer = await read(WINDOW);
    expect(place.clock.now() - began).toBeLessThanOrEqual(SERIES_ASK_MS + 100);
    expect(answer.completeness.complete).toBe(false);
    expect(answer.completeness.sources).toMatchObject([
      { source: 'metrics', nodeId: 'n1', complete: true, reason: null },
      { nodeId: 'n2', complete: true, reason: null },
      { nodeId: 'n3', complete: false, observed: 0, reason: 'node_silent' },
    ]);
  });

  it('does not ask a node that is known to be silent, and still names it', async () => {
    await deadNode(place.nodes[0].backend, 'n3');
    await place.clock.advance(6_000);
    const began = place.clock.now();
    const { completeness } = await read(WINDOW);
    expect(place.clock.now() - began).toBeLessThan(SERIES_ASK_MS);
    expect(completeness.sources.filter(({ reason }) => reason === 'node_silent').map(({ nodeId }) => nodeId)).toEqual([
      'n3',
    ]);
  });

  it('shows the series of one named node, even if another node is asked', async () => {
    const answer = await read({ ...WINDOW, names: ['commands_admitted'], nodeId: 'n1' }, 1);
    expect(answer.items).toMatchObject([{ nodeId: 'n1' }]);
    expect((await read({ ...WINDOW, nodeId: 'nowhere' })).completeness.sources).toMatchObject([
      { nodeId: 'nowhere', complete: false, reason: 'node_silent' },
    ]);
  });
});

describe('a request for series', () => {
  let place: TestCore & AsyncDisposable;
  beforeEach(async () => void (place = await testCore()));
  afterEach(() => place[Symbol.asyncDispose]());
  const read = (query: Partial<SeriesQuery>) => place.core.series.read(admin, { ...WINDOW, ...query });

  it('is for administrators', async () => {
    await expect(place.core.series.read(alice, WINDOW)).rejects.toMatchObject({ code: 'forbidden' });
    await expect(place.core.series.read(null, WINDOW)).rejects.toMatchObject({ code: 'unauthenticated' });
  });

  it.each([
    ['names', { names: [] }],
    ['names', { names: Array(65).fill('requests') }],
    ['names', { names: ['requests', 'nothing'] }],
    ['names', { names: ['command_seconds'] }],
    ['names', { names: ['links'] }],
    ['window_seconds', { windowSeconds: 4 }],
    ['window_seconds', { windowSeconds: 86_401 }],
    ['window_seconds', { windowSeconds: 7.5 }],
    ['step_seconds', { stepSeconds: 0 }],
    ['step_seconds', { stepSeconds: -5 }],
    ['node_id', { nodeId: '' }],
  ])('is refused for wrong %s: %j', async (parameter, over: Partial<SeriesQuery>) => {
    await expect(read(over)).rejects.toMatchObject({ code: 'invalid_argument', details: { errors: [{ parameter }] } });
  });

  it.each([
    [60, null, 12, 5],
    [60, 5, 12, 5],
    [60, 1, 12, 5],
    [60, 7, 6, 10],
    [62, 5, 13, 5],
    [10, 60, 1, 60],
    [3600, null, 720, 5],
    [3601, null, 61, 60],
    [86_400, null, 720, 120],
    [86_400, 1, 720, 120],
    [86_400, 3600, 24, 3600],
  ])('over %i s in steps of %s has %i points of %i s', async (windowSeconds, stepSeconds, points, step) => {
    const { items } = await read({ names: ['commands_admitted'], windowSeconds, stepSeconds });
    expect(items).toMatchObject([{ name: 'commands_admitted', label: null, nodeId: null, stepSeconds: step }]);
    expect(items[0]?.points).toHaveLength(points);
    const end = (items[0]?.from ?? 0) + points * step * 1000;
    expect(end).toBeGreaterThan(place.clock.now());
    expect(end - place.clock.now()).toBeLessThanOrEqual((windowSeconds > 3600 ? 60 : 5) * 1000);
  });

  it('shows null before the node ran, zero where nothing happened, and no quantile of nothing', async () => {
    await place.clock.advance(60_000);
    const answer = await read({ names: ['commands_admitted', 'command_p99'], windowSeconds: 120 });
    const { points } = lineOf(answer, 'commands_admitted');
    expect(points).toEqual([...Array(11).fill(null), ...Array(13).fill(0)]);
    expect(lineOf(answer, 'command_p99').points).toEqual(Array(24).fill(null));
  });

  it('shows a quantile over all labels, and for each label that occurred', async () => {
    const client = await connect(place.core, alice);
    for (const [ms, outcome] of [
      [40, 'completed'],
      [9_000, 'failed'],
    ] as const) {
      const call = place.core.rpc.invoke(alice, { userId: 'alice', clientId: 'tab', action: 'open', params: null });
      await settle();
      await place.clock.advance(ms);
      if (outcome === 'completed') await client.result(client.last);
      else await client.error(client.last, 'handler_failed');
      await call;
    }
    const answer = await read({ names: ['command_p50', 'command_p99'], windowSeconds: 60, stepSeconds: 60 });
    const shown = answer.items.map(({ name, label, points }) => [name, label, Math.round(points[0] ?? -1)]);
    expect(shown).toEqual([
      ['command_p50', null, 0],
      ['command_p50', 'completed', 0],
      ['command_p50', 'failed', 9],
      ['command_p99', null, 9],
      ['command_p99', 'completed', 0],
      ['command_p99', 'failed', 9],
    ]);
  });

  it('answers with the node’s own records while the store is unavailable', async () => {
    const away = async (): Promise<never> => {
      throw new CallboardError('store_unavailable', 'The store does not answer.');
    };
    await using lonely = await testCore({
      wrap: (backend) => ({ ...backend, nodes: { ...backend.nodes, silent: away, list: away } }),
    });
    const answer = await lonely.core.series.read(admin, { names: ['commands_admitted'], windowSeconds: 60 });
    expect(answer.items).toHaveLength(1);
    expect(answer.completeness).toMatchObject({
      complete: false,
      sources: [
        { nodeId: 'n1', complete: true },
        { nodeId: null, reason: 'store_unavailable' },
      ],
    });
  });
});
