/**
 * Tests links that go home between three relays which own the users, as processes over one Redis. The first relay speaks
 * TLS, and the third is reached through a proxy.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { nodeOf, readFence } from '../../src/backends/owned/fence.ts';
import { Keys } from '../../src/backends/owned/keys.ts';
import { shouldOwn } from '../../src/backends/owned/placement.ts';
import { ownedNamespace } from '../../src/backends/redis/keys.ts';
import { createLinkCaller, type Caller } from '../../src/clients/caller/index.ts';
import { createRuntime, type LinkStatus, type Runtime, type Welcome } from '../../src/clients/runtime/index.ts';
import { signToken } from '../../src/http/tokens.ts';
import { parseDown } from '../../src/protocol/frame-codec.ts';
import { SUBPROTOCOL } from '../../src/protocol/frames.ts';
import { CERTIFICATE } from '../kit/certificates.ts';
import { freePort } from '../kit/free-port.ts';
import { eventually, TEST_MS, TOKEN_SECONDS } from '../kit/patience.ts';
import { connectCommands } from '../kit/redis.ts';
import { startTcpProxy, type TcpProxy } from '../kit/tcp-proxy.ts';

// Three processes start, and partitions move one at a time.
vi.setConfig({ testTimeout: 3 * TEST_MS, hookTimeout: 3 * TEST_MS });

const BIN = join(import.meta.dirname, '..', '..', 'src', 'bin.ts');
const SECRET = 'a secret of the tests, long enough for HS256';
const NAMES = ['a', 'b', 'c'] as const;
type Name = (typeof NAMES)[number];

const relays = new Map<Name, ChildProcess>();
/** The addresses that the relays advertise. */
const urls = new Map<Name, string>();
let proxy: TcpProxy;
let folder: string;
const namespace = randomUUID();
/** As relays divide users. */
const PARTITIONS = 64;

/** A socket that trusts the relay with TLS. */
class TrustingSocket extends WebSocket {
  constructor(url: string, protocol: string) {
    super(url, protocol, { ca: CERTIFICATE.cert });
  }
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'callboard-homes-'));
  const ports = await Promise.all(NAMES.map(() => freePort()));
  const [tls, plain, hidden] = ports;
  const files = { CALLBOARD_TLS_CERT: join(folder, 'cert.pem'), CALLBOARD_TLS_KEY: join(folder, 'key.pem') };
  await writeFile(files.CALLBOARD_TLS_CERT, CERTIFICATE.cert);
  await writeFile(files.CALLBOARD_TLS_KEY, CERTIFICATE.key);
  proxy = await startTcpProxy(`http://127.0.0.1:${hidden}`);
  urls.set('a', `wss://127.0.0.1:${tls}/connect`);
  urls.set('b', `ws://127.0.0.1:${plain}/connect`);
  urls.set('c', `${proxy.url.replace('http', 'ws')}/connect`);
  const shared = {
    ...{ CALLBOARD_REDIS_URL: inject('redisUrl'), CALLBOARD_STORE: 'owned', CALLBOARD_DURABILITY: 'memory' },
    ...{ CALLBOARD_NAMESPACE: namespace, CALLBOARD_SECRET: SECRET, CALLBOARD_ADMIN_TOKEN: 'admin-of-the-tests' },
    ...{ CALLBOARD_LOG_LEVEL: 'warn', PATH: process.env['PATH'], XDG_STATE_HOME: process.env['XDG_STATE_HOME'] },
  };
  await Promise.all(
    NAMES.map(async (name, i) => {
      const own = { CALLBOARD_NODE_ID: name, CALLBOARD_PORT: `${ports[i]}`, CALLBOARD_ADVERTISE_URL: urlOf(name) };
      const env = { ...shared, ...own, ...(name === 'a' && files) };
      const child = spawn(process.execPath, [BIN, 'serve', '--json'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
      relays.set(name, child);
      await once(child.stdout, 'data');
    }),
  );
  await placed();
});
afterAll(async () => {
  await Promise.all([...relays.keys()].map(kill));
  await proxy[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

function urlOf(name: Name): string {
  return urls.get(name) ?? '';
}

async function kill(name: Name): Promise<void> {
  const child = relays.get(name);
  relays.delete(name);
  if (!child || child.exitCode !== null) return;
  const closed = once(child, 'close');
  child.kill('SIGKILL');
  await closed;
}

function token(user: string): Promise<string> {
  const scopes = ['connect', 'invoke'];
  return signToken({ secret: SECRET, user, scopes, ttlSeconds: TOKEN_SECONDS, now: Date.now() });
}

/** Returns the address that a relay names as the home of a user; its own if it names none. */
async function homeOf(user: string, asked: Name = 'b'): Promise<string> {
  const socket = new TrustingSocket(urlOf(asked), SUBPROTOCOL);
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'hello', token: await token(user) }));
  const [data] = await once(socket, 'message');
  socket.terminate();
  const frame = parseDown(String(data));
  if (frame?.type !== 'welcome') throw new Error(`no welcome: ${String(data)}`);
  return frame.home ?? urlOf(asked);
}

