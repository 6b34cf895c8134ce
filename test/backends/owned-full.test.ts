/** Tests what relays that own partitions do when Redis has no memory left: growth is refused, ends are recorded. */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { openCallboard } from '../../src/callboard.ts';
import { createHttpCaller } from '../../src/clients/caller/index.ts';
import { ActionCancelled, createRuntime } from '../../src/clients/runtime/index.ts';
import { silentLog, type Log } from '../../src/core/ports.ts';
import { parseDown } from '../../src/protocol/frame-codec.ts';
import { type DownFrame, SUBPROTOCOL } from '../../src/protocol/frames.ts';
import { admission, ALICE, keyFor } from '../contract/kit/bench.ts';
import { ADMIN, ask, postJson, SECRET, tokenOf } from '../http/kit/http-relay.ts';
import { FakeClock } from '../kit/clock.ts';
import { LEASE_MS, OwnerDeployment, type OwnerProcess } from '../kit/owners.ts';
import { eventually, WAIT_MS } from '../kit/patience.ts';
import { startRedis, type RedisServer } from '../kit/redis.ts';

const LITTLE = 1024 * 1024;

let server: RedisServer;
let hand: Redis;
beforeAll(async () => {
  server = await startRedis();
  hand = new Redis(server.url);
});
afterAll(async () => {
  hand.disconnect();
  await server.stop();
});
afterEach(() => limitTo(0));

/** Sets the memory limit of Redis; 0: none. */
async function limitTo(bytes: number): Promise<void> {
  await hand.config('SET', 'maxmemory', String(bytes));
}

async function openRelay(namespace: string, log: Log = silentLog) {
  const place = { url: server.url, namespace, partitions: 2, durability: 'memory', store: 'owned' } as const;
  const callboard = await openCallboard({
    log,
    config: {
      auth: { adminTokens: [ADMIN], secret: SECRET },
      redis: { ...place, strictMigration: false, legacy: { commandStream: null, pending: null } },
    },
  });
  const url = await callboard.listen();
  await until(url, [200, 'ready']);
  return { callboard, url, [Symbol.asyncDispose]: () => callboard.close() };
}

/** Waits until a relay says this of itself. */
const until = (url: string, expected: readonly [number, string]): Promise<void> =>
  expect
    .poll(
      async () => {
        const { status, json } = await ask(`${url}/readyz`, { token: null });
        return [status, json?.['code'] ?? json?.['status']];
      },
      { timeout: WAIT_MS },
    )
    .toEqual(expected);

/** Waits until the lease that this key shows is renewed. */
async function untilRenewed(key: string): Promise<void> {
  let last = Infinity;
  await eventually(async () => {
    const left = await hand.pttl(key);
    const isRenewed = left > last;
    last = left;
    expect(isRenewed).toBe(true);
  });
}

/** Sends a hello, and resolves with all frames up to the welcome or the close. */
async function hello(url: string, clientId: string): Promise<readonly DownFrame[]> {
  const token = await tokenOf('alice', 'connect');
  const ws = new WebSocket(`${url.replace('http', 'ws')}/connect`, [SUBPROTOCOL]);
  const frames: DownFrame[] = [];
  const ids = { client_id: clientId, instance_id: 'i1', client_type: 'web' } as const;
  ws.on('open', () => ws.send(`${JSON.stringify({ type: 'hello', token, ...ids })}\n{"actions":[{"name":"open"}]}`));
  await new Promise<void>((resolve, reject) => {
    ws.on('error', reject);
    ws.on('message', (data) => {
      const frame = parseDown(String(data));
      if (frame) frames.push(frame);
      if (frame?.type === 'welcome') resolve();
    });
    ws.on('close', () => resolve());
  });
  ws.close();
  return frames;
}

/** A client whose actions run until the test ends them. Counts how often each text came. */
async function connectClient(url: string) {
  const came: string[] = [];
  const running = new Map<string, () => void>();
  const states: string[] = [];
  const runtime = createRuntime({
    url: `${url.replace('http', 'ws')}/connect`,
    token: () => tokenOf('alice', 'connect'),
    clientId: 'desk',
    clientType: 'console',
  });
  runtime.handle('wait', {}, ({ say }, { signal }) => {
    came.push(String(say));
    return new Promise((resolve, reject) => {
      running.set(String(say), () => resolve({ said: say }));
      signal.addEventListener('abort', () => reject(new ActionCancelled({})));
    });
  });
  runtime.onStatus(({ state }) => states.push(state));
  runtime.connect();
  await runtime.ready();
  return { came, states, end: (say: string) => running.get(say)?.(), [Symbol.asyncDispose]: () => runtime.close() };
}

