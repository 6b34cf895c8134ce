/** Tests the bus over Redis, between two nodes. */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest';
import { createRedisBus, type RedisBus } from '../../src/backends/redis/bus.ts';
import type { Client } from '../../src/backends/redis/client.ts';
import type { Connection } from '../../src/core/connections/connection.ts';
import type { ClientKey } from '../../src/core/ids.ts';
import type { Bus, CommandHint, ConnectionEvent } from '../../src/core/backend.ts';
import type { Log } from '../../src/core/ports.ts';
import { toJson } from '../../src/core/json.ts';
import type { SiteEvent } from '../../src/core/sites/site.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';
import { FakeClock, settle } from '../kit/clock.ts';

const PROBE_MS = 5_000;
const KEY = { userId: 'alice', clientId: 'tab', commandId: 'c1' };
const TOPIC = 'command:alice/tab/c1';

/** One node's bus, with its own timers and access to its connection. */
type Node = RedisBus & {
  readonly system: FakeClock;
  readonly clients: Redis[];
  readonly warnings: string[];
  readonly name: string;
};

function eventOf(name: string): SiteEvent {
  return { name, data: toJson({ text: 'a\nb' }), messageId: `m-${name}`, publishedAt: 1 };
}

function connectionOf(userId: string, clientId: string, actions: Connection['actions'] = []): Connection {
  const stamps = { connectedAt: 1, lastSeenAt: 1, disconnectedAt: null, disconnectCause: null, closeCode: null };
  const replaced = { replacedInstanceId: null, replacedAt: null, predecessors: [] };
  const link = { instanceId: 'i', nodeId: 'n', epoch: 1, clientType: 'web', host: false, metadata: null } as const;
  return { userId, clientId, ...link, actions, ...stamps, ...replaced };
}

/** Records everything that arrives on a site topic, and waits for an event by name. */
function listen(bus: Bus, topic: `site:${string}`): { names: string[]; until(name: string): Promise<SiteEvent> } {
  const names: string[] = [];
  const awaited = new Map<string, (event: SiteEvent) => void>();
  bus.subscribe(topic, (event) => {
    names.push(event.name);
    awaited.get(event.name)?.(event);
  });
  const until = (name: string) => new Promise<SiteEvent>((resolve) => void awaited.set(name, resolve));
  return { names, until };
}

function nextHint(bus: Bus): { hint: Promise<CommandHint>; stop(): void } {
  const { promise, resolve } = Promise.withResolvers<CommandHint>();
  const stop = bus.subscribe(TOPIC, resolve);
  return { hint: promise, stop };
}

