/** Tests connections of the memory backend after their node stopped sending heartbeats. */
import { describe, expect, it } from 'vitest';
import { createMemoryConnections } from '../../src/backends/memory/connections.ts';
import { FORGET_MS } from '../../src/core/limits.ts';
import { ALL, hello } from '../contract/kit/connections-model.ts';
import { FakeClock } from '../kit/clock.ts';

function opened() {
  const clock = new FakeClock();
  const silent = new Set<string>();
  const store = createMemoryConnections({ clock, nodeAlive: (nodeId) => !silent.has(nodeId) });
  return { clock, silent, store };
}

describe('connections of a node that went silent', () => {
  it('count as disconnected, with the cause, and are forgotten like any other', async () => {
    const { clock, silent, store } = opened();
    const { connection } = store.connect(hello('alice', 'tab'));
    store.connect(hello('alice', 'tab2', { nodeId: 'n2' }));
    silent.add('n1');
    const lostAt = clock.now();
    expect(store.list({ ...ALL, status: 'disconnected' }, { first: 10, after: null }).rows).toMatchObject([
      { row: { clientId: 'tab', disconnectedAt: lostAt, disconnectCause: 'node_lost' } },
    ]);
    expect(store.touch(connection, 1)).toBeNull();
    await clock.advance(FORGET_MS);
    expect(store.ofUsers(['alice'], 10)).toMatchObject([{ total: 1, rows: [{ clientId: 'tab2' }] }]);
  });

  it('stay lost when their node beats again, until their client reconnects', async () => {
    const { silent, store } = opened();
    const { connection } = store.connect(hello('alice', 'tab'));
    silent.add('n1');
    expect(store.get([connection])).toMatchObject([{ disconnectCause: 'node_lost' }]);
    silent.clear();
    expect(store.touch(connection, 1)).toBeNull();
    const back = store.connect(hello('alice', 'tab'));
    expect(back).toMatchObject({ kind: 'resumed', connection: { epoch: 2, disconnectedAt: null } });
  });
});
