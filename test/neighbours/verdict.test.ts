/** Tests the verdict about an attack: when an honest user suffered too much. */
import { describe, expect, test } from 'vitest';
import { ATTACKS, attackOf } from '../../faults/neighbours/attacks/attacks.ts';
import type { Phase } from '../../faults/neighbours/figures.ts';
import { faultsOf, p99Bound, tableOf, totalOfShares, type Episode } from '../../faults/neighbours/verdict.ts';

const MIB = 1024 * 1024;
const QUIET: Phase = {
  ...{ calls: 100, wrong: [], p50: 2, p99: 10, reads: 10, readsWrong: [], readP99: 5 },
  ...{ health: 50, healthWrong: [], healthMax: 20, trials: 10, trialsWrong: [] },
};
const GOOD: Episode = {
  attack: 'wide-variables',
  mode: 'direct',
  alone: QUIET,
  beside: QUIET,
  wholeness: { ids: 200, idsBroken: [], rowsMissing: [] },
  operations: { requests: 500 },
  memory: [{ base: 200 * MIB, peak: 300 * MIB }],
  ended: [],
};
const TIMING = { timing: true };

describe('an episode', () => {
  test('without faults passes', () => {
    expect(faultsOf(GOOD, TIMING)).toEqual([]);
  });

  test.each<[string, Partial<Episode>, RegExp]>([
    ['a call ended otherwise', { beside: { ...QUIET, wrong: ['beside-1: expired'] } }, /1 calls did not end/],
    ['the operator was refused', { beside: { ...QUIET, readsWrong: ['/metrics: 429'] } }, /1 operator's reads/],
    ['/healthz was refused', { beside: { ...QUIET, healthWrong: ['/healthz: 429'] } }, /1 requests of \/healthz/],
    ['/healthz took long', { beside: { ...QUIET, healthMax: 251 } }, /\/healthz took 251 ms, at most 250/],
    [
      'a newcomer was refused',
      { beside: { ...QUIET, trialsWrong: ['newcomer: store_full'] } },
      /1 trials of a new user/,
    ],
    [
      'an id ran again',
      { wholeness: { ids: 200, idsBroken: ['alone-1 ran again'], rowsMissing: [] } },
      /ids were not kept/,
    ],
    ['a row is gone', { wholeness: { ids: 200, idsBroken: [], rowsMissing: ['alone-1: 0 of 2 rows'] } }, /lost rows/],
    ['calls took long', { beside: { ...QUIET, p99: 101 } }, /p99 101 ms, at most 100/],
    [
      'the relay grew beyond its totals',
      { memory: [{ base: 200 * MIB, peak: 200 * MIB + 1.4 * totalOfShares() }] },
      /MiB resident/,
    ],
    ['a relay ended', { ended: ['a'] }, /a relay ended/],
    ['the attack did nothing', { operations: {} }, /proves nothing/],
    ['the honest user did nothing', { beside: { ...QUIET, calls: 0 } }, /proves nothing/],
    ['the operator read nothing', { beside: { ...QUIET, reads: 0 } }, /proves nothing/],
    ['nobody read /healthz', { beside: { ...QUIET, health: 0 } }, /proves nothing/],
    ['no trial was made', { beside: { ...QUIET, trials: 0 } }, /proves nothing/],
  ])('with %s fails', (_what, over, fault) => {
    expect(faultsOf({ ...GOOD, ...over }, TIMING).join()).toMatch(fault);
  });

  test('is not judged by time if time is excluded', () => {
    expect(faultsOf({ ...GOOD, beside: { ...QUIET, p99: 5_000, healthMax: 5_000 } }, { timing: false })).toEqual([]);
  });

  test('may be five times as slow as alone', () => {
    expect([p99Bound(10), p99Bound(30)]).toEqual([100, 150]);
  });

  test('is a row of the table', () => {
    const [, , row] = tableOf([GOOD], TIMING).split('\n');
    expect(row).toBe(
      '| wide-variables | direct | 100 | 100 | 10 ms | 10 ms | 20 ms | 70 of 70 | 200 of 200 | all | 200 to 300 MiB | 500 requests | holds |',
    );
  });
});

test('attacks have unique names, and an unknown name is refused', () => {
  expect(new Set(ATTACKS.map(({ name }) => name)).size).toBe(ATTACKS.length);
  expect(() => attackOf('nothing')).toThrow('There is no attack nothing');
});
