/**
 * Tests dispatches that are requested again, over the stores that other processes use. Only a repetition of the attempt
 * that marked the command gets the command again.
 */
import { afterAll, afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import { toJson } from '../../src/core/json.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { FakeClock } from '../kit/clock.ts';
import { admission, ALICE, BOUND, ending, keyFor, openNode, type Bench } from '../contract/kit/bench.ts';
import { redisBench } from '../contract/kit/redis-bench.ts';
import { openDurable, removeFolders } from './kit/durable.ts';

const SKIP = { kind: 'skip' };

function benchOf(clock: FakeClock, backend: Bench['backend']): Bench {
  return {
    backend,
    advance: (ms) => clock.advance(ms),
    now: () => clock.now(),
    setBack: (ms) => clock.stepWall(-ms),
    close: async () => void (await backend.close()),
  };
}

/** The backend of a process whose acts are requested by other processes, too. */
async function memoryBench(): Promise<Bench> {
  const clock = new FakeClock();
  const { sha256 } = createCrypto('test');
  return benchOf(clock, createMemoryBackend({ markSecret: 'x', clock, log: silentLog, sha256, keepsAttempts: true }));
}

async function durableBench(): Promise<Bench> {
  const clock = new FakeClock();
  const { backend } = await openDurable({ clock, memory: { keepsAttempts: true } });
  return benchOf(clock, backend);
}

afterAll(removeFolders);

describe.each([
  ['Redis', redisBench],
  ['memory', memoryBench],
  ['a data directory', durableBench],
])('a dispatch over %s that is requested again', (_name, open: () => Promise<Bench>) => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await open();
    await openNode(bench);
    await bench.backend.commands.rebind(ALICE, BOUND, 'up');
    await bench.backend.commands.admit(admission('c1'));
  });
  afterEach(() => bench.close());
  const dispatch = (attempt?: string, over: Partial<typeof BOUND> = {}) =>
    bench.backend.commands.dispatch(keyFor('c1'), { ...BOUND, ...over }, attempt);

  it('gets the same answer if it is the attempt that set the mark, params included, and counts once', async () => {
    const first = await dispatch('7');
    expect(first).toMatchObject({ kind: 'dispatch', params: toJson({ n: 1 }), command: { attempts: 1 } });
    expect(await dispatch('7')).toEqual(first);
  });

  it('is skipped for every other attempt, link and node', async () => {
    await dispatch('7');
    expect(await dispatch('8')).toEqual(SKIP);
    expect(await dispatch()).toEqual(SKIP);
    await bench.backend.commands.rebind(ALICE, { ...BOUND, epoch: 2 }, 'up');
    expect(await dispatch('7')).toEqual(SKIP);
    expect(await dispatch('7', { epoch: 2 })).toEqual(SKIP);
    expect(await dispatch('7', { nodeId: 'n2' })).toEqual(SKIP);
  });

  it('is skipped once the client has reported, or the command ended or is due', async () => {
    await dispatch('7');
    await bench.backend.commands.report(keyFor('c1'), { instanceId: 'i1', kind: 'ack', payload: null, kept: null });
    expect(await dispatch('7')).toEqual(SKIP);
    await bench.backend.commands.finish(keyFor('c1'), ending());
    expect(await dispatch('7')).toEqual(SKIP);
    await bench.backend.commands.admit(admission('c2'));
    const again = () => bench.backend.commands.dispatch(keyFor('c2'), BOUND, '8');
    expect(await again()).toMatchObject({ kind: 'dispatch' });
    await bench.advance(30_000);
    expect(await again()).toEqual(SKIP);
  });

  it('gets the same answer if the admission recorded it, and the admission is repeated', async () => {
    await dispatch('7');
    const claim = { binding: BOUND, attempt: '8' };
    const made = { chosenId: false, digest: '', claim };
    const first = await bench.backend.commands.admit(admission('c2', made));
    expect(first).toMatchObject({ kind: 'admitted', dispatch: { params: toJson({ n: 1 }) } });
    if (first.kind !== 'admitted') throw new Error('not admitted');
    const { dispatch: marked } = first;
    expect(await bench.backend.commands.admit(admission('c2', { ...made, repeated: true }))).toEqual({
      kind: 'admitted',
      command: marked?.kind === 'dispatch' ? marked.command : null,
      dispatch: marked,
    });
    const other = { ...made, repeated: true, claim: { ...claim, attempt: '9' } };
    expect(await bench.backend.commands.admit(admission('c2', other))).toMatchObject({ kind: 'attached' });
    expect(await bench.backend.commands.dispatch(keyFor('c2'), BOUND, '8')).toEqual(marked);
  });
});

describe('a dispatch over Redis', () => {
  it('keeps the params no longer than the command lives', async () => {
    const bench = await redisBench();
    onTestFinished(() => bench.close());
    const { store, backend } = bench;
    await openNode(bench);
    await backend.commands.rebind(ALICE, BOUND, 'up');
    await backend.commands.admit(admission('c1'));
    const client = store.key(store.partitionOfUser('alice'), 'client', store.hash('alice', 'tab'));
    const params = async () => (await store.read([['HGET', client, 'pc1']]))[0];
    await backend.commands.dispatch(keyFor('c1'), BOUND, '7');
    const before = await params();
    await backend.commands.finish(keyFor('c1'), ending());
    expect([before, await params()]).toEqual([toJson({ n: 1 }), null]);
  });
});
