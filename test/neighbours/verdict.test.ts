/** Tests the verdict about an attack: when an honest user suffered too much. */
import { describe, expect, test } from 'vitest';
import { ATTACKS, attackOf } from '../../faults/neighbours/attacks/attacks.ts';
import { phasesTogether, type Phase } from '../../faults/neighbours/figures.ts';
import {
  faultsOf,
  p99Bound,
  tableOf,
  totalOfShares,
  type Episode,
  type FullTime,
} from '../../faults/neighbours/verdict.ts';

const MIB = 1024 * 1024;
const QUIET: Phase = {
  ...{ calls: 100, wrong: [], refused: 0, p50: 2, p99: 10, reads: 10, readsWrong: [], readP99: 5 },
  ...{ health: 50, healthWrong: [], healthMax: 20, trials: 10, trialsWrong: [] },
};
const GOOD: Episode = {
  attack: 'wide-variables',
  mode: 'direct',
  alone: QUIET,
  beside: QUIET,
  full: null,
  wholeness: { ids: 200, idsBroken: [], rowsMissing: [] },
  operations: { requests: 500 },
  memory: [{ base: 200 * MIB, peak: 300 * MIB }],
  disk: null,
  ended: [],
};
type Filled = FullTime & { readonly skipped: null };
/** A time in which the store was full, and all promises were kept. */
const FULL: Filled = {
  skipped: null,
  during: { ...QUIET, calls: 70, refused: 50, reads: 42, health: 35, trials: 0 },
  held: { calls: 10, wrong: [] },
  noticed: true,
  roomMs: 900,
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
    [
      'the directory grew too much',
      { disk: { peak: 317 * MIB, snapshot: 10 * MIB } },
      /317 MiB in the directory, at most 316/,
    ],
    ['/healthz took long', { beside: { ...QUIET, healthMax: 251 } }, /\/healthz took 251 ms, at most 250/],
    [
      '/healthz took long on a slow machine',
      { alone: { ...QUIET, healthMax: 60 }, beside: { ...QUIET, healthMax: 301 } },
      /\/healthz took 301 ms, at most 300/,
    ],
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

describe('an episode whose store was full for a while', () => {
  const over = (full: Partial<Filled>): string =>
    faultsOf({ ...GOOD, mode: 'directory', full: { ...FULL, ...full } }, TIMING).join();

  test('passes if calls were refused and everything else held', () => {
    expect(over({})).toBe('');
  });

  test('passes if the store could not be filled on this machine', () => {
    expect(faultsOf({ ...GOOD, full: { skipped: 'no mount' } }, TIMING)).toEqual([]);
  });

  const { during } = FULL;
  test.each<[string, Partial<Filled>, RegExp]>([
    ['a call ended otherwise', { during: { ...during, wrong: ['full-1: internal'] } }, /1 calls of a full store/],
    ['the user could not read', { during: { ...during, readsWrong: ['/commands: 503'] } }, /1 reads of a full store/],
    ['/healthz was refused', { during: { ...during, healthWrong: ['/healthz: 503'] } }, /1 requests of \/healthz/],
    ['a command lost its end', { held: { calls: 10, wrong: ['held-1: pending'] } }, /1 commands that ended/],
    ['a relay noticed no room', { roomMs: null }, /did not notice that there is room/],
    ['no relay noticed that it was full', { noticed: false }, /no relay said that its store was full/],
    ['no call was made', { during: { ...during, calls: 0 } }, /did nothing while the store was full/],
    ['nothing was read', { during: { ...during, reads: 0 } }, /did nothing while the store was full/],
    ['nobody read /healthz', { during: { ...during, health: 0 } }, /did nothing while the store was full/],
    ['no command was in progress', { held: { calls: 0, wrong: [] } }, /did nothing while the store was full/],
  ])('fails if %s', (_what, full, fault) => {
    expect(over(full)).toMatch(fault);
  });

  test('has its own columns in the table', () => {
    const [head, , row] = tableOf([{ ...GOOD, full: FULL }], TIMING).split('\n');
    expect(head).toContain(
      '| mode | refused while full | completed while full | ended while full | reads while full |',
    );
    expect(row).toContain('| direct | 50 | 20 | 10 of 10 | 77 of 77 | 900 ms | 100 | 100 |');
  });

  test('has the calls of both sides, and the longer times', () => {
    const slow = { ...QUIET, wrong: ['after-1: expired'], p99: 30, healthMax: 10 };
    expect(phasesTogether(QUIET, slow)).toEqual({
      ...{ ...QUIET, calls: 200, wrong: ['after-1: expired'], p99: 30 },
      ...{ reads: 20, health: 100, trials: 20 },
    });
  });
});

test('attacks have unique names, and an unknown name is refused', () => {
  expect(new Set(ATTACKS.map(({ name }) => name)).size).toBe(ATTACKS.length);
  expect(() => attackOf('nothing')).toThrow('There is no attack nothing');
});
