import { expect, test } from 'vitest';
import { fuzz } from '../../faults/fuzz/fuzz.ts';

/** A process of a relay, and a machine that others use. */
const LONG = 120_000;
const SEED = 20_261_122;

/** What costs too much is judged by `npm run fuzz`: here others' load would be. */
test(
  'hostile frames, requests and documents end no relay, and each refusal states its cause, with the fast path and without',
  async () => {
    const counts = { frames: 4_000, requests: 1_500, documents: 250 };
    const { kinds } = await fuzz({ seed: SEED, counts, most: 5, warmUp: 0 });
    expect(kinds.flatMap(({ findings }) => findings)).toEqual([]);
    expect(kinds.map(({ kind, sent }) => [kind, sent])).toEqual(Object.entries(counts));
  },
  LONG,
);
