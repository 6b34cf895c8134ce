/**
 * Tests invocations that rely on the connection that this process last saw. The store compares it with the present
 * connection.
 */
import { describe, expect, it } from 'vitest';
import type { MemoryBackend } from '../../src/backends/memory/backend.ts';
import type { Connection } from '../../src/core/connections/connection.ts';
import type { AdmitResult } from '../../src/core/commands/command-store.ts';
import { thenDo } from '../../src/core/maybe-promise.ts';
import { settle } from '../kit/clock.ts';
import { advertisement, connect, testCore, user } from '../kit/core.ts';

const alice = user('alice');
const target = { userId: 'alice', clientId: 'tab', action: 'open', params: null };

/**
 * Changes a memory backend: it shows `seen` as the last connection, and admits a command only if `seen` is the present
 * one.
 */
function stale(state: { seen: Connection | null; reads: number }) {
  return (memory: MemoryBackend): MemoryBackend => ({
    ...memory,
    connections: {
      ...memory.connections,
      lastSeen: () => state.seen,
      get(keys) {
        state.reads++;
        return memory.connections.get(keys);
      },
    },
    commands: {
      ...memory.commands,
      admit(request) {
        return thenDo(memory.connections.get([request]), ([now = null]): AdmitResult | Promise<AdmitResult> => {
          const outdated = request.seen && JSON.stringify(request.seen) !== JSON.stringify(now);
          return outdated ? { kind: 'outdated' } : memory.commands.admit(request);
        });
      },
    },
  });
}

async function presentOf(relay: { backend: MemoryBackend }): Promise<Connection> {
  const [present] = await relay.backend.connections.get([target]);
  if (!present) throw new Error('not connected');
  return present;
}

describe('an invocation whose target was seen before', () => {
  it('does not read the connection if it is the present one', async () => {
    const state = { seen: null as Connection | null, reads: 0 };
    await using relay = await testCore({ wrap: stale(state) });
    const client = await connect(relay.core, alice);
    state.seen = await presentOf(relay);
    state.reads = 0;
    const call = relay.core.rpc.invoke(alice, target);
    await settle();
    await client.result(client.last);
    expect(await call).toMatchObject({ kind: 'outcome', command: { clientType: client.last.clientType } });
    expect(state.reads).toBe(0);
  });

  it('reads it if it is not, and is admitted once, with one wait', async () => {
    const state = { seen: null as Connection | null, reads: 0 };
    await using relay = await testCore({ wrap: stale(state) });
    const client = await connect(relay.core, alice);
    state.seen = { ...(await presentOf(relay)), epoch: 0 };
    const call = relay.core.rpc.invoke(alice, target);
    await settle();
    expect((await relay.core.rpc.count(alice, {})).count).toBe(1);
    expect(client.sent).toHaveLength(1);
    await client.result(client.last);
    expect(await call).toMatchObject({ kind: 'outcome' });
    expect(relay.counts.get('commands_refused{action_not_advertised}') ?? 0).toBe(0);
  });

  it('is not refused for an action that only the connection from before did not advertise', async () => {
    const state = { seen: null as Connection | null, reads: 0 };
    await using relay = await testCore({ wrap: stale(state) });
    const client = await connect(relay.core, alice);
    state.seen = { ...(await presentOf(relay)), actions: [advertisement('other')] };
    const call = relay.core.rpc.invoke(alice, target);
    await settle();
    await client.result(client.last);
    expect(await call).toMatchObject({ kind: 'outcome' });
  });

  it('is refused for an action that the client withdrew since', async () => {
    const state = { seen: null as Connection | null, reads: 0 };
    await using relay = await testCore({ wrap: stale(state) });
    await connect(relay.core, alice);
    const present = await presentOf(relay);
    state.seen = { ...present, actions: [...present.actions, advertisement('gone')] };
    expect(await relay.core.rpc.invoke(alice, { ...target, action: 'gone' })).toMatchObject({
      kind: 'refused',
      code: 'action_not_advertised',
    });
    expect((await relay.core.rpc.count(alice, {})).count).toBe(0);
  });

  it('takes a connection that has been silent for too long for none, and reads it', async () => {
    const state = { seen: null as Connection | null, reads: 0 };
    await using relay = await testCore({ wrap: stale(state) });
    const client = await connect(relay.core, alice);
    state.seen = { ...(await presentOf(relay)), lastSeenAt: relay.clock.now() - 60_000 };
    state.reads = 0;
    const call = relay.core.rpc.invoke(alice, target);
    await settle();
    await client.result(client.last);
    expect(await call).toMatchObject({ kind: 'outcome' });
    expect(state.reads).toBeGreaterThan(0);
  });
});
