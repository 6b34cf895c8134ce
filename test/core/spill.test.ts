/** Tests large payloads in core: when they are spilled, and what happens without room. */
import { describe, expect, it } from 'vitest';
import { createMemorySpill } from '../../src/backends/spill/memory.ts';
import { CallboardError } from '../../src/core/errors.ts';
import type { Message, SpillRef, SpillStore } from '../../src/core/history/message.ts';
import { toJson, type JsonText } from '../../src/core/json.ts';
import { INLINE_PAYLOAD_BYTES } from '../../src/core/limits.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { settle, type FakeClock } from '../kit/clock.ts';
import { admin, connect, testCore, user, type TestClient, type TestCore } from '../kit/core.ts';

const alice = user('alice');
const LARGE = { text: 'x'.repeat(20_000) };
const RETENTION_MS = 60_000;
const KEY = { userId: 'alice', clientId: 'tab', commandId: 'c1' };

/** A memory spill store that records its calls, and is full while `full` is set. */
class Watched implements SpillStore {
  readonly kind = 'watched';
  readonly managed: boolean;
  full = false;
  readonly puts: SpillRef[] = [];
  readonly discards: string[] = [];
  cleaned = 0;
  readonly #of: SpillStore;

  constructor(clock: FakeClock, managed = true) {
    this.#of = createMemorySpill(clock, createCrypto('x'));
    this.managed = managed;
  }

  async put(text: JsonText, expiresAt: number, userId: string): Promise<SpillRef> {
    if (this.full) throw new CallboardError('store_full', 'The payload store is full.');
    const ref = await this.#of.put(text, expiresAt, userId);
    this.puts.push(ref);
    return ref;
  }

  discard(ref: SpillRef): void {
    this.discards.push(ref.name);
    void this.#of.discard(ref);
  }

  read(ref: SpillRef) {
    return this.#of.read(ref);
  }

  clean(): number {
    this.cleaned++;
    return 1;
  }

  /** The number of objects that are still stored, because a message refers to each. */
  get left(): number {
    return this.puts.length - this.discards.length;
  }
}

type Stage = TestCore & AsyncDisposable & { readonly store: Watched };

async function stage(managed = true): Promise<Stage> {
  const stores: Watched[] = [];
  const test = await testCore({
    history: { retentionMs: RETENTION_MS },
    spill(clock) {
      const store = new Watched(clock, managed);
      stores.push(store);
      return store;
    },
  });
  return { ...test, store: stores[0] ?? fail() };
}

function fail(): never {
  throw new Error('no store');
}

function call({ core }: TestCore, over: { params?: unknown; commandId?: string; waitFor?: 'admitted' } = {}) {
  const { params = { n: 1 }, ...rest } = over;
  return core.rpc.invoke(alice, { ...KEY, action: 'open', params: toJson(params), ...rest });
}

async function rows({ core }: TestCore, kind?: string): Promise<readonly Message[]> {
  const { nodes } = await core.history.ofCommand(admin, 'alice', 'c1', {});
  return nodes.filter((row) => kind === undefined || row.kind === kind);
}

async function dispatched(test: TestCore): Promise<{ client: TestClient; pending: ReturnType<typeof call> }> {
  const client = await connect(test.core, alice);
  const pending = call(test);
  await settle();
  return { client, pending };
}

describe('a payload', () => {
  it('stays in its message up to 16 KiB of UTF-8, and is spilled above', async () => {
    await using test = await stage();
    await connect(test.core, alice);
    const wrapped = (size: number, unit: string) => ({ t: unit.repeat((size - 8) / Buffer.byteLength(unit)) });
    for (const unit of ['x', 'é']) {
      const before = test.store.puts.length;
      await call(test, {
        params: wrapped(INLINE_PAYLOAD_BYTES, unit),
        commandId: `${unit === 'x'}-1`,
        waitFor: 'admitted',
      });
      expect(test.store.puts).toHaveLength(before);
      await call(test, {
        params: wrapped(INLINE_PAYLOAD_BYTES + Buffer.byteLength(unit), unit),
        commandId: `${unit === 'x'}-2`,
        waitFor: 'admitted',
      });
      expect(test.store.puts).toHaveLength(before + 1);
    }
  });

  it('that is large reaches its client whole, and history as a readable reference', async () => {
    await using test = await stage();
    const client = await connect(test.core, alice);
    await call(test, { params: LARGE, waitFor: 'admitted' });
    expect(client.sent[0]?.params).toBe(JSON.stringify(LARGE));
    const [row] = await rows(test, 'command');
    expect(row).toMatchObject({ payload: null, payloadBytes: JSON.stringify(LARGE).length, spill: test.store.puts[0] });
    expect(await test.core.history.payloads(admin, row ? [row] : [])).toEqual([
      { state: 'spilled_included', text: JSON.stringify(LARGE) },
    ]);
  });

  it('expires with its message, and nothing extends that', async () => {
    await using test = await stage();
    await connect(test.core, alice);
    await call(test, { params: LARGE, waitFor: 'admitted' });
    const [row] = await rows(test, 'command');
    if (!row) throw new Error('no row');
    expect(row.spill?.expiresAt).toBe(row.at + RETENTION_MS);
    await test.clock.advance(1000);
    await test.core.history.payloads(admin, [row]);
    await test.clock.advance(RETENTION_MS - 1001);
    expect(await test.core.history.payloads(admin, [row])).toMatchObject([{ state: 'spilled_included' }]);
    expect(await rows(test, 'command')).toHaveLength(1);
    await test.clock.advance(1);
    expect(await test.core.history.payloads(admin, [row])).toEqual([{ state: 'expired', text: null }]);
    expect(await rows(test, 'command')).toHaveLength(0);
  });
});

