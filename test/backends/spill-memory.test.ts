/** Tests large payloads in memory: the heap shrinks when they are discarded or expire. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { createMemorySpill } from '../../src/backends/spill/memory.ts';
import type { SpillRef, SpillStore } from '../../src/core/history/message.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { FakeClock } from '../kit/clock.ts';
import { spillShares, textOf } from '../contract/spill.ts';

const MIB = 1024 * 1024;
const OBJECTS = 30;
const EXPIRES_MS = 1_000;

setFlagsFromString('--expose-gc');
const collect: (options: object) => Promise<void> = runInNewContext('gc');

async function heapBytes(): Promise<number> {
  await collect({ type: 'major', execution: 'async' });
  return process.memoryUsage().heapUsed;
}

async function fill(store: SpillStore, clock: FakeClock): Promise<SpillRef[]> {
  const refs: SpillRef[] = [];
  for (let i = 0; i < OBJECTS; i++)
    refs.push(await store.put(textOf(MIB, String(i % 10)), clock.now() + EXPIRES_MS, 'alice'));
  return refs;
}

it.each<[string, (parts: { store: SpillStore; clock: FakeClock; refs: SpillRef[] }) => Promise<void>]>([
  [
    'discarded',
    async ({ store, refs }) => {
      for (const ref of refs) await store.discard(ref);
    },
  ],
  [
    'removed because their time is over',
    async ({ store, clock }) => {
      await clock.advance(EXPIRES_MS);
      await store.clean();
    },
  ],
  [
    'dropped because the total is used up',
    async ({ store, clock }) => {
      const other = await store.put(textOf(OBJECTS * MIB), clock.now() + EXPIRES_MS, 'alice');
      await store.discard(other);
    },
  ],
])('payloads that are %s leave the memory of the process', async (_how, drop) => {
  const clock = new FakeClock(0);
  const before = await heapBytes();
  const store = createMemorySpill(clock, createCrypto('x'), spillShares((OBJECTS + 1) * MIB));
  const refs = await fill(store, clock);
  const full = await heapBytes();
  expect(full - before).toBeGreaterThan(0.9 * OBJECTS * MIB);
  await drop({ store, clock, refs });
  expect((await heapBytes()) - before).toBeLessThan(0.2 * OBJECTS * MIB);
});