describe('the bus over Redis, between two nodes', () => {
  let bench: RedisBench;
  let control: Client;
  let nodes: Node[];
  let a: Node;
  let b: Node;
  /** The rows of clients in the store, by client id. Reading one rejects if it is an Error. */
  let rows: Map<string, Connection | Error>;
  const read = async ({ clientId }: ClientKey): Promise<Connection | null> => {
    const row = rows.get(clientId) ?? null;
    if (row instanceof Error) throw row;
    return row;
  };
  beforeEach(async () => {
    bench = await redisBench();
    rows = new Map();
    control = bench.connect();
    await control.connect();
    nodes = [];
    [a, b] = [begin(), begin()];
    await Promise.all([a.ready(), b.ready()]);
  });
  afterEach(async () => {
    for (const node of nodes) node.close();
    control.disconnect();
    await bench.close();
  });

  function begin(): Node {
    const system = new FakeClock();
    const clients: Redis[] = [];
    const warnings: string[] = [];
    const name = randomUUID();
    const log: Log = { debug() {}, info() {}, warn: (_fields, text) => void warnings.push(text), error() {} };
    const connect = (): Client => {
      const client = new Redis(inject('redisUrl'), {
        ...{ lazyConnect: true, enableOfflineQueue: false, maxRetriesPerRequest: 0, connectionName: name },
        retryStrategy: () => 5,
        autoResubscribe: false,
      });
      client.on('error', () => undefined);
      clients.push(client);
      return client;
    };
    const bus = createRedisBus({ ...bench.parts, system, log, connect, read });
    const node = { ...bus, system, clients, warnings, name };
    nodes.push(node);
    return node;
  }

  const hintChannel = (): string => {
    const { store } = bench;
    return store.key(store.partitionOfUser('alice'), 'hint', store.hash('alice', 'tab', 'c1'));
  };
  const subscribers = async (channel: string): Promise<number> => {
    const [, count] = (await control.call('PUBSUB', 'NUMSUB', channel)) as [string, number];
    return count;
  };
  /** Returns one user of each partition, because each partition has its own channel. */
  const usersOfAll = (): string[] => {
    const users: string[] = [];
    for (let i = 0; users.filter((user) => user).length < bench.store.partitions; i++)
      users[bench.store.partitionOfUser(`user-${i}`)] = `user-${i}`;
    return users;
  };
  /**
   * Resolves when `to` has received an event of `from` in each partition. By then it has received everything that was
   * published before.
   */
  const heardAll = async (to: Bus, from: Bus, name: string): Promise<void> => {
    const waits = usersOfAll().map((user) => {
      const received = listen(to, `site:${user}/marker`).until(name);
      from.publish(`site:${user}/marker`, eventOf(name));
      return received;
    });
    await Promise.all(waits);
  };

  it('delivers an event to local listeners before publish returns, and unchanged to those of another node', async () => {
    const [here, there] = [listen(a, 'site:alice/board'), listen(b, 'site:alice/board')];
    const crossed = there.until('saved');
    a.publish('site:alice/board', eventOf('saved'));
    expect(here.names).toEqual(['saved']);
    expect(await crossed).toEqual(eventOf('saved'));
  });

  it('keeps the order in which one node published, and does not duplicate its own events', async () => {
    const [here, there] = [listen(a, 'site:alice/board'), listen(b, 'site:alice/board')];
    const names = Array.from({ length: 50 }, (_, i) => `e${i}`);
    const all = there.until('e49');
    for (const name of names) a.publish('site:alice/board', eventOf(name));
    await all;
    // The event from the other node was published after everything else, so any echo would have arrived before it.
    const back = here.until('back');
    b.publish('site:alice/board', eventOf('back'));
    await back;
    expect(there.names).toEqual([...names, 'back']);
    expect(here.names).toEqual([...names, 'back']);
  });

  it('carries changes of connections of users of every partition, and ends of sessions', async () => {
    const received: string[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const users = usersOfAll();
    b.subscribe('connections', ({ change, connection }) => {
      received.push(`${change} ${connection.userId}`);
      if (received.length === users.length) resolve();
    });
    const ended = new Promise<null>((done) => void b.subscribe('session:As1', done));
    for (const userId of users) {
      a.publish('connections', { change: 'connected', connection: connectionOf(userId, 'tab'), cause: null, at: 1 });
    }
    a.publish('session:As1', null);
    await promise;
    expect(received.sort()).toEqual(users.map((user) => `connected ${user}`).sort());
    expect(await ended).toBeNull();
  });

  describe('the event of a client that advertises much', () => {
    const large = (fill: string): Connection => {
      const action = { name: 'draw', summary: null, description: fill.repeat(20_000), version: null };
      return connectionOf('alice', 'tab', [{ ...action, checksArguments: null, schema: null, metadata: null }]);
    };
    const eventAt = (at: number, connection: Connection): ConnectionEvent => {
      return { change: 'actions_changed', connection, cause: null, at };
    };
    /** Records the events that b receives, and resolves at the one of a small client at this time. */
    const received = (until: number): { readonly events: ConnectionEvent[]; readonly all: Promise<void> } => {
      const { promise: all, resolve } = Promise.withResolvers<void>();
      const events: ConnectionEvent[] = [];
      b.subscribe('connections', (event) => {
        events.push(event);
        if (event.at === until) resolve();
      });
      return { events, all };
    };

    it('arrives whole and in order, although its message does not carry the actions', async () => {
      const messages: string[] = [];
      const spy = bench.connect();
      await spy.connect();
      spy.on('message', (_channel: string, text: string) => void messages.push(text));
      await spy.subscribe(bench.store.key(bench.store.partitionOfUser('alice'), 'bus'));
      const sent = [
        eventAt(1, connectionOf('alice', 'small')),
        eventAt(2, large('x')),
        eventAt(3, connectionOf('alice', 'small')),
      ];
      rows.set('tab', large('x'));
      const { events, all } = received(3);
      for (const event of sent) a.publish('connections', event);
      await all;
      expect(events).toEqual(sent);
      const carried = messages.filter((text) => text.includes(' connections\n'));
      expect(carried).toHaveLength(3);
      for (const text of carried) expect(text.length).toBeLessThan(2_000);
      spy.disconnect();
    });

    it.each([
      ['is gone', () => rows.delete('tab')],
      ['has advertised others since', () => rows.set('tab', large('y'))],
      ['cannot be read', () => rows.set('tab', new Error('away'))],
    ])('is dropped if the client %s, and later ones arrive', async (_why, change) => {
      change();
      const { events, all } = received(2);
      a.publish('connections', eventAt(1, large('x')));
      a.publish('connections', eventAt(2, connectionOf('alice', 'small')));
      await all;
      expect(events.map(({ at }) => at)).toEqual([2]);
    });
  });

  it('subscribes to a command only while it has listeners, and first tells them to read the command again', async () => {
    expect(await subscribers(hintChannel())).toBe(0);
    const first = nextHint(b);
    const second = nextHint(b);
    expect(await Promise.all([first.hint, second.hint])).toEqual([
      { key: KEY, progress: null },
      { key: KEY, progress: null },
    ]);
    expect(await subscribers(hintChannel())).toBe(1);
    const moved = nextHint(b);
    a.publish(TOPIC, { key: KEY, progress: toJson({ at: 5 }) });
    expect(await moved.hint).toEqual({ key: KEY, progress: '{"at":5}' });
    first.stop();
    first.stop();
    moved.stop();
    await settle();
    expect(await subscribers(hintChannel())).toBe(1);
    second.stop();
    await expect.poll(() => subscribers(hintChannel())).toBe(0);
  });

  it('confirms that the hints of a command arrive, also when its only listener is replaced, and gives up after a second', async () => {
    const hints: CommandHint[] = [];
    const stop = b.subscribe(TOPIC, () => {});
    await b.confirmed(KEY);
    expect(await subscribers(hintChannel())).toBe(1);
    stop();
    b.subscribe(TOPIC, (hint) => void hints.push(hint));
    await b.confirmed(KEY);
    a.publish(TOPIC, { key: KEY, progress: toJson(1) });
    await expect.poll(() => hints).toEqual([{ key: KEY, progress: '1' }]);
    const closed = begin();
    closed.close();
    closed.subscribe(TOPIC, () => {});
    let isOver = false;
    const over = Promise.resolve(closed.confirmed(KEY)).then(() => (isOver = true));
    await closed.system.advance(999);
    await settle();
    expect(isOver).toBe(false);
    await closed.system.advance(1);
    await over;
  });

  it('publishes no hint of a command while no node listens to any, and tells a later listener to read again', async () => {
    const { store } = bench;
    const partition = store.partitionOfUser('alice');
    await store.act(partition, 'nodes-due', [1]);
    expect(store.watched(partition)).toBe(false);
    const before = store.roundTrips;
    a.publish(TOPIC, { key: KEY, progress: toJson(1) });
    await settle();
    expect(store.roundTrips).toBe(before);
    const watch = nextHint(b);
    expect(await watch.hint).toEqual({ key: KEY, progress: null });
    await expect.poll(() => store.watched(partition)).toBe(true);
    watch.stop();
  });

  it('notes again and again that it listens, as long as it does, and no longer', async () => {
    const { store } = bench;
    const partition = store.partitionOfUser('alice');
    const watch = nextHint(b);
    await watch.hint;
    await expect.poll(() => store.watched(partition)).toBe(true);
    const pass = async (): Promise<boolean> => {
      for (let seconds = 0; seconds < 20; seconds += 5) {
        await bench.advance(5_000);
        for (const { system } of nodes) await system.advance(5_000);
        await bench.quiet();
      }
      await store.act(partition, 'nodes-due', [1]);
      return store.watched(partition);
    };
    expect(await pass()).toBe(true);
    watch.stop();
    expect(await pass()).toBe(false);
  });

  it('handles listeners that are added and removed in the same tick', async () => {
    for (let i = 0; i < 20; i++) nextHint(b).stop();
    const last = nextHint(b);
    expect(await last.hint).toEqual({ key: KEY, progress: null });
    last.stop();
    const again = nextHint(b);
    a.publish(TOPIC, { key: KEY, progress: toJson(1) });
    expect(await again.hint).toMatchObject({ key: KEY });
    expect(await subscribers(hintChannel())).toBe(1);
  });

  it('receives again after its connection was cut, and tells the listeners of each command to read it again', async () => {
    const there = listen(b, 'site:alice/board');
    const hints: CommandHint[] = [];
    let reported = Promise.withResolvers<void>();
    b.subscribe(TOPIC, (hint) => {
      hints.push(hint);
      reported.resolve();
    });
    await reported.promise;
    // This topic loses its listeners before the connection is restored.
    const gone = b.subscribe('command:alice/tab/gone', () => undefined);
    await cut(b);
    gone();
    reported = Promise.withResolvers<void>();
    await b.ready();
    await reported.promise;
    expect(hints).toEqual([
      { key: KEY, progress: null },
      { key: KEY, progress: null },
    ]);
    const crossed = there.until('later');
    a.publish('site:alice/board', eventOf('later'));
    await crossed;
    const { store } = bench;
    const left = store.key(store.partitionOfUser('alice'), 'hint', store.hash('alice', 'tab', 'gone'));
    await expect.poll(() => subscribers(left)).toBe(0);
    expect(await subscribers(hintChannel())).toBe(1);
  });

  /** Closes the node's connection at Redis, and waits until the node has noticed. */
  async function cut(node: Node): Promise<void> {
    const client = node.clients.at(-1);
    const closed = new Promise<void>((done) => void client?.once('close', () => done()));
    const list = String(await control.call('CLIENT', 'LIST'));
    const line = list.split('\n').find((one) => one.includes(`name=${node.name} `)) ?? '';
    const id = /\bid=(\d+)/.exec(line)?.[1] ?? '';
    expect(await control.call('CLIENT', 'KILL', 'ID', id)).toBe(1);
    await closed;
  }

  it('says that events may be lost after its connection was cut, and after another node could not publish', async () => {
    let interruptions = 0;
    let told = Promise.withResolvers<void>();
    const interrupted = (): void => {
      interruptions++;
      told.resolve();
    };
    b.subscribe('site:alice/board', () => {}, interrupted);
    await heardAll(b, a, 'before');
    expect(interruptions).toBe(0);
    await cut(b);
    await b.ready();
    await told.promise;
    expect(interruptions).toBe(1);
    await heardAll(b, a, 'between');
    expect(interruptions).toBe(1);
    told = Promise.withResolvers();
    vi.spyOn(bench.parts.store, 'act').mockRejectedValueOnce(new Error('away'));
    a.publish('site:alice/board', eventOf('lost'));
    await new Promise(setImmediate);
    await heardAll(b, a, 'after');
    await told.promise;
    expect(interruptions).toBe(2);
  });

  it('survives messages that no relay would publish', async () => {
    const there = listen(b, 'site:alice/board');
    b.subscribe('connections', () => {});
    const faults: unknown[] = [];
    const note = (error: unknown): void => void faults.push(error);
    process.on('uncaughtException', note);
    try {
      const channel = bench.store.key(bench.store.partitionOfUser('alice'), 'bus');
      for (const text of ['', 'x connections\nnull', 'x connections\n{"revision":"r"}', 'x site:alice/board\nnull'])
        await control.publish(channel, text);
      const crossed = there.until('later');
      a.publish('site:alice/board', eventOf('later'));
      await crossed;
    } finally {
      process.off('uncaughtException', note);
    }
    expect(faults).toEqual([]);
  });

  it('replaces a connection that looks healthy and receives nothing', async () => {
    const there = listen(b, 'site:alice/board');
    const hint = nextHint(b);
    await hint.hint;
    const channel = bench.store.key(bench.store.partitionOfUser('alice'), 'bus');
    await b.clients[0]?.unsubscribe(channel);
    for (let turn = 0; turn < 3; turn++) await probed(b);
    expect(b.clients).toHaveLength(1);
    const looked = nextHint(b);
    await probed(b);
    expect(b.clients).toHaveLength(2);
    await b.ready();
    expect(await looked.hint).toEqual({ key: KEY, progress: null });
    expect(b.clients[0]?.status).not.toBe('ready');
    const crossed = there.until('later');
    a.publish('site:alice/board', eventOf('later'));
    await crossed;
    expect(there.names).toEqual(['later']);
    expect(b.warnings).toHaveLength(1);
  });

  it('keeps a connection that receives', async () => {
    for (let turn = 0; turn < 8; turn++) {
      await probed(b);
      await heardAll(b, a, `turn-${turn}`);
    }
    expect(b.clients).toHaveLength(1);
    expect(b.warnings).toEqual([]);
  });

  /**
   * Runs the probe once, and waits until its message has been received. Redis answers the requests to a partition in
   * order, so one more request to each partition is awaited.
   */
  async function probed(node: Node): Promise<void> {
    await node.system.advance(PROBE_MS);
    const { store } = bench;
    const acts = usersOfAll().map((user) =>
      store.act(store.partitionOfUser(user), 'bus-publish', [null, 'hint', 'none', '']),
    );
    await Promise.all(acts);
    await settle();
  }

  it('survives a listener that throws, and ignores messages that it cannot read', async () => {
    b.subscribe('site:alice/board', () => {
      throw new Error('mine');
    });
    const there = listen(b, 'site:alice/board');
    const channel = bench.store.key(bench.store.partitionOfUser('alice'), 'bus');
    await control.publish(channel, 'nonsense');
    await control.publish(channel, 'someone site:alice/board\n{"name":');
    await control.publish(channel, 'someone site:alice/other\n{"name":');
    const crossed = there.until('good');
    a.publish('site:alice/board', eventOf('good'));
    await crossed;
    expect(there.names).toEqual(['good']);
    expect(b.warnings).toHaveLength(2);
  });

  it('keeps serving local listeners while the store is unreachable, and logs that once', async () => {
    const here = listen(a, 'site:alice/board');
    const away = { ...bench.store, act: () => Promise.reject(new Error('away')) };
    const warnings: string[] = [];
    const log: Log = { debug() {}, info() {}, warn: (_fields, text) => void warnings.push(text), error() {} };
    const alone = createRedisBus({ ...bench.parts, store: away, log, read });
    const own = listen(alone, 'site:alice/board');
    for (const name of ['x', 'y', 'z']) alone.publish('site:alice/board', eventOf(name));
    await settle();
    alone.close();
    expect([own.names, here.names]).toEqual([['x', 'y', 'z'], []]);
    expect(warnings).toHaveLength(1);
  });

  it('rejects `ready` once it is closed', async () => {
    const closed = begin();
    closed.close();
    await expect(closed.ready()).rejects.toMatchObject({ code: 'store_unavailable' });
  });
});