describe('owners over a Redis without memory', () => {
  it('refuse what grows, record ends, and are well again by themselves', async () => {
    const namespace = randomUUID();
    const said: string[] = [];
    const log: Log = {
      ...silentLog,
      warn: (_fields, text) => said.push(text),
      error: (_fields, text) => said.push(text),
    };
    await using near = await openRelay(namespace, log);
    await using far = await openRelay(namespace, log);
    await using client = await connectClient(near.url);
    await using caller = createHttpCaller({ url: far.url, token: () => tokenOf('alice', 'invoke') });
    const desk = { userId: 'alice', clientId: 'desk', action: 'wait' };
    const start = (say: string) => caller.invoke(desk, { say }, { waitFor: 'acknowledged' });
    const [first, second] = [await start('first'), await start('second')];
    said.length = 0;

    await limitTo(LITTLE);
    for (const { url } of [near, far]) await until(url, [503, 'store_full']);
    const token = await tokenOf('alice', 'connect', 'invoke');
    const path = '/connections/alice/desk/actions/wait';
    let calls = 0;
    for (const [i, { url }] of [near, far].entries()) {
      // An owner may not have looked yet, and admit the first ones.
      const call = () => {
        const say = `full-${i}-${calls++}`;
        return ask(url + path, postJson({ command_id: say, params: { say }, wait_for: 'acknowledged' }, { token }));
      };
      await expect.poll(async () => (await call()).json?.['code'], { timeout: WAIT_MS }).toBe('store_full');
      const refused = await call();
      expect([refused.status, refused.headers['retry-after']]).toEqual([503, '1']);
      expect((await hello(url, `other-${i}`)).map((frame) => ('code' in frame ? frame.code : frame.type))).toEqual([
        'store_full',
        4432,
      ]);
    }

    // What runs ends: by its result, and by a cancellation.
    const ends = [first, second].map(({ handle }) => caller.await(handle, { withinMs: WAIT_MS }));
    client.end('first');
    expect(await ends[0]).toMatchObject({ outcome: 'completed', result: { said: 'first' } });
    await caller.cancel(second.handle, 'enough');
    expect(await ends[1]).toMatchObject({ outcome: 'cancelled' });
    // The leases are renewed: nobody takes anything over.
    for (const key of await hand.keys(`*${namespace}*:live:*`)) await untilRenewed(key);
    expect(said).toEqual(['Redis has no memory for more: nothing new is admitted', said[0]]);

    await limitTo(0);
    for (const { url } of [near, far]) await until(url, [200, 'ready']);
    await start('fourth');
    expect(client.came).toEqual([...new Set(client.came)]);
    expect(client.came).toEqual(expect.arrayContaining(['first', 'second', 'fourth']));
    expect(client.states).toEqual(['connecting', 'connected']);
    await near.callboard.close();
    await far.callboard.close();
    await using later = await openRelay(namespace);
    const outcomeOf = async (commandId: string) =>
      (await ask(`${later.url}/commands/alice/desk/${commandId}`, { token: ADMIN })).json?.['outcome'];
    expect(await Promise.all([first, second].map(({ handle }) => outcomeOf(handle.commandId)))).toEqual([
      'completed',
      'cancelled',
    ]);
    await until(later.url, [200, 'ready']);
  });
});

describe('the partitions of an owner', () => {
  const PARTITIONS = 6;
  const clock = new FakeClock();
  const place = new OwnerDeployment({ clock, namespace: randomUUID(), partitions: PARTITIONS, log: silentLog });
  afterAll(() => place[Symbol.asyncDispose]());
  const keys = Array.from({ length: PARTITIONS }, (_, partition) => place.keys.of(partition));
  /** Lets time pass until what is expected is so. */
  const untilSeen = (see: () => Promise<void>): Promise<void> =>
    eventually(async () => {
      await clock.advance(LEASE_MS / 4);
      await see();
    });
  const stores = ({ owners }: OwnerProcess) => owners.owned.map((partition) => required(partition.stores));
  const found = (process: OwnerProcess) =>
    Promise.all(stores(process).map(async ({ commands }) => (await commands.get([keyFor('c1')]))[0]?.commandId));
  const all = Array.from({ length: PARTITIONS }, () => 'c1');

  it('have snapshots of what a full Redis has, one after the other, and begin anew if it loses all', async () => {
    const owner = await place.start('a.1', server.url);
    await untilSeen(() => Promise.resolve(expect(owner.owners.owned).toHaveLength(PARTITIONS)));
    for (const { commands, connections } of stores(owner)) {
      const about = { instanceId: 'i1', clientType: 'browser', host: false, metadata: null, actions: [] } as const;
      const { connection } = await connections.connect({ ...ALICE, ...about, nodeId: 'a' });
      await commands.rebind(ALICE, { nodeId: 'a', instanceId: 'i1', epoch: connection.epoch }, 'up');
      expect(await commands.admit(admission('c1'))).toMatchObject({ kind: 'admitted' });
    }
    await owner.turns.recorded();
    await using calls = await callsOf(['RPUSH', 'PERSIST']);
    await limitTo(LITTLE);
    const lengths = () => Promise.all(keys.map(({ log }) => hand.xlen(log)));
    await untilSeen(async () => expect(await lengths()).toEqual(keys.map(() => 0)));
    // Each snapshot has one piece. There may be more than one of a partition, and one that is being written.
    const pairs = Array.from({ length: Math.floor(calls.seen.length / 2) }, (_, at) =>
      calls.seen.slice(2 * at, 2 * at + 2),
    );
    expect(pairs.length).toBeGreaterThanOrEqual(PARTITIONS);
    for (const [first = [], second = []] of pairs)
      expect([first, second]).toEqual([
        ['RPUSH', first[1]],
        ['PERSIST', first[1]],
      ]);

    await hand.flushall();
    await untilSeen(async () =>
      expect(await hand.exists(...keys.map(({ snapshotAt }) => snapshotAt))).toBe(PARTITIONS),
    );
    await owner.turns.recorded();
    expect(owner.events).toEqual([]);
    await limitTo(0);
    await owner.die();
    const next = await place.start('b.1', server.url);
    await untilSeen(() => Promise.resolve(expect(next.owners.owned).toHaveLength(PARTITIONS)));
    expect(await found(next)).toEqual(all);
  });
});

function required<T>(value: T | null): T {
  if (value === null) throw new Error('the partition is not here');
  return value;
}

/** Notes the calls of these commands, with their keys, until it is disposed of. */
async function callsOf(names: readonly string[]) {
  const monitor = await hand.monitor();
  const seen: string[][] = [];
  monitor.on('monitor', (_time: string, [name = '', key = '']: readonly string[]) => {
    if (names.includes(name.toUpperCase())) seen.push([name.toUpperCase(), key]);
  });
  return { seen, [Symbol.asyncDispose]: async () => void monitor.disconnect() };
}
