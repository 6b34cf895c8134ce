/** Tests how core reports links that have become silent. */
import { describe, expect, it } from 'vitest';
import type { ConnectionEvent } from '../../src/core/bus.ts';
import { createStaleWatch } from '../../src/core/connections/watch.ts';
import type { Log } from '../../src/core/log.ts';
import { silentLog } from '../../src/core/log.ts';
import { DEAD_MS, STALE_MS } from '../../src/core/limits.ts';
import { hello } from '../contract/kit/connections.ts';
import { testRooms } from '../kit/rooms.ts';

function watched(log: Log = silentLog) {
  const rooms = testRooms();
  const events: ConnectionEvent[] = [];
  rooms.backend.bus.subscribe('connections', (event) => events.push(event));
  const cancel = createStaleWatch({ ...rooms.deps, log }).start();
  return { ...rooms, events, cancel, store: rooms.backend.connections };
}

describe('the watch for silent links', () => {
  it('publishes once that a link is silent, between stale and dead', async () => {
    const { clock, store, events } = watched();
    await store.connect(hello('alice', 'tab'));
    await clock.advance(STALE_MS - 1);
    expect(events).toEqual([]);
    await clock.advance(5_000);
    expect(events).toMatchObject([{ change: 'stale', cause: null, connection: { userId: 'alice', clientId: 'tab' } }]);
    await clock.advance(2 * DEAD_MS);
    expect(events).toHaveLength(1);
  });

  it('publishes again for the next silence, and for the next connection', async () => {
    const { clock, store, events } = watched();
    const { connection } = await store.connect(hello('alice', 'tab'));
    await clock.advance(STALE_MS + 5_000);
    await store.touch(connection, 1);
    await clock.advance(STALE_MS + 5_000);
    await store.connect(hello('alice', 'tab'));
    await clock.advance(STALE_MS + 5_000);
    expect(events.map(({ connection: { epoch } }) => epoch)).toEqual([1, 1, 2]);
  });

  it("publishes nothing about links that show life, are down, or are another node's", async () => {
    const { clock, store, events } = watched();
    const { connection: active } = await store.connect(hello('alice', 'lively'));
    const { connection: closed } = await store.connect(hello('alice', 'closed'));
    await store.connect(hello('alice', 'elsewhere', { nodeId: 'n2' }));
    await store.disconnect(closed, closed.epoch, 'client_closed');
    for (let beat = 0; beat < 6; beat++) {
      await clock.advance(20_000);
      await store.touch(active, active.epoch);
    }
    expect(events).toEqual([]);
  });

  it('finds every silent link of many, each once', async () => {
    const { clock, store, events } = watched();
    for (let i = 0; i < 2_500; i++) await store.connect(hello(`u${i}`, 'tab'));
    await clock.advance(DEAD_MS);
    expect(new Set(events.map(({ connection: { userId } }) => userId)).size).toBe(2_500);
    expect(events).toHaveLength(2_500);
  });

  it('ends when it is cancelled', async () => {
    const { clock, store, events, cancel } = watched();
    await store.connect(hello('alice', 'tab'));
    cancel();
    await clock.advance(DEAD_MS);
    expect(events).toEqual([]);
  });

  it('continues after a failed read of the registry', async () => {
    const warnings: string[] = [];
    const { clock, store, events } = watched({ ...silentLog, warn: (_, message) => void warnings.push(message) });
    await store.connect(hello('alice', 'tab'));
    const { list } = store;
    store.list = () => Promise.reject(new Error('away'));
    await clock.advance(STALE_MS + 2_500);
    store.list = list;
    await clock.advance(2_500);
    expect(warnings.length).toBeGreaterThan(0);
    expect(events).toHaveLength(1);
  });
});
