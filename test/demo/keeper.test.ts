/** Tests the part of the demo that restarts its clients. */
import { expect, it } from 'vitest';
import { Keeper, type KeeperClock, type SupervisedRun } from '../../demo/keeper.ts';

type FakeRun = SupervisedRun & { readonly number: number; readonly over: () => void; requested: boolean };

/** Creates runs that end on request, and a clock that counts its waits and ends them on request. */
function setUp() {
  const runs: FakeRun[] = [];
  const waits: { readonly ms: number; readonly over: () => void }[] = [];
  let now = 0;
  const start = (): FakeRun => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const run: FakeRun = {
      number: runs.length,
      ended: promise,
      over: resolve,
      requested: false,
      async end() {
        run.requested = true;
        resolve();
      },
    };
    runs.push(run);
    return run;
  };
  const clock: KeeperClock = {
    now: () => now,
    sleep(ms, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      waits.push({ ms, over: resolve });
      signal.addEventListener('abort', () => reject(signal.reason));
      return promise;
    },
  };
  /** Ends a run. `lastedMs` is the time for which it lasted. */
  const fall = async (lastedMs: number): Promise<void> => {
    now += lastedMs;
    runs.at(-1)?.over();
    await settle();
  };
  const wake = async (): Promise<void> => {
    waits.at(-1)?.over();
    await settle();
  };
  return { keeper: new Keeper(start, clock), runs, waits, fall, wake };
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it('waits longer and longer before it restarts a run that ends at once, up to half a minute', async () => {
  const { keeper, waits, fall, wake } = setUp();
  for (let i = 0; i < 8; i++) {
    await fall(10);
    await wake();
  }
  expect(waits.map(({ ms }) => ms)).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  expect(keeper.current.number).toBe(8);
});

it('restarts soon a run that was stable', async () => {
  const { waits, fall, wake } = setUp();
  await fall(10);
  await wake();
  await fall(60_000);
  expect(waits.map(({ ms }) => ms)).toEqual([1000, 500]);
});

it('starts a new run in place of the old one only when that has ended, and no third', async () => {
  const { keeper, runs, waits } = setUp();
  const replaced = keeper.replace();
  expect(runs.map(({ requested }) => requested)).toEqual([true]);
  await replaced;
  await settle();
  expect(runs.map(({ requested }) => requested)).toEqual([true, false]);
  expect(keeper.current.number).toBe(1);
  expect(waits).toEqual([]);
});

it('keeps a replacement run going', async () => {
  const { keeper, runs, fall, wake } = setUp();
  await keeper.replace();
  await fall(60_000);
  await wake();
  expect([runs.length, keeper.current.number]).toEqual([3, 2]);
});

it('ends everything when it is closed, and starts nothing more, not even pending restarts', async () => {
  const { keeper, runs, waits, fall } = setUp();
  const replaced = keeper.replace();
  await keeper[Symbol.asyncDispose]();
  await replaced;
  expect(runs.map(({ requested }) => requested)).toEqual([true]);
  await settle();
  expect(waits).toEqual([]);
  const second = setUp();
  await second.fall(10);
  await second.keeper[Symbol.asyncDispose]();
  await settle();
  expect(second.runs).toHaveLength(1);
  await second.keeper.replace();
  await fall(10);
  expect([runs.length, second.runs.length]).toEqual([1, 1]);
});
