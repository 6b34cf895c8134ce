/** Tests that partitions move to the relay that has their links, with clients on sockets of three relays over one Redis. */
import { randomUUID } from 'node:crypto';
import { expect, inject, it, vi } from 'vitest';
import { openOwned, type OwnedBackend } from '../../src/backends/owned/open.ts';
import { createPlacement, shouldOwn } from '../../src/backends/owned/placement.ts';
import { connectTo } from '../../src/backends/redis/client.ts';
import { readTarget } from '../../src/backends/redis/target.ts';
import { createCallboard } from '../../src/callboard.ts';
import { createRuntime, type Runtime } from '../../src/clients/runtime/index.ts';
import { createLinkCaller } from '../../src/clients/caller/index.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { signToken } from '../../src/http/tokens.ts';
import { createCrypto, systemClock, systemLoop } from '../../src/platform/system.ts';
import { eventually, TEST_MS, TOKEN_SECONDS } from '../kit/patience.ts';

// Links must have stayed with a relay for many leases.
vi.setConfig({ testTimeout: 2 * TEST_MS });

const SECRET = 'a secret of the tests, long enough for HS256';
const PARTITIONS = 6;
/** With that of the audit, and half a share more. */
const MOST = Math.ceil((1.5 * (PARTITIONS + 1)) / 3);
const LINKS_EACH = 9;
const LEASE_MS = 500;

type Relay = { readonly backend: OwnedBackend; readonly link: string } & AsyncDisposable;

async function openRelay(nodeId: string, namespace: string): Promise<Relay> {
  const target = readTarget(inject('redisUrl'));
  const random = createCrypto('test');
  const backend = await openOwned({
    connect: (purpose, findNode) => connectTo(target, purpose, silentLog, { findNode }),
    ...{ namespace, partitions: PARTITIONS, groups: 1, digest: 'd', nodeId, claims: true, leaseMs: LEASE_MS },
    ...{ clock: systemClock, system: systemClock, loop: systemLoop, random, log: silentLog, version: 'test' },
    scopeOf: (userId) => userId,
    memory: { sha256: random.sha256, markSecret: 'x', shares: createShares() },
  });
  const callboard = createCallboard({ backend: backend.backend, config: { nodeId, auth: { secret: SECRET } } });
  const url = await callboard.listen();
  return {
    backend,
    link: `${url.replace('http', 'ws')}/connect`,
    [Symbol.asyncDispose]: () => callboard.close(),
  };
}

it('come to the relay with nearly all links, as far as it does not own far more than its share', async () => {
  const namespace = randomUUID();
  const opened = await Promise.all(['a', 'b', 'c'].map((nodeId) => openRelay(nodeId, namespace)));
  await using stack = new AsyncDisposableStack();
  for (const relay of opened) stack.use(relay);
  const [first, near] = opened;
  if (!first || !near) throw new Error('no relays');
  const ownedBy = ({ backend }: Relay): number => backend.owners.owned.length;
  const token = (user: string) =>
    signToken({ secret: SECRET, user, scopes: ['connect', 'invoke'], ttlSeconds: TOKEN_SECONDS, now: Date.now() });
  // One user in each partition.
  const { ofUser } = createPlacement(PARTITIONS, (userId) => userId);
  const users = new Map(Array.from({ length: 100 }, (_, i) => [ofUser(`user-${i}`), `user-${i}`]));
  expect(users.size).toBe(PARTITIONS);
  await eventually(() => expect(opened.map(ownedBy).reduce((sum, one) => sum + one)).toBe(PARTITIONS + 1));
  const runtimes = [...users.values()].flatMap((user) =>
    Array.from({ length: LINKS_EACH }, (_, i): Runtime => {
      const runtime = createRuntime({
        ...{ url: near.link, token: () => token(user), clientId: `tab-${i}`, clientType: 'console', onStatus() {} },
        actions: [{ name: 'echo', run: (params) => params }],
      });
      stack.defer(() => runtime.close({ withinMs: 0 }));
      runtime.connect();
      return runtime;
    }),
  );
  await Promise.all(runtimes.map((runtime) => runtime.ready()));
  // No relay has an address, so nobody is told a home.
  for (const { status } of runtimes) expect(status.state === 'connected' && status.welcome.home).toBeUndefined();
  const processes = [...near.backend.owners.alive.keys()];
  const nearest = processes.find((process) => process.startsWith('b.')) ?? '';
  expect(processes).toHaveLength(3);
  const all = Array.from({ length: PARTITIONS + 1 }, (_, partition) => partition);
  const ofHash = all.filter((partition) => shouldOwn(partition, processes) === nearest).length;
  await eventually(() => expect(ownedBy(near)).toBe(Math.max(ofHash, MOST)));
  // All that has moved is there: each client is called through a relay that does not have its link.
  const called = [...users.values()].map(async (userId) => {
    const caller = createLinkCaller({ url: first.link, token: () => token(userId), onStatus() {} });
    stack.defer(() => caller.close());
    return caller.invoke({ userId, clientId: 'tab-0', action: 'echo' }, { userId }, { connectWithinMs: 10_000 });
  });
  for (const answer of await Promise.all(called)) expect(answer.outcome).toBe('completed');
  for (const { status } of runtimes) expect(status.state).toBe('connected');
});
