/** Tests calls over a link that are refused. */
import { describe, expect, test } from 'vitest';
import { admin, user } from '../kit/core.ts';
import { caller, client, startGateway, type TestGateway } from './kit/test-gateway.ts';
import { unawaited } from '../kit/patience.ts';

const INVOKE = { type: 'invoke', client_id: 'tab', action: 'open' } as const;

async function waits({ core }: TestGateway): Promise<number> {
  return (await core.rpc.count(admin, {})).count;
}

describe('refusals', () => {
  test.each([
    ['a client that is not there', { client_id: 'nobody' }, 'not_connected'],
    ['an action that is not advertised', { action: 'fly' }, 'action_not_advertised'],
    ['another instance than the live one', { instance_id: 'i9' }, 'instance_mismatch'],
    ["another user's client", { user_id: 'bob' }, 'not_found'],
    ['a budget beyond its bounds', { respond_within_ms: 1 }, 'invalid_argument'],
  ])('%s is refused with its code and the ref', async (_what, over, code) => {
    await using at = await startGateway();
    await client(at);
    await client(at, { token: 'user:bob:connect', client_id: 'tab' });
    const requester = await caller(at);
    requester.send({ ...INVOKE, ref: 'r1', command_id: 'c1', ...over });
    expect(await requester.next('refused')).toMatchObject({ code, frame: 'invoke', ref: 'r1', command_id: 'c1' });
    expect(await waits(at)).toBe(0);
  });

  test('an id that another call uses is a conflict, which names the refusing check', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const requester = await caller(at);
    requester.send({ ...INVOKE, ref: 'r1', command_id: 'c1' }, { a: 1 });
    await peer.next('command');
    requester.send({ ...INVOKE, ref: 'r2', command_id: 'c1' }, { a: 2 });
    expect(await requester.next('refused')).toMatchObject({ code: 'command_conflict', ref: 'r2', by: 'conflict' });
  });

  test.each([
    ['an array', '[1]', 'invalid_argument'],
    ['a text', '"x"', 'invalid_argument'],
    ['no JSON', '{"a"', 'invalid_argument'],
    ['nested too deeply', `{"a":${'['.repeat(300)}${']'.repeat(300)}}`, 'invalid_argument'],
    ['a reserved name', '{"__cooperative_site_id":1}', 'reserved_parameter'],
    ['a reserved name in another case', '{"__Cooperative_SITE_x":1}', 'reserved_parameter'],
    ['a reserved name, escaped', '{"\\u005f_cooperative_site_id":1}', 'reserved_parameter'],
  ])('params that are %s are refused', async (_what, params, code) => {
    await using at = await startGateway();
    const peer = await client(at);
    const requester = await caller(at);
    requester.raw(`${JSON.stringify({ ...INVOKE, ref: 'r1' })}\n${params}`);
    expect(await requester.next('refused')).toMatchObject({ code, frame: 'invoke', ref: 'r1' });
    await peer.sync();
    expect(peer.seen('command')).toEqual([]);
  });

  test('a foreign and an absent command are the same not_found, for await and for cancel', async () => {
    await using at = await startGateway();
    await client(at, { token: 'user:bob:connect,invoke', client_id: 'tab' });
    unawaited(
      at.core.rpc.invoke(user('bob'), {
        userId: 'bob',
        clientId: 'tab',
        action: 'open',
        params: null,
        commandId: 'c1',
      }),
    );
    const requester = await caller(at);
    const refusals = [];
    for (const type of ['await', 'cancel'] as const)
      for (const user_id of [undefined, 'bob', 'nobody']) {
        requester.send({ type, ref: 'r', user_id, client_id: 'tab', command_id: 'c1' });
        const { code, message } = await requester.next('refused');
        refusals.push(`${code} ${message}`);
      }
    expect(new Set(refusals).size).toBe(1);
    expect(refusals[0]).toMatch(/^not_found/);
  });

  test('an administrator must name the user; a client without the scope invoke may not call', async () => {
    await using at = await startGateway();
    const peer = await client(at, { token: 'user:alice:connect' });
    const ops = await caller(at, 'admin');
    ops.send({ ...INVOKE, ref: 'r1' });
    expect(await ops.next('refused')).toMatchObject({ code: 'invalid_argument', ref: 'r1', message: /user_id/ });
    ops.send({ ...INVOKE, ref: 'r2', command_id: 'c1', user_id: 'alice' });
    await peer.next('command');
    peer.send({ type: 'result', command_id: 'c1' });
    expect(await ops.next('outcome')).toMatchObject({ ref: 'r2', outcome: 'completed' });
    for (const frame of [
      { ...INVOKE, ref: 'r3' },
      { type: 'await', ref: 'r3', client_id: 'tab', command_id: 'c1' },
      { type: 'cancel', ref: 'r3', client_id: 'tab', command_id: 'c1' },
    ] as const) {
      peer.send(frame);
      expect(await peer.next('refused')).toMatchObject({ code: 'forbidden', frame: frame.type, ref: 'r3' });
    }
  });

  test('256 requests may be unanswered; the next is refused until one is answered', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const requester = await caller(at);
    for (let i = 0; i < 256; i++) requester.send({ ...INVOKE, ref: `r${i}`, command_id: `c${i}` });
    requester.send({ ...INVOKE, ref: 'over' });
    expect(await requester.next('refused')).toMatchObject({ code: 'rate_limited', ref: 'over', by: 'relay' });
    peer.send({ type: 'result', command_id: (await peer.next('command')).command_id });
    await requester.next('outcome');
    requester.send({ ...INVOKE, ref: 'fits', command_id: 'fits' });
    requester.send({ ...INVOKE, ref: 'over' });
    expect(await requester.next('refused')).toMatchObject({ ref: 'over' });
    await expect.poll(() => waits(at)).toBe(256);
  });

  test('a ref that is unanswered cannot be used twice', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const requester = await caller(at);
    requester.send({ ...INVOKE, ref: 'r1', command_id: 'c1' });
    requester.send({ ...INVOKE, ref: 'r1', command_id: 'c2' });
    expect(await requester.next('refused')).toMatchObject({ code: 'invalid_argument', ref: 'r1', command_id: 'c2' });
    await peer.next('command');
    peer.send({ type: 'result', command_id: 'c1' });
    expect(await requester.next('outcome')).toMatchObject({ ref: 'r1', command_id: 'c1' });
    requester.send({ ...INVOKE, ref: 'r1', command_id: 'c3' });
    await peer.next('command');
  });
});
