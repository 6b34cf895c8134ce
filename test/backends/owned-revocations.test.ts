/** Tests on three relays that own partitions together that a revoked token does nothing after the answer, on any of them. */
import { expect, it } from 'vitest';
import { openCallboard } from '../../src/callboard.ts';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { readConfig } from '../../src/config.ts';
import { signToken } from '../../src/http/tokens.ts';
import { newDeviceKey } from '../kit/device-key.ts';
import { eventually, TOKEN_SECONDS } from '../kit/patience.ts';
import { startRedis } from '../kit/redis.ts';

const ADMIN = 'an-administrator-of-the-test';
const SECRET = 'a secret that is long enough for it';

const tokenOf = (user: string): Promise<string> =>
  signToken({ secret: SECRET, user, scopes: ['connect', 'invoke'], ttlSeconds: TOKEN_SECONDS, now: Date.now() });

async function post(url: string, path: string, body: object, token?: string) {
  const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) };
  const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  return { status: answer.status, json: await answer.json() };
}

it('a revocation counts on every relay when it is answered: for requests, links, calls in progress and devices', async () => {
  const redis = await startRedis();
  await using closing = new AsyncDisposableStack();
  closing.defer(() => redis.stop());
  const urls: string[] = [];
  for (const name of ['a', 'b', 'c']) {
    const env = {
      ...{ CALLBOARD_REDIS_URL: `redis://127.0.0.1:${redis.port}`, CALLBOARD_STORE: 'owned', CALLBOARD_PORT: '0' },
      ...{ CALLBOARD_NODE_ID: name, CALLBOARD_DURABILITY: 'memory', CALLBOARD_SECRET: SECRET },
      CALLBOARD_ADMIN_TOKEN: ADMIN,
    };
    const relay = await openCallboard({ config: readConfig(env, []) });
    closing.defer(() => relay.close());
    urls.push(await relay.listen());
  }
  const [first = '', second = '', third = ''] = urls;
  const token = await tokenOf('alice');
  const runtime = createRuntime({
    ...{ url: `${third.replace('http', 'ws')}/connect`, token: async () => token, clientId: 'tab' },
    ...{ clientType: 'browser' as const, onStatus: () => {}, onError: () => {} },
  });
  closing.defer(() => runtime.close({ withinMs: 0 }));
  let ran = 0;
  runtime.handle('open', { summary: 'Opens' }, () => ++ran);
  runtime.connect();
  await runtime.ready();
  await eventually(async () =>
    expect((await post(second, '/connections/alice/tab/actions/open', {}, token)).json.outcome).toBe('completed'),
  );

  const key = await newDeviceKey();
  const kiosk = { name: 'Kiosk', client_type: 'browser', proof: await key.prove('enrol') };
  const { user_code: code } = (await post(first, '/enrolments', kiosk)).json;
  expect((await post(second, '/enrolments/decide', { code, decision: 'confirm' }, token)).status).toBe(200);
  const proof = await key.prove('token');
  expect((await post(third, '/devices/token', { proof })).json.token).toEqual(expect.any(String));
  expect((await post(first, '/devices/token', { proof })).status).toBe(401);

  // One token is revoked with what it has queued, and the user's other token keeps what it has.
  const other = await tokenOf('alice');
  const { jti } = JSON.parse(Buffer.from(other.split('.')[1] ?? '', 'base64url').toString());
  const waiting = { connect_within_ms: 60_000, wait_for: 'admitted' };
  for (const [command_id, by] of [['o1', other] as const, ['o2', token] as const])
    expect((await post(first, '/connections/alice/away/actions/open', { ...waiting, command_id }, by)).status).toBe(
      202,
    );
  const one = await post(second, '/revocations', { token_id: jti, reason: 'it was in a log' }, ADMIN);
  expect(one.json).toMatchObject({ cancelled: 1, links: 0, silent: [] });

  // Callers on two relays call without a pause while the third revokes.
  let isRevoked = false;
  const late: string[] = [];
  const call = async (url: string): Promise<void> => {
    // It stops at the first refusal: an address that goes on with refused tokens is not heard for a while.
    for (let status = 0; !isRevoked && status !== 401;)
      ({ status } = await post(url, '/connections/alice/tab/actions/open', {}, token).catch(() => ({ status: 0 })));
    const { status } = await post(url, '/connections/alice/tab/actions/open', {}, token);
    if (status !== 401) late.push(`${url}: ${status}`);
  };
  const callers = [first, second, first, second].map(call);
  const queued = { command_id: 'q1', connect_within_ms: 60_000, wait_for: 'admitted' };
  expect((await post(first, '/connections/alice/away/actions/open', queued, token)).status).toBe(202);
  const { status, json } = await post(second, '/revocations', { user_id: 'alice', reason: 'lost' }, ADMIN);
  const ranBefore = ran;
  isRevoked = true;
  expect([status, json.silent, json.nodes]).toEqual([201, [], ['a', 'b', 'c']]);
  expect(json.links).toBe(1);
  expect(json.cancelled).toBeGreaterThanOrEqual(1);
  await Promise.all(callers);
  expect(late).toEqual([]);
  for (const url of urls) expect((await post(url, '/enrolments/lookup', { code }, token)).status).toBe(401);
  expect((await post(first, '/devices/token', { proof: await key.prove('token') })).status).toBe(403);
  const headers = { authorization: `Bearer ${ADMIN}` };
  const record = await fetch(`${third}/delivery/status?user_id=alice&client_id=away&command_id=q1`, { headers });
  expect(await record.json()).toMatchObject({ outcome: 'cancelled', dispatched_at: null });
  expect(ran).toBe(ranBefore);
});
