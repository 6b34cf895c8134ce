/** Tests how a process that ends hands its partitions over. */
import { beforeEach, expect, it } from 'vitest';
import { Departure } from '../../src/backends/owned/departure.ts';
import { FakeClock, settle } from '../kit/clock.ts';

const LEASE_MS = 2_000;

let clock: FakeClock;
let owned: number[];
let next: string | null;
let asked: (readonly [to: string, partition: number])[];
let announcements: number;
let mayGive: boolean;
beforeEach(() => {
  clock = new FakeClock();
  owned = [1, 2, 3, 4];
  next = 'b';
  asked = [];
  announcements = 0;
  mayGive = true;
});

/** Begins, and returns what ends the wait for a step: a partition that was given, or a change of who is there. */
async function begin() {
  const departure = new Departure({
    clock,
    leaseMs: LEASE_MS,
    owned: () => owned.map((number) => ({ number })),
    nextOf: () => next,
    mayGive: () => mayGive,
    announce: () => void announcements++,
    ask: (to, partition) => void asked.push([to, partition]),
  });
  const state = { isOver: false };
  void departure.run().then(() => (state.isOver = true));
  await settle();
  const changed = async (): Promise<void> => {
    departure.changed();
    await settle();
  };
  const give = async (partition: number): Promise<void> => {
    owned = owned.filter((other) => other !== partition);
    await changed();
  };
  return { state, changed, give };
}

it('asks for one partition at a time, and ends with the last one', async () => {
  const { state, give, changed } = await begin();
  expect([announcements, asked]).toEqual([1, [['b', 1]]]);
  await changed();
  await give(3);
  expect(asked).toEqual([['b', 1]]);
  await give(1);
  expect(asked.at(-1)).toEqual(['b', 2]);
  await give(2);
  expect([state.isOver, asked.length]).toEqual([false, 3]);
  await give(4);
  expect([state.isOver, announcements]).toEqual([true, 1]);
});

it('asks for another one when a next owner has not answered in time, and says again that it ends', async () => {
  const { give } = await begin();
  await clock.advance(LEASE_MS / 4);
  expect([announcements, asked]).toEqual([
    2,
    [
      ['b', 1],
      ['b', 2],
    ],
  ]);
  await give(2);
  expect(asked.at(-1)).toEqual(['b', 3]);
});

it.each([
  ['four leases are over', async () => clock.advance(4 * LEASE_MS)],
  ['no other process is left', async (changed: () => Promise<void>) => ((next = null), changed())],
  ['nothing can be given any more', async (changed: () => Promise<void>) => ((mayGive = false), changed())],
])('ends when %s', async (_when, happen) => {
  const { state, changed } = await begin();
  await clock.advance(LEASE_MS);
  expect(state.isOver).toBe(false);
  await happen(changed);
  expect(state.isOver).toBe(true);
});

it('does nothing without another process', async () => {
  next = null;
  const { state } = await begin();
  expect([state.isOver, announcements, asked]).toEqual([true, 0, []]);
});