const USERS = Array.from({ length: 30 }, (_, i) => `user-${i}`);
let homes: readonly string[] = [];

/** Waits until no partition has to move any more, and the relays say so. */
async function placed(): Promise<void> {
  const redis = connectCommands(inject('redisUrl'));
  await redis.connect();
  const keys = new Keys(ownedNamespace(namespace), { partitions: PARTITIONS, groups: 1, digest: '' });
  const partitions = Array.from({ length: PARTITIONS + 1 }, (_, partition) => partition);
  await eventually(async () => {
    const { processes, live } = keys.ofGroup(0);
    const named = await redis.smembers(processes);
    const leases = await redis.mget(named.map(live));
    const alive = named.filter((_, i) => leases[i] !== null);
    expect(alive.map(nodeOf).sort()).toEqual([...relays.keys()]);
    const fences = await redis.mget(partitions.map((partition) => keys.of(partition).fence));
    const owners = fences.map((fence) => readFence(fence)?.process ?? null);
    expect(owners).toEqual(partitions.map((partition) => shouldOwn(partition, alive)));
  });
  redis.disconnect();
  await eventually(async () => {
    const seen = await Promise.all([...relays.keys()].map((name) => Promise.all(USERS.map((u) => homeOf(u, name)))));
    const [first = []] = seen;
    expect(new Set(first)).toEqual(new Set([...relays.keys()].map(urlOf)));
    for (const other of seen) expect(other).toEqual(first);
    homes = first;
  });
}

/** Returns a user who is at home with this relay. Each call returns another one. */
function userOf(name: Name): string {
  const at = homes.findIndex((home, i) => home === urlOf(name) && !taken.has(i));
  taken.add(at);
  return USERS[at] ?? expect.fail(`no user is at home with ${name}`);
}
const taken = new Set<number>();

type Linked = AsyncDisposable & {
  readonly runtime: Runtime;
  readonly caller: Caller;
  readonly userId: string;
  /** How often each command ran. */
  readonly runs: ReadonlyMap<string, number>;
  /** The addresses to which the two connected. */
  readonly opened: readonly string[];
  /** The states of the caller's link. */
  readonly called: readonly LinkStatus[];
  welcome(): Welcome;
  call(commandId: string): Promise<unknown>;
};

type Hosts = { readonly url: string | readonly string[]; readonly homes?: readonly string[] };

/** Connects a client and a caller of a user. They go home at once when they may. */
async function link(userId: string, hosts: Hosts): Promise<Linked> {
  const runs = new Map<string, number>();
  const opened: string[] = [];
  const called: LinkStatus[] = [];
  const Socket = class extends TrustingSocket {
    constructor(url: string, protocol: string) {
      opened.push(url);
      super(url, protocol);
    }
  };
  const common = { ...hosts, token: () => token(userId), random: () => 0.05, WebSocket: Socket, onError() {} };
  const runtime = createRuntime({
    ...{ ...common, clientId: 'desk', clientType: 'console', onStatus() {} },
  });
  runtime.handle('echo', {}, async ({ text }, { commandId }) => {
    runs.set(commandId, (runs.get(commandId) ?? 0) + 1);
    await new Promise((resolve) => setTimeout(resolve, 5));
    return text;
  });
  runtime.connect();
  const caller = createLinkCaller({ ...common, onStatus: (status) => void called.push(status) });
  const welcome = (): Welcome =>
    runtime.status.state === 'connected' ? runtime.status.welcome : expect.fail(runtime.status.state);
  await runtime.ready();
  return {
    ...{ runtime, caller, userId, runs, opened, called, welcome },
    async call(commandId) {
      const target = { userId, clientId: 'desk', action: 'echo' };
      const options = { commandId, connectWithinMs: 30_000, respondWithinMs: 30_000 };
      return await caller.invoke(target, { text: commandId }, options);
    },
    async [Symbol.asyncDispose]() {
      await runtime.close({ withinMs: 1_000 });
      await caller.close();
    },
  };
}

