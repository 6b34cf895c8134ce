/** Tests simulations whose requests enter over HTTP: events with viewers, sites with sessions, and revoked tokens. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { planOf } from '../../faults/simulate/plan.ts';
import { runPlan, STORES, type StoreName, type WorkloadName } from '../../faults/simulate/workloads.ts';

/** The seeds of the short form, and the acts of each run. */
const SEEDS = Math.max(1, Math.round(Number(process.env['CALLBOARD_TEST_RUNS'] ?? 12) / 4));
const STEPS = 120;

const simulate = (acts: WorkloadName, store: StoreName, seed: number, steps = STEPS) =>
  runPlan(planOf({ seed, nodes: store === 'owned' ? 3 : 1, steps }, STORES[store].faults), { acts, store });

const KINDS = (['events', 'sites', 'revocations'] as const).flatMap((acts) =>
  (['owned', 'directory'] as const).flatMap((store) =>
    Array.from({ length: SEEDS }, (_, i) => [acts, store, i + 1] as const),
  ),
);

describe('a simulation whose requests enter over HTTP', () => {
  afterEach(() => {
    vi.restoreAllMocks();
    vi.unstubAllGlobals();
  });

  it.each(KINDS)('breaks no promise: %s, %s, seed %i', async (acts, store, seed) => {
    const { broken, acknowledged } = await simulate(acts, store, seed);
    expect(broken).toEqual([]);
    expect(acknowledged).toBeGreaterThan(STEPS / 8);
  });

  it.each(['events', 'sites', 'revocations'] as const)(
    'takes no time or random numbers from outside of it: %s',
    async (acts) => {
      const forbidden = (name: string) => () => {
        throw new Error(`${name} was called`);
      };
      vi.spyOn(Date, 'now').mockImplementation(forbidden('Date.now'));
      vi.spyOn(Math, 'random').mockImplementation(forbidden('Math.random'));
      vi.spyOn(performance, 'now').mockImplementation(forbidden('performance.now'));
      vi.spyOn(globalThis, 'setInterval').mockImplementation(forbidden('setInterval'));
      vi.spyOn(crypto, 'getRandomValues').mockImplementation(forbidden('getRandomValues'));
      vi.spyOn(crypto, 'randomUUID').mockImplementation(forbidden('randomUUID'));
      vi.spyOn(AbortSignal, 'timeout').mockImplementation(forbidden('AbortSignal.timeout'));
      vi.spyOn(globalThis, 'fetch').mockImplementation(forbidden('fetch'));
      const timers = vi.spyOn(globalThis, 'setTimeout').mockImplementation(forbidden('setTimeout'));
      expect((await simulate(acts, 'owned', 3, 60)).broken).toEqual([]);
      expect(timers).not.toHaveBeenCalled();
    },
  );

  it('reaches REST, event streams, and both paths of GraphQL', async () => {
    const [calls, events] = [await simulate('calls', 'owned', 2, 60), await simulate('events', 'owned', 2, 60)];
    for (const way of ['rest', 'stream', 'fast', 'yoga']) expect(calls.seen[`entry: ${way}`]).toBeGreaterThan(0);
    for (const what of ['ingest: rest', 'ingest: graphql', 'viewer: site', 'viewer: live', 'event: duplicate'])
      expect(events.seen[what]).toBeGreaterThan(0);
    expect(calls.seen['compared with the record']).toBeGreaterThan(0);
  });
});
