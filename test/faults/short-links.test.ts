/** Runs the faults of clients' links in a short form, one after the other, with real processes. */
import { rmSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { runEpisode } from '../../faults/outages/episode.ts';
import type { Plan } from '../../faults/outages/plan/plan.ts';
import { scheduleOf } from '../../faults/outages/plan/schedule.ts';
import { planOf } from '../../faults/outages/plan/plans.ts';

const COMMANDS = 300;
/** A seed that draws each kind of fault once. */
const SEED = 2;
/** Clients are frozen for longer than their commands have, so what they receive at last is too late. */
const PLAN: Plan = {
  ...planOf('F23'),
  kinds: ['links-hello', 'clients-freeze', 'links-deaf', 'links-mute'],
  rolling: true,
  gap: [500, 1_000],
  hold: [3_500, 4_000],
  connectMs: 1_500,
  respondMs: 3_000,
};
const MODES = [
  ['one relay with a data directory', { direct: true, durable: true }],
  ['three relays over one Redis', { direct: false }],
] as const;

test('each kind of fault is drawn', () => {
  for (const targets of [1, 3]) {
    const drawn = scheduleOf({ plan: PLAN, seed: SEED, faults: PLAN.kinds.length, targets }).map(({ kind }) => kind);
    expect(drawn.toSorted()).toEqual(PLAN.kinds.toSorted());
  }
});

describe.each(MODES)('%s', (_name, mode) => {
  test('loses nothing, runs nothing twice and nothing late, and writes nothing again that arrived', async () => {
    const options = { plan: PLAN, seed: SEED, commands: COMMANDS, perSecond: 40, faults: PLAN.kinds.length, ...mode };
    const { report, faults, folder } = await runEpisode(options);
    const { unproven, counts } = report;
    // How soon a caller learns of an end depends on how busy the machine is.
    const violations = report.violations.filter(
      ({ invariant, what }) => invariant !== 'prompt' && what !== 'ended too late',
    );
    expect({ violations, unproven, folder: violations.length === 0 ? null : folder }).toEqual({
      violations: [],
      unproven: [],
      folder: null,
    });
    expect(counts).toMatchObject({ attempts: COMMANDS, lost: 0, unexpected: 0, duplicates: 0 });
    expect(report.outcomes['completed']).toBeGreaterThan(COMMANDS / 4);
    expect(faults).toBe(PLAN.kinds.length);
    rmSync(folder, { recursive: true });
  });
});