/** Calls without a pause until `isOver`, several at a time. Each call must complete, and its handler run once. */
async function callUntil({ call, runs }: Linked, isOver: () => boolean): Promise<number> {
  let calls = 0;
  const one = async (): Promise<void> => {
    while (!isOver()) {
      const id = `c-${calls++}-${randomUUID()}`;
      expect(await call(id)).toMatchObject({ outcome: 'completed', result: id });
      expect(runs.get(id)).toBe(1);
    }
  };
  await Promise.all(Array.from({ length: 8 }, one));
  return calls;
}

/** Whether both links are at this relay. */
const isAt = ({ runtime, called }: Linked, name: Name): boolean =>
  [runtime.status, called.at(-1)].every((status) => status?.state === 'connected' && status.welcome.node_id === name);

describe('links of users whom another relay owns', () => {
  test('go there with all that is in flight: each call ends once, and runs once', async () => {
    for (const home of ['a', 'c'] as const) {
      await using linked = await link(userOf(home), { url: urlOf('b'), homes: ['127.0.0.1:*'] });
      const { node_id: first, epoch } = linked.welcome();
      expect([first, linked.welcome().home]).toEqual(['b', urlOf(home)]);
      let more = 0;
      // It goes on for a while at the home.
      expect(await callUntil(linked, () => isAt(linked, home) && more++ > 40)).toBeGreaterThan(40);
      expect(linked.runtime.url).toBe(urlOf(home));
      expect(linked.welcome()).toMatchObject({ node_id: home, resumed: true });
      expect(linked.welcome().epoch).toBeGreaterThan(epoch ?? Infinity);
      expect(linked.opened.toSorted()).toEqual([urlOf('b'), urlOf('b'), urlOf(home), urlOf(home)].toSorted());
    }
  });

  test('stay at the relay of the program if the home is of a host that it did not name', async () => {
    await using linked = await link(userOf('c'), { url: urlOf('b') });
    expect(linked.welcome().home).toBe(urlOf('c'));
    const until = Date.now() + 2_000;
    await callUntil(linked, () => Date.now() > until);
    expect(linked.opened).toEqual([urlOf('b'), urlOf('b')]);
  });

  test('never go from TLS to a home without', async () => {
    await using linked = await link(userOf('b'), { url: urlOf('a'), homes: ['127.0.0.1:*'] });
    expect(linked.welcome().home).toBe(urlOf('b'));
    const until = Date.now() + 2_000;
    await callUntil(linked, () => Date.now() > until);
    expect(linked.opened).toEqual([urlOf('a'), urlOf('a')]);
  });

  test('stay as they are while the home cannot be reached, and go when it can', async () => {
    proxy.cut();
    await using linked = await link(userOf('c'), { url: urlOf('b'), homes: ['127.0.0.1:*'] });
    const { epoch } = linked.welcome();
    const tries = (): number => linked.opened.filter((url) => url === urlOf('c')).length;
    await callUntil(linked, () => tries() > 3);
    expect([linked.welcome().epoch, linked.called.length]).toEqual([epoch, 2]);
    proxy.mend();
    await callUntil(linked, () => isAt(linked, 'c'));
  });

  test('come back when the home dies, and go to the next one that they are told', async () => {
    const url = NAMES.map(urlOf).filter((one) => one !== urlOf('a'));
    await using linked = await link(userOf('c'), { url, homes: [new URL(urlOf('a')).host] });
    await callUntil(linked, () => isAt(linked, 'c'));
    await kill('c');
    await linked.call('after');
    await placed();
    const address = await homeOf(linked.userId);
    const home = NAMES.find((name) => urlOf(name) === address);
    expect(home).toMatch(/^[ab]$/);
    await eventually(() => expect(home && isAt(linked, home)).toBe(true));
    expect(await linked.call('at-home')).toMatchObject({ outcome: 'completed', result: 'at-home' });
    expect(linked.runs.get('at-home')).toBe(1);
  });
});