describe('an answer with many large payloads', () => {
  it('lets the event loop do other work between its mebibytes', async () => {
    await using test = await stage();
    await connect(test.core, alice);
    await call(test, { params: { text: 'x'.repeat(500_000) }, waitFor: 'admitted' });
    const [row] = await rows(test, 'command');
    if (!row) throw new Error('no row');
    let turns = 0;
    const countTurn = (): void => {
      turns++;
      timer = setImmediate(countTurn);
    };
    let timer = setImmediate(countTurn);
    const shown = await test.core.history.payloads(admin, [row, row, row, row, row, row]);
    clearImmediate(timer);
    expect(shown.map(({ state }) => state)).toEqual(Array.from({ length: 6 }, () => 'spilled_included'));
    expect(turns).toBeGreaterThanOrEqual(2);
  });
});

describe('params that cannot be stored', () => {
  it('refuse the invocation with store_full: no record, no row, no waiter, nothing sent', async () => {
    await using test = await stage();
    const client = await connect(test.core, alice);
    test.store.full = true;
    expect(await call(test, { params: LARGE })).toMatchObject({
      kind: 'refused',
      code: 'store_full',
      by: 'capacity',
      commandId: 'c1',
    });
    expect(await test.core.delivery.command(alice, KEY)).toBeNull();
    expect(await rows(test)).toEqual([]);
    expect(client.sent).toEqual([]);
    expect((await test.core.rpc.count(admin, {})).count).toBe(0);
    expect(test.counts.get('commands_refused:store_full')).toBe(1);
    expect(await call(test, { waitFor: 'admitted' })).toMatchObject({ kind: 'pending' });
  });

  it('leave nothing in the store if the invocation is refused or attaches to another', async () => {
    await using test = await stage();
    expect(await call(test, { params: LARGE })).toMatchObject({ code: 'not_connected' });
    expect(test.store.left).toBe(0);
    await connect(test.core, alice);
    await call(test, { params: LARGE, waitFor: 'admitted' });
    expect(test.store.left).toBe(1);
    expect(await call(test, { params: LARGE, waitFor: 'admitted' })).toMatchObject({ kind: 'pending' });
    expect(await call(test, { params: { ...LARGE, other: 1 } })).toMatchObject({ code: 'command_conflict' });
    expect(test.store.left).toBe(1);
    const [row] = await rows(test, 'command');
    expect(await test.core.history.payloads(admin, row ? [row] : [])).toMatchObject([{ state: 'spilled_included' }]);
  });
});

