/** Tests that a node which closes answers the callers that wait on it. */
import { describe, expect, it } from 'vitest';
import type { MemoryBackend } from '../../src/backends/memory/backend.ts';
import { ANY_WAIT } from '../../src/core/commands/waiter-store.ts';
import { RELEASE_MS } from '../../src/core/limits.ts';
import { settle } from '../kit/clock.ts';
import { connect, testCore, user, type TestCore } from '../kit/core.ts';

const alice = user('alice');
const CALL = { userId: 'alice', clientId: 'tab', action: 'open', params: null } as const;
const KEY = { userId: 'alice', clientId: 'tab', commandId: 'c1' };

/** Opens a core that closes as a node of a shared deployment does. */
function sharedCore(over: (backend: MemoryBackend) => Partial<MemoryBackend> = () => ({})) {
  const wrap = (backend: MemoryBackend): MemoryBackend => ({
    ...backend,
    capabilities: { ...backend.capabilities, shared: true },
    ...over(backend),
  });
  return testCore({ wrap });
}

async function waitsOf({ backend }: TestCore): Promise<number> {
  return (await backend.waiters.list(ANY_WAIT, { first: 100, after: null })).rows.length;
}

describe('a node that closes over a shared store', () => {
  it('answers every waiting caller as pending, with ids, and does not change the command', async () => {
    await using test = await sharedCore();
    const client = await connect(test.core, alice);
    const invoked = test.core.rpc.invoke(alice, { ...CALL, commandId: 'c1' });
    await settle();
    const received = test.core.rpc.invoke(alice, { ...CALL, commandId: 'c2', waitFor: 'acknowledged' });
    const parked = test.core.rpc.invoke(alice, { ...CALL, clientId: 'gone', commandId: 'c3', connectWithinMs: 60_000 });
    const awaited = test.core.rpc.await(alice, { ...KEY, withinMs: 60_000 });
    await settle();
    expect(await waitsOf(test)).toBe(4);
    await test.core.close();
    const lives = { kind: 'pending', rpcId: expect.any(String), result: null };
    expect(await invoked).toMatchObject({ ...lives, command: { commandId: 'c1', stage: 'dispatched', outcome: null } });
    expect(await received).toMatchObject({ ...lives, command: { commandId: 'c2', stage: 'dispatched' } });
    expect(await parked).toMatchObject({ ...lives, command: { commandId: 'c3', stage: 'admitted' } });
    expect(await awaited).toMatchObject({ ...lives, command: { commandId: 'c1' } });
    expect(await waitsOf(test)).toBe(0);
    await client.result(client.sent[0]?.command ?? client.last);
    expect((await test.backend.commands.get([KEY]))[0]).toMatchObject({ outcome: 'completed' });
  });

  it('returns the end of a command whose reply no longer arrived', async () => {
    await using test = await sharedCore();
    const client = await connect(test.core, alice);
    const call = test.core.rpc.invoke(alice, CALL);
    await settle();
    const { rows } = await test.backend.waiters.list(ANY_WAIT, { first: 100, after: null });
    for (const { row } of rows) await test.backend.waiters.remove(row.waiter, row.waiter.rpcId);
    await client.result(client.last);
    await test.core.close();
    expect(await call).toMatchObject({ kind: 'outcome', command: { outcome: 'completed' }, result: '{"ok":true}' });
  });

  it('also answers later callers, and those being admitted, at once', async () => {
    const { promise: go, resolve: admit } = Promise.withResolvers<void>();
    await using test = await sharedCore(({ commands }) => ({
      commands: { ...commands, admit: (request) => go.then(() => commands.admit(request)) },
    }));
    await connect(test.core, alice);
    const invoked = test.core.rpc.invoke(alice, { ...CALL, commandId: 'c1' });
    await settle();
    await test.core.close();
    admit();
    expect(await invoked).toMatchObject({ kind: 'pending', command: { commandId: 'c1' } });
    expect(await test.core.rpc.await(alice, { ...KEY, withinMs: 60_000 })).toMatchObject({ kind: 'pending' });
    expect(await waitsOf(test)).toBe(0);
  });

  it.each([
    ['does not answer', () => new Promise<void>(() => {})],
    ['is away', () => Promise.reject(new Error('away'))],
  ])('answers with the last known state if the store %s', async (_, remove) => {
    await using test = await sharedCore(({ waiters }) => ({ waiters: { ...waiters, remove } }));
    const call = test.core.rpc.invoke(alice, { ...CALL, commandId: 'c1', connectWithinMs: 60_000 });
    await settle();
    const closed = test.core.close();
    await test.clock.advance(RELEASE_MS);
    await closed;
    expect(await call).toMatchObject({ kind: 'pending', command: { commandId: 'c1', stage: 'admitted' } });
  });
});
