/** Tests the simulation of relays that own partitions: a seed gives one run, and nothing acknowledged is lost. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Deployment } from '../../faults/simulate/deployment.ts';
import { planOf } from '../../faults/simulate/plan.ts';
import { START } from '../../faults/simulate/process.ts';
import { FenceJudge } from '../../faults/simulate/unfenced.ts';
import { STORES, runPlan, type WorkloadName } from '../../faults/simulate/workloads.ts';
import { silentLog } from '../../src/core/ports.ts';

/** The seeds of the short form, and the acts of each run. */
const SEEDS = Number(process.env['CALLBOARD_TEST_RUNS'] ?? 12);
const STEPS = 250;
const RUN = join(import.meta.dirname, '..', '..', 'faults', 'simulate', 'run.ts');

const simulate = (acts: WorkloadName, seed: number, steps: number) =>
  runPlan(planOf({ seed, nodes: 3, steps }, STORES.owned.faults), { acts, store: 'owned' });

describe('a simulation of owners', () => {
  afterEach(() => {
    vi.restoreAllMocks();
    vi.unstubAllGlobals();
  });

  it.each(Array.from({ length: SEEDS }, (_, i) => i + 1))(
    'loses nothing that was acknowledged: seed %i',
    async (seed) => {
      const verdict = await simulate('store', seed, STEPS);
      expect(verdict.broken).toEqual([]);
      expect(verdict.acknowledged).toBeGreaterThan(STEPS / 4);
      expect(verdict.steps.loaded).toBeLessThan(verdict.steps.all);
    },
  );

  it('is the same for the same seed, in processes with different heaps, and another for another seed', () => {
    const digestOf = (seed: number, ...flags: string[]): unknown => {
      const args = [...flags, RUN, '--seed', String(seed), '--steps', '120', '--json'];
      const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
      return JSON.parse(stdout.trim().split('\n').at(-1) ?? '').digest;
    };
    const digest = digestOf(5, '--max-semi-space-size=1', '--max-old-space-size=128');
    expect(digest).toMatch(/^[0-9a-f]{64}$/);
    expect(digestOf(5, '--max-semi-space-size=64')).toBe(digest);
    expect(digestOf(6)).not.toBe(digest);
  });

  it('shows the time of Redis in every relay, whatever the clocks of machines show', async () => {
    const step = { kind: 'clock', atMs: 10, forMs: 1, node: 1, part: 1 };
    const plan = { seed: 1, nodes: 3, steps: 100, faults: [step] };
    const deployment = new Deployment({ plan, onOpened() {}, onGone() {} });
    const { simulation } = deployment;
    expect(await simulation.run(60_000, () => deployment.isInOrder())).toBe(true);
    deployment.beginFaults();
    await simulation.run(10_000);
    const present = START + simulation.now;
    const ahead = deployment.living.map(({ clock, process }) => [clock.now() - present, process.clock.now() - present]);
    expect(Math.max(...ahead.map(([shown]) => Math.abs(shown ?? Infinity)))).toBeLessThan(200);
    expect(ahead.filter(([, machine]) => (machine ?? 0) > 4_000)).toHaveLength(1);
    deployment.stop();
  });

  it('takes no time, timers or random numbers from outside of it', async () => {
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
    const RealDate = Date;
    // With a time it only writes it in another form.
    const construct = (_: unknown, args: unknown[]): Date =>
      args.length === 0 ? forbidden('new Date')() : Reflect.construct(RealDate, args);
    vi.stubGlobal('Date', new Proxy(Date, { construct }));
    const timers = vi.spyOn(globalThis, 'setTimeout').mockImplementation(forbidden('setTimeout'));
    const { broken } = await simulate('calls', 3, 100);
    expect(broken).toEqual([]);
    expect(timers).not.toHaveBeenCalled();
  });
});

describe('the judge of leases and partitions', () => {
  const LOST = 'another relay owns a partition that was of this one';

  it.each([
    ['of a relay that was stopped', 'pause', 'a', 5_000, 0],
    ['of another relay than the one that was stopped', 'pause', 'b', 5_000, 1],
    ['long after the relay was stopped', 'pause', 'a', 20_000, 1],
    ['while the log service was away', 'stop', 'b', 5_000, 0],
    ['while another relay was killed', 'kill', 'b', 5_000, 1],
  ])('finds a loss %s: %s of %s, %i ms before: %i', (_, kind, relay, later, found) => {
    let now = 1_000;
    const judge = new FenceJudge(() => now);
    judge.noteFault(kind, relay, 2_000);
    const log = judge.watching(silentLog, 'a');
    now += later;
    log.warn({ partition: 1 }, LOST);
    log.warn({}, 'something else');
    expect(judge.judge()).toHaveLength(found);
  });
});
