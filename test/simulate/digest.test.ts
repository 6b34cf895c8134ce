/** Tests that a seed gives the same digest in processes that collect garbage at other times. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { STORES, WORKLOADS } from '../../faults/simulate/workloads.ts';

const PROGRAM = join(import.meta.dirname, '..', '..', 'faults', 'simulate', 'run.ts');
/** A heap that is collected often, and one that is collected seldom or never. */
const HEAPS = [
  ['--max-old-space-size=192', '--max-semi-space-size=1'],
  ['--max-old-space-size=2048', '--max-semi-space-size=64'],
] as const;
const STEPS = 40;

type Result = { readonly digest: string; readonly events: number; readonly failed: number };

/** Runs a seed with each workload, in a process of its own. */
async function resultOf(store: string, heap: readonly string[], seed = 1): Promise<Result> {
  const size = ['--seed', String(seed), '--steps', String(STEPS)];
  const args = [...heap, PROGRAM, '--acts', Object.keys(WORKLOADS).join(), '--store', store, ...size, '--json'];
  const { stdout } = await promisify(execFile)(process.execPath, args, { encoding: 'utf8' });
  return JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') as Result;
}

describe('the digest of a seed', () => {
  it.each(Object.keys(STORES))('is the same with another heap: %s', async (store) => {
    const [often, seldom] = await Promise.all([resultOf(store, HEAPS[0]), resultOf(store, HEAPS[1])]);
    expect(often).toEqual(seldom);
    expect(often.failed).toBe(0);
    expect(often.events).toBeGreaterThan(1_000);
  });

  it('is another one with other seeds', async () => {
    const [one, other] = await Promise.all([1, 2].map((seed) => resultOf('directory', HEAPS[1], seed)));
    expect(one?.digest).not.toBe(other?.digest);
  });
});
