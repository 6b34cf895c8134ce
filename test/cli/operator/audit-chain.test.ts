/**
 * Tests the audit log of two relays over one Redis: its hash chain through restarts and changes by hand, and what
 * happens while it cannot be written.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import type { Client } from '../../../src/backends/redis/client.ts';
import { openCallboard, type Callboard } from '../../../src/callboard.ts';
import { createRuntime, type Runtime } from '../../../src/clients/runtime/index.ts';
import { signToken } from '../../../src/http/tokens.ts';
import { connectCommands } from '../../kit/redis.ts';
import { operatorOf, type Ended } from './kit/operator.ts';
import { TOKEN_SECONDS } from '../../kit/patience.ts';

const SECRET = 'a secret of the tests, long enough for HS256';
const ADMIN = 'admin-token-of-the-tests';
const VALUE = 'the-payload-that-must-not-leak';
const REDIS = {
  ...({
    url: inject('redisUrl'),
    store: 'redis',
    partitions: 1,
    durability: 'memory',
    namespace: randomUUID(),
  } as const),
  ...{ strictMigration: false, legacy: { commandStream: null, pending: null } },
} as const;

type Relay = { readonly callboard: Callboard; readonly url: string };
const relays = new Map<string, Relay>();
let redis: Client;
let desk: Runtime;
let key: string;

/** Starts the relay of this node, for the first time or again. */
async function start(nodeId: string): Promise<void> {
  await relays.get(nodeId)?.callboard.close();
  const auth = { secret: SECRET, adminTokens: [`ops=${ADMIN}`] };
  const callboard = await openCallboard({ config: { nodeId, auth, redis: REDIS } });
  relays.set(nodeId, { callboard, url: await callboard.listen() });
}

const tokenOf = (user: string) =>
  signToken({ secret: SECRET, user, scopes: ['connect', 'invoke'], ttlSeconds: TOKEN_SECONDS, now: Date.now() });
const urlOf = (nodeId: string) => relays.get(nodeId)?.url ?? '';
const at = (nodeId: string, ...argv: string[]): Promise<Ended> =>
  operatorOf({ CALLBOARD_URL: urlOf(nodeId), CALLBOARD_TOKEN: ADMIN })(argv);
const verify = (nodeId: string): Promise<Ended> =>
  operatorOf({ CALLBOARD_TOKEN: ADMIN, CALLBOARD_SECRET: SECRET })(['audit', 'verify', '--url', urlOf(nodeId)]);
const reveal = (nodeId: string) =>
  at(nodeId, 'calls', 'reveal', 'alice/desk/c1', '--subject', 'params', '--reason', 'asked by the user');

beforeAll(async () => {
  redis = connectCommands(REDIS.url);
  await redis.connect();
  for (const nodeId of ['a', 'b']) await start(nodeId);
  const link = `${urlOf('a').replace('http', 'ws')}/connect`;
  desk = createRuntime({ url: link, token: await tokenOf('alice'), clientId: 'desk', clientType: 'console' });
  desk.handle('echo', {}, () => null);
  desk.handle('hang', {}, (_, { signal }) => new Promise((_done, fail) => signal.addEventListener('abort', fail)));
  desk.connect();
  await desk.ready();
  const alice = operatorOf({ CALLBOARD_URL: urlOf('b'), CALLBOARD_TOKEN: await tokenOf('alice') });
  await alice(['call', 'alice/desk', 'echo', `text=${VALUE}`, '--id', 'c1']);
  expect(await reveal('a')).toMatchObject({ code: 0, out: expect.stringContaining(VALUE) });
  expect(await reveal('b')).toMatchObject({ code: 0, out: expect.stringContaining(VALUE) });
  [key = ''] = await redis.keys(`*${REDIS.namespace}*:audit`);
});
afterAll(async () => {
  await desk.close({ withinMs: 0 });
  for (const { callboard } of relays.values()) await callboard.close();
  redis.disconnect();
});

