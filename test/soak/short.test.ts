/** Tests in a short soak run that the heap of a relay stays flat, and that a run over Redis measures its Redis. */
import { expect, test } from 'vitest';
import { judgeSlope } from '../../faults/soak/slope.ts';
import { soak, soakRounds } from '../../faults/soak/soak.ts';

const ROUNDS = 7;
const CALLS = 1_200;
/** The number of rounds after which the code is compiled and the caches are full. */
const WARM_UP = 4;

test('the memory that calls leave behind is freed after the hour: the heap of a relay stays flat', async () => {
  const { samples, calls, wrong } = await soakRounds({ rounds: ROUNDS, callsOfRound: CALLS });
  expect(wrong).toEqual([]);
  expect(calls).toBe(ROUNDS * CALLS);
  const judged = judgeSlope(samples, WARM_UP);
  expect(judged, JSON.stringify(samples)).toMatchObject({ flat: true, samples: ROUNDS - WARM_UP + 1 });
});

test('a run over Redis ends every call, counts the keys and the memory of Redis, and finds its counters right', async () => {
  const minutes = 0.05;
  const { samples, calls, wrong, miscounts } = await soak({
    minutes,
    rate: 60,
    everyMinutes: minutes,
    hourMs: 60_000,
    shared: true,
  });
  expect({ wrong, miscounts }).toEqual({ wrong: [], miscounts: [] });
  expect(calls).toBeGreaterThan(50);
  expect(samples).toMatchObject([{ store: { keys: expect.any(Number), bytes: expect.any(Number) } }]);
  expect(samples[0]?.store?.keys).toBeGreaterThan(10);
});
