/** Tests that rows of a stream, rows of a mailbox and events keep their order while Redis holds what is sent to it. */
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import type { Backend } from '../../src/core/backend.ts';
import { toJson } from '../../src/core/json.ts';
import { seeded } from '../../faults/lib/random.ts';
import { ALICE, admission, keyFor } from '../contract/kit/bench.ts';
import { newMessage } from '../contract/kit/history-model.ts';
import { FakeClock } from '../kit/clock.ts';
import { ownedPlace } from '../kit/owned.ts';
import { eventually } from '../kit/patience.ts';
import { startTcpProxy, type TcpProxy } from '../kit/tcp-proxy.ts';

/** How often acts follow each other in turns of the event loop. CALLBOARD_TEST_BURSTS: a longer run. */
const BURSTS = Number(process.env['CALLBOARD_TEST_BURSTS'] ?? 40);
const BURST = 12;
const TOPIC = 'command:alice/tab/c1';

describe('while Redis holds what is sent to it, again and again', () => {
  let ends: AsyncDisposableStack;
  let proxies: readonly TcpProxy[];
  let owner: Backend;
  let other: Backend;
  beforeEach(async () => {
    ends = new AsyncDisposableStack();
    const redis = inject('redisUrl').replace(/^redis:/, 'http:');
    proxies = [ends.use(await startTcpProxy(redis)), ends.use(await startTcpProxy(redis))];
    const place = ownedPlace(new FakeClock(), 2);
    const [first, second] = proxies;
    const open = async (nodeId: string, proxy: TcpProxy | undefined): Promise<Backend> => {
      const redisUrl = proxy?.url.replace(/^http:/, 'redis:') ?? '';
      const { backend } = await place.open({ nodeId, scopeOf: (userId) => userId, redisUrl });
      ends.defer(async () => await backend.close());
      return backend;
    };
    owner = await open('a', first);
    other = await open('b', second);
  });
  afterEach(() => ends.disposeAsync());

  /** Runs bursts of acts, in which each proxy may begin or end to hold after each act. */
  async function inBursts(seed: number, act: (n: number) => unknown, bursts = BURSTS): Promise<void> {
    const random = seeded(seed);
    const acts: unknown[] = [];
    for (let n = 0; n < bursts * BURST; n++) {
      acts.push(act(n));
      for (const proxy of proxies) {
        if (random() < 0.2) proxy.hold();
        else if (random() < 0.3) proxy.release();
      }
      await new Promise((resolve) => setImmediate(resolve));
      if (n % BURST > 0) continue;
      for (const proxy of proxies) proxy.release();
      await Promise.all(acts.splice(0));
    }
    for (const proxy of proxies) proxy.release();
    await Promise.all(acts);
  }

  const ids = Array.from({ length: BURSTS * BURST }, (_, n) => `m${n}`);

  it('a stream has the rows of each process in the order in which it added them', async () => {
    await inBursts(1, (n) =>
      other.history.retain(newMessage({ id: `m${n}`, userId: 'alice', suffix: 'a', payload: toJson(n) })),
    );
    const filter = { afterTime: null, beforeTime: null, kinds: null };
    const scan = await owner.history.messages('alice', 'a', filter, {
      first: 1000,
      after: null,
      order: 'newest_first',
    });
    expect(scan?.rows.map(({ row }) => row.id).reverse()).toEqual(ids.slice(-1000));
  });

  it('events arrive in the order in which they were published', async () => {
    const got: unknown[] = [];
    other.bus.subscribe(
      TOPIC,
      ({ number }) => void got.push(number),
      () => void got.push('lost'),
    );
    await other.bus.confirmed(keyFor('c1'));
    await inBursts(2, (n) => owner.bus.publish(TOPIC, { key: keyFor('c1'), progress: null, number: n }));
    await eventually(() => expect(got).toEqual([...ids.keys()]));
  });

  it('commands for a link of another process come to it in the order in which they were admitted, each once', async () => {
    const rows: string[] = [];
    const detach = await other.nodes.attach('b', {
      deliver: (row) => void (row.kind === 'command' && rows.push(row.key.commandId)),
      lost: async () => {},
      linksLost() {},
      revived() {},
    });
    ends.defer(() => detach());
    const about = { instanceId: 'i1', clientType: 'browser', host: false, metadata: null, actions: [] } as const;
    const { connection } = await other.connections.connect({ ...ALICE, ...about, nodeId: 'b' });
    await other.commands.rebind(ALICE, { nodeId: 'b', instanceId: 'i1', epoch: connection.epoch }, 'up');
    const open = { scopeLimit: 10_000, scopeId: 'alice' };
    const admit = (n: number) => (n % 3 === 0 ? owner : other).commands.admit(admission(`m${n}`, open));
    // A client has at most 1000 commands that wait.
    const bursts = Math.min(BURSTS, 80);
    await inBursts(3, admit, bursts);
    const expected = ids.slice(0, bursts * BURST);
    await eventually(() => expect(new Set(rows)).toEqual(new Set(expected)));
    expect(rows).toHaveLength(expected.length);
    for (const from of [0, 1]) {
      const own = (id: string): boolean => (Number(id.slice(1)) % 3 === 0) === (from === 0);
      expect(rows.filter(own)).toEqual(expected.filter(own));
    }
  });
});
