/** Tests that partitions move to the relay that has their links, with clients on sockets of three relays over one Redis. */
import { expect, it, vi } from 'vitest';
import type { OwnedBackend } from '../../src/backends/owned/open.ts';
import { createPlacement, shouldOwn } from '../../src/backends/owned/placement.ts';
import { createCallboard } from '../../src/callboard.ts';
import { createRuntime, type Runtime } from '../../src/clients/runtime/index.ts';
import { createLinkCaller } from '../../src/clients/caller/index.ts';
import { signToken } from '../../src/http/tokens.ts';
import { systemClock } from '../../src/platform/system.ts';
import { ownedPlace, type OwnedPlace } from '../kit/owned.ts';
import { eventually, TEST_MS, TOKEN_SECONDS } from '../kit/patience.ts';

// Links must have stayed with a relay for many leases.
vi.setConfig({ testTimeout: 2 * TEST_MS });

const SECRET = 'a secret of the tests, long enough for HS256';
const PARTITIONS = 6;
/** With that of the audit, and half a share more. */
const MOST = Math.ceil((1.5 * (PARTITIONS + 1)) / 3);
const LINKS_EACH = 9;
const LEASE_MS = 700;

type Relay = { readonly backend: OwnedBackend; readonly link: string } & AsyncDisposable;

async function openRelay(nodeId: string, place: OwnedPlace): Promise<Relay> {
  const backend = await place.open({ nodeId, scopeOf: (userId) => userId, leaseMs: LEASE_MS });
  const callboard = createCallboard({ backend: backend.backend, config: { nodeId, auth: { secret: SECRET } } });
  const url = await callboard.listen();
  return {
    backend,
    link: `${url.replace('http', 'ws')}/connect`,
    [Symbol.asyncDispose]: () => callboard.close(),
  };
}

it('come to the relay with nearly all links, as far as it does not own far more than its share', async () => {
  const place = ownedPlace(systemClock, PARTITIONS);
  const opened = await Promise.all(['a', 'b', 'c'].map((nodeId) => openRelay(nodeId, place)));
  await using stack = new AsyncDisposableStack();
  for (const relay of opened) stack.use(relay);
  const ownedBy = ({ backend }: Relay): number => backend.owners.owned.length;
  const token = (user: string) =>
    signToken({ secret: SECRET, user, scopes: ['connect', 'invoke'], ttlSeconds: TOKEN_SECONDS, now: Date.now() });
  // One user in each partition.
  const { ofUser } = createPlacement(PARTITIONS, (userId) => userId);
  const users = new Map(Array.from({ length: 100 }, (_, i) => [ofUser(`user-${i}`), `user-${i}`]));
  expect(users.size).toBe(PARTITIONS);
  const processes = [...(opened[0]?.backend.owners.alive.keys() ?? [])].sort();
  expect(processes).toHaveLength(3);
  const byHash = Map.groupBy(Array(PARTITIONS + 1).keys(), (partition) => shouldOwn(partition, processes));
  await eventually(() =>
    expect(opened.map(ownedBy)).toEqual(processes.map((process) => byHash.get(process)?.length ?? 0)),
  );
  // The links are with the one that owns least, so that some partitions have to move.
  const [near, first] = opened.toSorted((one, other) => ownedBy(one) - ownedBy(other));
  if (!near || !first) throw new Error('no relays');
  expect(ownedBy(near)).toBeLessThan(MOST);
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
  await eventually(() => expect(ownedBy(near)).toBe(MOST));
  // All that has moved is there: each client is called through a relay that does not have its link.
  const called = [...users.values()].map(async (userId) => {
    const caller = createLinkCaller({ url: first.link, token: () => token(userId), onStatus() {} });
    stack.defer(() => caller.close());
    return caller.invoke({ userId, clientId: 'tab-0', action: 'echo' }, { userId }, { connectWithinMs: 10_000 });
  });
  for (const answer of await Promise.all(called)) expect(answer.outcome).toBe('completed');
  await eventually(() => expect(runtimes.map(({ status }) => status.state)).toEqual(runtimes.map(() => 'connected')));
});