describe('a large result', () => {
  it('reaches its caller and every later one, and is stored once however often it is sent', async () => {
    await using test = await stage();
    const { client, pending } = await dispatched(test);
    await client.result(client.last, LARGE);
    for (let i = 0; i < 5; i++) expect(await client.result(client.last, LARGE)).toMatchObject({ kind: 'duplicate' });
    expect(await pending).toMatchObject({ kind: 'outcome', result: JSON.stringify(LARGE) });
    expect(await call(test)).toMatchObject({ kind: 'outcome', result: JSON.stringify(LARGE) });
    expect(test.store.left).toBe(1);
    expect(test.store.puts).toHaveLength(1);
    expect(await test.core.history.payloads(admin, await rows(test, 'result'))).toEqual([
      { state: 'spilled_included', text: JSON.stringify(LARGE) },
    ]);
  });

  it('that cannot be stored still completes its command and reaches its caller; its size and digest are kept', async () => {
    await using test = await stage();
    const { client, pending } = await dispatched(test);
    test.store.full = true;
    expect(await client.result(client.last, LARGE)).toMatchObject({ kind: 'finished' });
    expect(await pending).toMatchObject({
      kind: 'outcome',
      result: JSON.stringify(LARGE),
      command: { outcome: 'completed', error: null },
    });
    const text = JSON.stringify(LARGE);
    const [row] = await rows(test, 'result');
    expect(row).toMatchObject({
      payload: null,
      payloadBytes: text.length,
      spill: { name: null, bytes: text.length, sha256: createCrypto('x').sha256(text) },
    });
    test.store.full = false;
    expect(await test.core.history.payloads(admin, row ? [row] : [])).toEqual([{ state: 'unavailable', text: null }]);
    expect(test.counts.get('payloads_unstored')).toBe(1);
  });

  it('of an unknown command is not stored, so a client cannot fill the store', async () => {
    await using test = await stage();
    const client = await connect(test.core, alice);
    for (let i = 0; i < 20; i++) {
      const end = { kind: 'result', payload: toJson(LARGE), error: null, refused: false } as const;
      expect(await client.session.end(`none-${i}`, end)).toEqual({ kind: 'unknown' });
      await client.session.progress(`none-${i}`, toJson(LARGE));
    }
    expect(test.store.puts).toEqual([]);
  });

  it('that arrives late is kept as evidence only as often as late rows are', async () => {
    await using test = await stage();
    const { client, pending } = await dispatched(test);
    await client.result(client.last);
    await pending;
    for (let i = 0; i < 20; i++) {
      const other = await connect(test.core, alice, { instanceId: `late-${i}` });
      await other.session.end('c1', { kind: 'result', payload: toJson(LARGE), error: null, refused: false });
    }
    const late = await rows(test, 'late_result');
    expect(late).toHaveLength(7);
    expect(test.store.left).toBe(7);
    expect((await test.core.history.payloads(admin, late)).map(({ state }) => state)).toEqual(
      late.map(() => 'spilled_included'),
    );
    expect(await test.core.delivery.command(alice, KEY)).toMatchObject({ lateResults: 20, outcome: 'completed' });
  });
});

describe('large progress', () => {
  it('reaches watchers every time, and is stored at most once a second', async () => {
    await using test = await stage();
    const { client, pending } = await dispatched(test);
    const updates = await test.core.delivery.updates(alice, KEY);
    const seen: number[] = [];
    const watching = (async () => {
      for await (const { event } of updates ?? []) if (event.progress !== null) seen.push(event.progress.length);
    })();
    for (let i = 0; i < 30; i++) {
      await client.session.progress('c1', toJson({ i, ...LARGE }));
      await settle();
      await test.clock.advance(100);
    }
    expect(test.store.puts).toHaveLength(3);
    expect(await rows(test, 'progress')).toHaveLength(3);
    await client.result(client.last);
    await pending;
    await watching;
    expect(seen).toHaveLength(30);
  });
});

describe("an embedder's spill store", () => {
  it('that is not managed is never cleaned and nothing is discarded from it', async () => {
    await using test = await stage(false);
    await call(test, { params: LARGE });
    expect(await test.core.history.cleanSpill()).toBe(0);
    expect([test.store.cleaned, test.store.discards, test.store.puts.length]).toEqual([0, [], 1]);
  });

  it('that is managed is cleaned by the hook', async () => {
    await using test = await stage();
    expect(await test.core.history.cleanSpill()).toBe(1);
    expect(test.store.cleaned).toBe(1);
  });

  it.each<[string, SpillStore['read']]>([
    ['throws', () => Promise.reject(new Error('boom'))],
    ['answers another text', async () => ({ state: 'present', text: toJson('another') ?? fail() })],
    ['has lost it', async () => ({ state: 'unavailable' })],
  ])('that %s on reading leaves the payload unavailable, and the page complete', async (_what, read) => {
    await using test = await stage(false);
    test.store.read = read;
    await connect(test.core, alice);
    await call(test, { params: LARGE, waitFor: 'admitted' });
    expect(await test.core.history.payloads(admin, await rows(test))).toEqual([{ state: 'unavailable', text: null }]);
  });

  it.each<[string, () => Promise<SpillRef>]>([
    ['rejects', () => Promise.reject(new TypeError('secret path'))],
    [
      'throws at once',
      () => {
        throw new TypeError('secret path');
      },
    ],
  ])('that %s on writing refuses with store_full, and its message appears only in the log', async (_how, put) => {
    await using test = await stage(false);
    test.store.put = put;
    await connect(test.core, alice);
    const refused = await call(test, { params: LARGE });
    expect(refused).toMatchObject({ kind: 'refused', code: 'store_full' });
    expect(JSON.stringify(refused)).not.toContain('secret');
  });
});
