/** Runs the fuzzer for a short time and expects no finding. */
import { expect, test } from 'vitest';
import { TURN_MS } from '../../faults/fuzz/engine.ts';
import { fuzz } from '../../faults/fuzz/fuzz.ts';

const SEED = 20_261_122;

/**
 * The limit of one turn of the relay's event loop, in milliseconds: ten times that of `npm run fuzz`. The faults that
 * this test looks for take far longer.
 */
const TURN = 10 * TURN_MS;

test('hostile frames, requests and documents crash no relay, and each refusal states its cause, with the fast path and without', async () => {
  const counts = { frames: 4_000, requests: 1_500, documents: 250 };
  const { kinds } = await fuzz({ seed: SEED, counts, most: 5, warmUp: 0, turnMs: TURN });
  expect(kinds.flatMap(({ findings }) => findings)).toEqual([]);
  expect(kinds.map(({ kind, sent }) => [kind, sent])).toEqual(Object.entries(counts));
});
