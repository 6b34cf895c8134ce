/** Tests that reading changes nothing in the store. */
import { expect, it } from 'vitest';
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import type { Backend } from '../../src/core/backend.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { FakeClock } from '../kit/clock.ts';
import { FIELDS } from './kit/access-fields.ts';
import { ROUTES } from './kit/access-routes.ts';
import { startTestRelay, until } from './kit/test-relay.ts';
import { PLANTED, world, type World } from './kit/planted.ts';
import { documentOf, rootFields } from './kit/selection.ts';

/** The store methods that change something. */
const ACTS = new Set([
  ...['connect', 'touch', 'advertise', 'disconnect', 'admit', 'dispatch', 'report', 'finish', 'settle', 'rebind'],
  ...['attach', 'remove', 'retain', 'beat', 'post', 'due', 'register', 'put', 'clean', 'mark'],
]);

/** Returns a backend that records which store methods are called. */
function watched(backend: Backend, calls: string[]): Backend {
  const stores = Object.entries(backend).map(([name, store]) => {
    if (typeof store !== 'object' || store === null || name === 'bus') return [name, store];
    return [
      name,
      new Proxy<Record<string, unknown>>(store, {
        get(target, method: string) {
          const member = target[method];
          if (typeof member !== 'function') return member;
          return (...args: unknown[]) => {
            calls.push(`${name}.${method}`);
            return member.apply(target, args);
          };
        },
      }),
    ];
  });
  return Object.fromEntries(stores);
}

/** Reads everything that an administrator can read, over REST and GraphQL. */
async function readEverything(at: World): Promise<readonly string[]> {
  const answers: string[] = [];
  const ids = at.named(PLANTED);
  for (const [name, routes] of Object.entries(ROUTES)) {
    if (!name.startsWith('GET')) continue;
    for (const { target } of routes) {
      // The GET with the parameter `within_ms` is left out, because it waits.
      if (!target(ids).includes('within_ms')) answers.push((await at.rest(target(ids))).text);
    }
  }
  for (const field of rootFields().filter(({ operation }) => operation === 'query')) {
    for (const { call, admin } of FIELDS[field.name] ?? []) {
      // Requests that are refused to an administrator read nothing.
      if (admin === 'invalid_argument') continue;
      // Each payload that an administrator reads adds a row to the audit.
      if (field.name.startsWith('Query.audit')) continue;
      const variables = Object.fromEntries(Object.entries(ids).filter(([name]) => call.includes(`$${name}`)));
      answers.push((await at.graphql(documentOf(field, call), { variables })).text);
    }
  }
  return answers;
}

it('6. Observation routes never create, acquire, renew or release work', async () => {
  const clock = new FakeClock(Date.now());
  const calls: string[] = [];
  const memory = createMemoryBackend({ markSecret: 'x', clock, log: silentLog, sha256: createCrypto('x').sha256 });
  await using at = await world({ clock, backend: watched(memory, calls) });
  await at.tab.sync();
  await clock.advance(3_000);
  const sent = at.tab.all.length;
  calls.length = 0;
  const first = await readEverything(at);
  expect(first.length).toBeGreaterThan(20);
  for (let again = 0; again < 3; again++) expect(await readEverything(at)).toEqual(first);
  expect(calls.length).toBeGreaterThan(40);
  expect([...new Set(calls)].filter((call) => ACTS.has(call.split('.')[1] ?? ''))).toEqual([]);
  await at.tab.sync();
  expect(at.tab.all.length).toBe(sent + 1);
});

it('6. and constant reading keeps no connection alive and no caller waiting', async () => {
  await using at = await startTestRelay();
  const tab = await at.client();
  const invoked = at.post('/connections/alice/tab/actions/open', { command_id: 'c1', respond_within_ms: 30_000 });
  await tab.next('command');
  const count = async () => (await at.rest('/rpc/pending/count')).json?.['count'];
  await until(async () => (await count()) === 1);
  const query = '{ user(userId: "alice") { connections { nodes { status heartbeat lastSeenAt } } pendingRpcCount } }';
  const seen: unknown[] = [];
  const waits: number[] = [];
  for (let second = 1; second <= 61; second++) {
    await at.clock.advance(1000);
    const { user } = await at.data(query);
    seen.push(user.connections.nodes[0]?.status);
    waits.push(user.pendingRpcCount);
  }
  expect(seen.indexOf('STALE')).toBe(44);
  expect(seen.indexOf('DISCONNECTED')).toBe(59);
  expect(waits.lastIndexOf(1)).toBe(28);
  expect((await invoked).status).toBe(504);
});

it('6. Reading a record by its ids makes no waiter, and does not hold the record', async () => {
  await using at = await world();
  const path = `/commands/${PLANTED.user}/${PLANTED.client}/${PLANTED.command}`;
  expect((await at.rest(path)).status).toBe(200);
  expect((await at.rest(`/rpc/pending/count?user_id=${PLANTED.user}`)).json).toMatchObject({ count: 1 });
  for (let minutes = 0; minutes < 61; minutes += 20) {
    await at.clock.advance(20 * 60_000);
    await at.rest(path);
  }
  expect((await at.rest(path)).status).toBe(404);
});
