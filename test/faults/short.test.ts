/** Runs a short fault run with real processes, with and without a planted mistake. */
import { rmSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { runEpisode, type Episode, type EpisodeOptions } from '../../faults/outages/episode.ts';
import { MUTANTS } from '../../faults/outages/mutants/mutants.ts';
import { plantMutant } from '../../faults/outages/mutants/plant.ts';
import type { Plan } from '../../faults/outages/plan/plan.ts';
import { planOf } from '../../faults/outages/plan/plans.ts';

const SMALL = { seed: 1, commands: 150, perSecond: 60, direct: false } as const;

type Short = Omit<EpisodeOptions, keyof typeof SMALL> & { readonly commands?: number };

async function run(options: Short): Promise<Episode> {
  const episode = await runEpisode({ ...SMALL, ...options });
  if (episode.report.green) rmSync(episode.folder, { recursive: true });
  return episode;
}

function expectGood({ report, faults, folder }: Episode, commands: number, done: number): void {
  const { violations, unproven, counts, green } = report;
  expect({ violations, unproven, folder: green ? null : folder }).toEqual({
    violations: [],
    unproven: [],
    folder: null,
  });
  expect(counts).toMatchObject({ attempts: commands, lost: 0, unexpected: 0, duplicates: 0 });
  expect(faults).toBe(done);
}

describe('three relays over one Redis', () => {
  test('lose nothing, run nothing twice and take over everything from a relay that is killed', async () => {
    // Handlers are slow, so that the relay holds commands whenever it is killed.
    const plan: Plan = { ...planOf('F1'), workMs: 1_000, respondMs: 10_000, gap: [2_000, 2_000] };
    const episode = await run({ plan, faults: 1 });
    expectGood(episode, SMALL.commands, 1);
    expect(episode.report.says.join()).toContain('at 1 kills');
  });

  test('that own partitions lose nothing when an owner is killed, and a relay while they take over', async () => {
    const plan: Plan = { ...planOf('F26'), respondMs: 10_000, gap: [1_000, 1_000] };
    const episode = await run({ plan, faults: 2, owned: true });
    expectGood(episode, SMALL.commands, 2);
    expect(episode.report.says.join()).toContain('at work 1 of 2: takeover 1');
  });

  test('lose nothing and run nothing twice while their connections to Redis break and two callers request every command', async () => {
    const plan: Plan = { ...planOf('F8'), doubled: 1, respondMs: 10_000, gap: [500, 1_000], hold: [500, 1_000] };
    expectGood(await run({ plan, faults: 3 }), SMALL.commands, 3);
  });

  test('are found out by the checker when ends of commands leave reservations behind', async () => {
    const leak = MUTANTS.find(({ mode, name }) => mode === 'shared' && name === 'leak');
    if (!leak) throw new Error('there is no such mutant');
    await using planted = plantMutant(leak);
    const { report, folder } = await run({ plan: planOf('F0'), faults: 0, commands: 50, source: planted.source });
    rmSync(folder, { recursive: true });
    expect(new Set(report.violations.map(({ invariant }) => invariant))).toEqual(
      // The audit of counters finds the reservations too.
      new Set(['I6', 'counters']),
    );
  });
});
