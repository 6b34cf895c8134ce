/** Tests the documented interface of pending RPCs, sentence by sentence. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startTestRelay, until, type TestRelay } from './kit/test-relay.ts';

let at: TestRelay;
beforeEach(async () => {
  at = await startTestRelay({ nodeId: 'n1' });
});
afterEach(() => at[Symbol.asyncDispose]());

const list = async (query = ''): Promise<any[]> => JSON.parse((await at.rest(`/rpc/pending?${query}`)).text).items;
const ids = async (query: string) => (await list(query)).map(({ command_id }) => command_id);
const count = async (query = '') => (await at.rest(`/rpc/pending/count?${query}`)).json?.['count'];

/** Starts a caller that waits, and resolves once its wait is in the list of waits. */
async function wait(user: string, client: string, body: object): Promise<void> {
  const before = await count();
  void at.post(`/connections/${user}/${client}/actions/open`, body, user);
  await until(async () => (await count()) === Number(before) + 1);
}

describe('A pending RPC record', () => {
  it('holds RPC identity, command identity, expected runtime instance, target node, creation timestamp, timeout timestamp, age and any observed instance mismatch', async () => {
    await at.client({ instance_id: 'i1' });
    const began = at.clock.now();
    await wait('alice', 'tab', { command_id: 'c1', respond_within_ms: 20_000 });
    await until(async () => (await list())[0]?.stage === 'dispatched');
    await at.clock.advance(1500);
    const record = {
      rpc_id: expect.stringMatching(/^.{8,}$/),
      command_id: 'c1',
      user_id: 'alice',
      client_id: 'tab',
      action: 'open',
      wait_for: 'completed',
      expected_instance_id: 'i1',
      context_id: null,
      node_id: 'n1',
      caller: { kind: 'user', name: 'alice', program: null },
      caller_node_id: at.callboard.core.nodeId,
      created_at: new Date(began).toISOString(),
      times_out_at: new Date(began + 20_000).toISOString(),
      connect_deadline: new Date(began).toISOString(),
      age_ms: 1500,
      instance_mismatch: null,
      stage: 'dispatched',
    };
    expect(await list()).toEqual([record]);
    await at.client({ instance_id: 'i2' });
    const [replaced] = await list();
    expect(replaced.instance_mismatch).toEqual({
      expected_instance_id: 'i1',
      observed_instance_id: 'i2',
      observed_at: new Date(at.clock.now()).toISOString(),
    });
  });

  it('times out at its time, and is then gone', async () => {
    await at.client();
    await wait('alice', 'tab', { command_id: 'c1', respond_within_ms: 20_000 });
    await at.clock.advance(19_999);
    expect(await count()).toBe(1);
    await at.clock.advance(1);
    expect(await count()).toBe(0);
  });
});

describe('GET /rpc/pending', () => {
  it('filters by user, client, owning node, minimum age, and cross-checks a runtime instance', async () => {
    await at.client({ client_id: 'tab', instance_id: 'i1' });
    await wait('alice', 'tab', { command_id: 'old' });
    await at.clock.advance(5000);
    await wait('alice', 'away', { command_id: 'parked', connect_within_ms: 60_000 });
    await at.client({ user: 'bob', client_id: 'tab', instance_id: 'i9' });
    await wait('bob', 'tab', { command_id: 'bobs' });
    expect(await ids('')).toEqual(['old', 'parked', 'bobs']);
    expect(await ids('user_id=alice')).toEqual(['old', 'parked']);
    expect(await ids('client_id=tab')).toEqual(['old', 'bobs']);
    expect(await ids('user_id=alice&client_id=tab')).toEqual(['old']);
    expect(await ids('node_id=n1')).toEqual(['old', 'bobs']);
    expect(await ids('node_id=n2')).toEqual([]);
    expect(await ids(`caller_node_id=${at.callboard.core.nodeId}`)).toEqual(['old', 'parked', 'bobs']);
    expect(await ids('min_age_ms=5000')).toEqual(['old']);
    expect(await ids('min_age_ms=5001')).toEqual([]);
    const crossed = await list('check_instance=i1');
    expect(
      crossed.map(({ command_id, instance_mismatch }) => [command_id, instance_mismatch?.observed_instance_id]),
    ).toEqual([
      ['old', undefined],
      ['parked', undefined],
      ['bobs', 'i1'],
    ]);
  });
});

describe('count and count-by-node routes for pending RPCs', () => {
  it('count what the list holds, for alerting without listing', async () => {
    await at.client();
    await wait('alice', 'tab', { command_id: 'c1' });
    await wait('alice', 'tab', { command_id: 'c2' });
    await wait('alice', 'away', { command_id: 'c3', connect_within_ms: 60_000 });
    expect([await count(), await count('client_id=away'), await count('min_age_ms=1')]).toEqual([3, 1, 0]);
    const { json, text } = await at.rest('/rpc/pending/count-by-node');
    expect(json).toMatchObject({
      items: [
        { node_id: null, count: 1 },
        { node_id: 'n1', count: 2 },
      ],
      completeness: { complete: true },
    });
    expect(text).not.toMatch(/c1|tab|alice/);
  });
});
