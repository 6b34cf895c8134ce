/** Tests the simulation of a relay with a data directory: a seed gives one run, and what was acknowledged is kept. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { silentLog } from '../../src/core/ports.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { openData } from '../../src/backends/journal/open.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { SimulatedProcess } from '../../faults/simulate/process.ts';
import { differencesOf } from '../../faults/simulate/replayed.ts';
import { Simulation } from '../../faults/simulate/virtual.ts';
import { admission } from '../contract/kit/bench.ts';
import type { Disk } from '../../src/backends/journal/disk.ts';
import { SimulatedDisk } from '../../faults/simulate/disk.ts';
import { planOf } from '../../faults/simulate/plan.ts';
import { runPlan, STORES, type WorkloadName } from '../../faults/simulate/workloads.ts';
import type { Verdict } from '../../faults/simulate/world.ts';

const SEEDS = Number(process.env['CALLBOARD_TEST_RUNS'] ?? 12);
const STEPS = 250;

function run(seed: number, acts: WorkloadName, steps = STEPS): Promise<Verdict> {
  return runPlan(planOf({ seed, nodes: 1, steps }, STORES.directory.faults), { acts, store: 'directory' });
}

describe('a simulation of a relay with a data directory', () => {
  afterEach(() => void vi.restoreAllMocks());

  it.each(Array.from({ length: SEEDS }, (_, i) => i + 1))(
    'keeps what was acknowledged, and tells of each loss: seed %i',
    async (seed) => {
      const verdict = await run(seed, 'store');
      expect(verdict.broken).toEqual([]);
      expect(verdict.acknowledged).toBeGreaterThan(STEPS / 4);
      expect(verdict.seen['compared with the directory']).toBeGreaterThan(1);
    },
  );

  it.each([1, 2, 3, 4])('runs no call twice, and tells no caller what is not so: seed %i', async (seed) => {
    const verdict = await run(seed, 'calls', 150);
    expect(verdict.broken).toEqual([]);
    expect(verdict.acknowledged).toBeGreaterThan(50);
  });

  it('is the same for the same seed, and another for another seed', async () => {
    const [one, again, other] = [await run(7, 'store'), await run(7, 'store'), await run(8, 'store')];
    expect(again.digest).toBe(one.digest);
    expect(other.digest).not.toBe(one.digest);
  });

  it('compares the memory of a relay with a replay of its directory', async () => {
    const simulation = new Simulation(1);
    const process = new SimulatedProcess(simulation, 'p');
    const disk = new SimulatedDisk(simulation, { bytes: 1e9 });
    const [{ sha256 }, shares, { clock, loop, crypto: random }] = [createCrypto('test'), createShares(), process];
    const { backend } = await openData({
      ...{ root: '/d', disk: disk.of(process), sync: 'off', version: 'test', loop, random },
      ...{ onFailure() {}, memory: { clock, log: silentLog, sha256, shares } },
    });
    const compared = (kept: SimulatedDisk) =>
      differencesOf({ backend, shares, clock }, { root: '/d', disk: kept.of(null) });
    await backend.commands.admit(admission('c1', { connectWithinMs: 60_000 }));
    await simulation.run(10);
    const before = disk.copy();
    expect(await compared(disk.copy())).toEqual({ results: [], others: [] });
    await backend.commands.admit(admission('c2', { connectWithinMs: 60_000 }));
    await simulation.run(10);
    expect(await compared(disk.copy())).toEqual({ results: [], others: [] });
    expect((await compared(before)).others).toContainEqual(expect.stringMatching(/^\.listed/));
  });

  it('notices a disk whose syncs do nothing', async () => {
    const plain = SimulatedDisk.prototype.of;
    vi.spyOn(SimulatedDisk.prototype, 'of').mockImplementation(function (this: SimulatedDisk, process): Disk {
      const disk = plain.call(this, process);
      const open: Disk['open'] = (path, mode) => ({
        ...disk.open(path, mode),
        sync: (done) => void process?.after(1, 'no sync', () => done(null)),
        syncNow() {},
      });
      return { ...disk, open };
    });
    const broken: string[] = [];
    for (let seed = 1; seed <= 20 && broken.length === 0; seed++) broken.push(...(await run(seed, 'store')).broken);
    expect(broken.length).toBeGreaterThan(0);
  });

  it('takes no time, timers or random numbers from outside of it', async () => {
    const forbidden = (name: string) => () => {
      throw new Error(`${name} was called`);
    };
    vi.spyOn(Date, 'now').mockImplementation(forbidden('Date.now'));
    vi.spyOn(Math, 'random').mockImplementation(forbidden('Math.random'));
    vi.spyOn(performance, 'now').mockImplementation(forbidden('performance.now'));
    vi.spyOn(globalThis, 'setInterval').mockImplementation(forbidden('setInterval'));
    const timers = vi.spyOn(globalThis, 'setTimeout').mockImplementation(forbidden('setTimeout'));
    expect((await run(3, 'calls', 100)).broken).toEqual([]);
    expect(timers).not.toHaveBeenCalled();
  });
});