/** Replaces the rows in Redis, as somebody with access to it could. */
async function rewrite(
  change: (lines: readonly (readonly [id: string, fields: string[]])[]) => readonly (readonly [string, string[]])[],
) {
  const rows = await redis.xrange(key, '-', '+');
  await redis.del(key);
  for (const [id, fields] of change(rows)) await redis.xadd(key, id, ...fields);
  return () => rewrite(() => rows);
}

it('has one chain of both relays, which goes on when one of them restarts', async () => {
  for (const nodeId of ['a', 'b'])
    expect(await verify(nodeId)).toMatchObject({ code: 0, out: expect.stringMatching(/^4 rows verified, 1 to 4;/) });
  await start('b');
  expect(await reveal('b')).toMatchObject({ code: 0 });
  expect(await reveal('a')).toMatchObject({ code: 0 });
  for (const nodeId of ['a', 'b'])
    expect(await verify(nodeId)).toMatchObject({ code: 0, out: expect.stringMatching(/^8 rows verified, 1 to 8;/) });
});

it('shows a row that was changed, removed or written by hand', async () => {
  const changed = await rewrite((rows) =>
    rows.map(([id, fields]) => [
      id,
      fields.map((text) => (id === '3-0' ? text.replace('admin:ops', 'admin:eve') : text)),
    ]),
  );
  expect(await verify('a')).toMatchObject({ code: 1, err: expect.stringContaining('Row 3 was changed') });
  await changed();
  const removed = await rewrite((rows) => rows.filter(([id]) => id !== '5-0'));
  expect(await verify('b')).toMatchObject({ code: 1, err: expect.stringContaining('Row 5 is missing') });
  await removed();
  const copied = await rewrite((rows) => [...rows, ['9-0', rows[0]?.[1] ?? []]]);
  expect(await verify('b')).toMatchObject({ code: 1, err: expect.stringContaining('Row 1 is not in its place') });
  await copied();
  expect(await verify('b')).toMatchObject({ code: 0 });
});

it('stops every act and every payload while it cannot be written, and nothing else', async () => {
  const alice = operatorOf({ CALLBOARD_URL: urlOf('b'), CALLBOARD_TOKEN: await tokenOf('alice') });
  const hanging = alice(['call', 'alice/desk', 'hang', '--id', 'h1', '-o', 'json']);
  const running = async () => (await at('b', 'calls', 'ls', '--stage', 'acknowledged', '-o', 'ids')).out;
  while ((await running()) === '') await new Promise(setImmediate);
  const rows = await redis.dumpBuffer(key);
  // Redis refuses to append to a key that is not a stream. It accepts all other commands.
  await redis.set(key, 'no stream');
  for (const nodeId of ['a', 'b']) {
    for (const argv of [
      ['calls', 'reveal', 'alice/desk/c1', '--subject', 'params', '--reason', 'asked by the user'],
      ['calls', 'cancel', 'alice/desk/h1'],
      ['clients', 'disconnect', 'alice/desk', '--yes'],
      ['nodes', 'drain', 'b', '--yes'],
    ]) {
      const { code, out, err } = await at(nodeId, ...argv);
      expect([code, out, err], argv.join(' ')).toEqual([5, '', expect.stringContaining('audit_unavailable')]);
    }
    const read = await fetch(`${urlOf(nodeId)}/history/messages?stream=alice/clients/desk&include_payload=true`, {
      headers: { authorization: `Bearer ${ADMIN}` },
    });
    expect([read.status, (await read.text()).includes(VALUE)]).toEqual([503, false]);
  }
  expect(await running()).toBe('alice/desk/h1\n');
  expect((await at('a', 'clients', 'ls', '--status', 'connected', '-o', 'ids')).out).toBe('alice/desk\n');
  expect((await at('a', 'nodes', 'ls', '-o', 'jsonl')).out).not.toContain('"draining":true');
  expect(await alice(['calls', 'cancel', 'alice/desk/h1'])).toMatchObject({ code: 0 });
  expect(await hanging).toMatchObject({ code: 6 });
  await redis.restore(key, 0, rows, 'REPLACE');
  expect(await reveal('a')).toMatchObject({ code: 0 });
  expect(await verify('b')).toMatchObject({ code: 0, out: expect.stringMatching(/^10 rows verified/) });
});
