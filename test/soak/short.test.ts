/** Tests in a short soak run that the heap of a relay stays flat. */
import { expect, test } from 'vitest';
import { judgeSlope } from '../../faults/soak/slope.ts';
import { soakRounds } from '../../faults/soak/soak.ts';

/** The timeout of a test in milliseconds. It covers the start of a relay process on a busy machine. */
const LONG = 120_000;
const ROUNDS = 7;
const CALLS = 1_200;
/** The number of rounds after which the code is compiled and the caches are full. */
const WARM_UP = 4;

test(
  'the memory that calls leave behind is freed after the hour: the heap of a relay stays flat',
  async () => {
    const { samples, calls, wrong } = await soakRounds({ rounds: ROUNDS, callsOfRound: CALLS });
    expect(wrong).toEqual([]);
    expect(calls).toBe(ROUNDS * CALLS);
    const judged = judgeSlope(samples, WARM_UP);
    expect(judged, JSON.stringify(samples)).toMatchObject({ flat: true, samples: ROUNDS - WARM_UP + 1 });
  },
  LONG,
);
