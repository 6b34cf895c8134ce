/** Tests that every subscription says that events of other nodes may have been lost. */
import { describe, expect, it, vi } from 'vitest';
import { createMemoryBus } from '../../src/backends/memory/bus.ts';
import type { Backend } from '../../src/core/backend.ts';
import { CommandEvents } from '../../src/core/commands/events.ts';
import { LISTENING_ANNOUNCE_MS, LISTENING_MS } from '../../src/core/limits.ts';
import type { LiveEvent, Subscription } from '../../src/core/live.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { command } from '../graphql/kit/rows.ts';
import { FakeClock } from '../kit/clock.ts';
import { connect, testCore, user } from '../kit/core.ts';
import { framesOf, startBoardRelay } from './kit/board-relay.ts';

const alice = user('alice');

/** Returns a function that tells all later listeners of the bus that they were interrupted. */
function interruptible({ bus }: Pick<Backend, 'bus'>): () => void {
  const told: (() => void)[] = [];
  const { subscribe } = bus;
  vi.spyOn(bus, 'subscribe').mockImplementation((topic, listener, interrupted) => {
    if (interrupted) told.push(interrupted);
    return subscribe(topic, listener);
  });
  return () => told.forEach((tell) => tell());
}

async function next<T>(events: Subscription<T>): Promise<LiveEvent<T>> {
  const { value } = await events.next();
  return value;
}

describe('after an interruption, the next event has a gap', () => {
  it('of a site, for every viewer of a shared stream, once', async () => {
    await using at = await startBoardRelay();
    const interrupt = interruptible(at.backend);
    const streams = [await at.listen('viewer'), await at.listen('viewer')];
    for (const stream of streams) await stream.until('callboard.ready');
    await at.publish({ name: 'changed', data: 1 });
    for (const stream of streams) await stream.until('"data":1');
    interrupt();
    interrupt();
    await at.publish({ name: 'changed', data: 2 });
    await at.publish({ name: 'changed', data: 3 });
    for (const stream of streams) {
      await stream.until('"data":3');
      const events = framesOf(stream).filter(({ event }) => event === 'changed');
      expect(events.map(({ data }) => [data.data, data.missed])).toEqual([
        [1, 0],
        [2, 1],
        [3, 0],
      ]);
      stream.abort();
    }
  });

  it('of connections', async () => {
    await using at = await testCore();
    const interrupt = interruptible(at.backend);
    const events = at.core.connections.events(alice, null);
    interrupt();
    await connect(at.core, alice, { clientId: 'one' });
    await connect(at.core, alice, { clientId: 'two' });
    expect([(await next(events)).missed, (await next(events)).missed]).toEqual([1, 0]);
    await events.return();
  });

  it('of one command', async () => {
    await using at = await testCore();
    const interrupt = interruptible(at.backend);
    await connect(at.core, alice, { clientId: 'tab' });
    const key = { userId: 'alice', clientId: 'tab', commandId: 'c1' };
    await at.core.rpc.invoke(alice, { ...key, action: 'open', params: null, waitFor: 'admitted' });
    const updates = await at.core.delivery.updates(alice, key);
    if (!updates) throw new Error('no command');
    expect((await next(updates)).missed).toBe(0);
    interrupt();
    await at.core.rpc.cancel(alice, key, null);
    expect((await next(updates)).missed).toBe(1);
  });

  const crypto = createCrypto('test');
  const holdings = createShares().of('alice');
  const filter = { userId: null, clientId: null, action: null, clientType: null, outcomes: null };
  const capabilities = { shared: true, allWaits: false, exactDedupCounters: true, cheapStreamSummaries: true };

  it('of commands', () => {
    const backend = { bus: createMemoryBus(silentLog), capabilities };
    const interrupt = interruptible(backend);
    const events = new CommandEvents({ nodeId: 'n1', backend, clock: new FakeClock(), crypto });
    const missed: number[] = [];
    events.listen(filter, (event) => missed.push(event.missed), holdings);
    interrupt();
    events.emit('ended', command({}));
    events.emit('ended', command({}));
    expect(missed).toEqual([1, 0]);
    events.close();
  });

  it('of commands, if the node that publishes did not hear that somebody still listens', async () => {
    const bus = createMemoryBus(silentLog);
    const clock = new FakeClock();
    const parts = { clock, crypto };
    const listener = new CommandEvents({ nodeId: 'n1', backend: { bus, capabilities }, ...parts });
    // What n2 hears of the bus is cut for a while.
    let cut = false;
    let interrupted = (): void => {};
    const deaf: Backend['bus'] = {
      ...bus,
      subscribe(topic, take, lost) {
        interrupted = lost ?? interrupted;
        return bus.subscribe(topic, (event) => void (cut || take(event)));
      },
    };
    const publisher = new CommandEvents({ nodeId: 'n2', backend: { bus: deaf, capabilities }, ...parts });
    const missed: number[] = [];
    listener.listen(filter, (event) => missed.push(event.missed), holdings);
    publisher.emit('ended', command({}));
    cut = true;
    await clock.advance(LISTENING_MS);
    publisher.emit('ended', command({}));
    cut = false;
    interrupted();
    await clock.advance(LISTENING_ANNOUNCE_MS);
    publisher.emit('ended', command({}));
    publisher.emit('ended', command({}));
    expect(missed).toEqual([0, 1, 0]);
    listener.close();
    publisher.close();
  });
});
