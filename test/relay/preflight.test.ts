/** Tests in random states that a preflight predicts the answer to the invocation after it, and changes nothing. */
import { expect, it } from 'vitest';
import { compilePolicy } from '../../src/core/auth/policy-file.ts';
import type { Backend } from '../../src/core/backend.ts';
import { ANY_COMMAND } from '../../src/core/commands/delivery-inspector.ts';
import { ANY_WAIT } from '../../src/core/commands/waiter-store.ts';
import { ANY_CONNECTION } from '../../src/core/connections/connection-filter.ts';
import type { MaybePromise } from '../../src/core/maybe-promise.ts';
import type { Scan } from '../../src/core/page.ts';
import { SHARE_NAMES } from '../../src/core/shares/share-bounds.ts';
import { createShares, type Shares } from '../../src/core/shares/shares.ts';
import { settle } from '../kit/clock.ts';
import { openCore } from '../kit/topology-core.ts';
import { numRuns } from '../kit/store.ts';
import { seeded, type SeededRandom } from './kit/random-calls.ts';

// Reads everything that the ports of a backend show, so that a test can compare it before and after an act.

const ALL = { first: 1000, after: null };

/** Returns everything that can be read, and how much of each limited resource these users hold. */
async function wholeStore(backend: Backend, shares: Shares, users: readonly string[]): Promise<unknown> {
  const { commands, connections, dedup, history, inspector, nodes, sites, waiters } = backend;
  const rows = async <T>(scan: MaybePromise<Scan<T>>): Promise<readonly T[]> => (await scan).rows.map(({ row }) => row);
  const records = await rows(inspector.list(ANY_COMMAND, ALL));
  const streams = (await Promise.all(users.map((userId) => rows(history.streams(userId, null, ALL))))).flat();
  const filter = { afterTime: null, beforeTime: null, kinds: null };
  const messages = streams.map(({ userId, suffix }) => history.messages(userId, suffix, filter, ALL));
  return {
    records,
    results: await Promise.all(records.map((record) => commands.result(record))),
    summary: await inspector.summary(),
    scopes: await rows(inspector.scopes(ALL)),
    connections: await rows(connections.list({ ...ANY_CONNECTION, labels: [] }, ALL)),
    waits: await rows(waiters.list(ANY_WAIT, ALL)),
    streams,
    messages: (await Promise.all(messages)).map((scan) => scan?.rows),
    dedup: await dedup.stats(3600),
    nodes: await rows(nodes.list(ALL)).then((found) => found.map(({ nodeId }) => nodeId)),
    sites: await rows(sites.list(null, ALL)),
    shares: SHARE_NAMES.map((share) => [share, shares.used(share), users.map((user) => shares.of(user).held(share))]),
  };
}

const USERS = ['alice', 'bob'];
const STATES = numRuns(100);
const CALLS = 25;

/** The answers that must occur at least once over all states. Otherwise the calls prove too little. */
const ANSWERS = [
  ...['pass', 'not_connected', 'command_conflict', 'capacity_exceeded', 'share_exceeded', 'policy_denied'],
  ...['action_not_advertised', 'instance_mismatch', 'draining'],
];

it(`agrees with the invocation that follows in ${STATES} random states, and changes nothing`, async () => {
  const seen = new Set<string>();
  for (let seed = 1; seed <= STATES; seed++) for (const answer of await compareCalls(seed)) seen.add(answer);
  expect([...seen].sort()).toEqual(expect.arrayContaining(ANSWERS));
});

/** Makes random calls in a random state, each after its preflight. Returns what the preflights answered. */
async function compareCalls(seed: number): Promise<ReadonlySet<string>> {
  const random = seeded(seed);
  const { shares, policy } = boundsOf(random);
  await using relay = await openCore({ shares, policy });
  const world = random.world(relay);
  const seen = new Set<string>();
  for (let step = 0; step < CALLS; step++) {
    await world.act();
    const { requester, request } = world.call();
    await settle();
    const before = await wholeStore(relay.backend, shares, USERS);
    const counts = new Map(relay.counts);
    const preflight = await relay.core.rpc.preflight(requester, request);
    const at = `seed ${seed}, step ${step}`;
    expect(await wholeStore(relay.backend, shares, USERS), at).toEqual(before);
    expect(relay.counts, at).toEqual(counts);
    const invocation = await world.invoke(requester, request);
    if (preflight.wouldAdmit === 'pass') expect(invocation.kind, at).not.toBe('refused');
    else expect(invocation, at).toMatchObject({ kind: 'refused', code: preflight.firstRefusal?.code });
    seen.add(preflight.firstRefusal?.code ?? preflight.wouldAdmit);
  }
  return seen;
}

/** Returns random bounds. A few calls reach some of them, and other bounds are never reached. */
function boundsOf({ pick }: SeededRandom) {
  const shares = createShares({
    waits: { guarantee: pick([1, 3, 100]), total: null },
    marks: { guarantee: pick([1, 4, 1000]), total: pick([4, 1000, 1000]) },
    queued_bytes: { guarantee: pick([100, 100_000]), total: 100_000 },
  });
  const policy = compilePolicy({
    rules: [{ name: 'no-close', effect: 'deny', actions: ['forbidden'], clientTypes: ['browser'] }],
    scopes: [{ id: 'team', members: ['bob'], capacity: 2 }],
    userCapacity: pick([3, 50]),
  });
  return { shares, policy };
}
