/** Tests who may do what over links. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DownFrame, UpHeader } from '../../src/protocol/frames.ts';
import { Peer } from '../gateway/kit/test-gateway.ts';
import type { Welcomed } from './kit/test-relay.ts';
import { ABSENT, MARK, OTHER, OWNER, PLANTED, withoutGiven, world, type Ids, type World } from './kit/planted.ts';

let at: World;
beforeAll(async () => {
  at = await world();
});
afterAll(() => at[Symbol.asyncDispose]());

type Ask = (ids: Ids) => { readonly header: UpHeader; readonly payload?: object };
const key = ({ user, client, command }: Ids) => ({ user_id: user, client_id: client, command_id: command });

/** The frames in which a caller refers to a command or a client. The keys are the names of the test cases. */
const FRAMES: Readonly<Record<string, Ask>> = {
  invoke: (ids) => ({
    header: { type: 'invoke', ref: 'r', ...key(ids), action: ids.action },
    payload: ids.params,
  }),
  await: (ids) => ({ header: { type: 'await', ref: 'r', ...key(ids) } }),
  'await that only reads': (ids) => ({ header: { type: 'await', ref: 'r', ...key(ids), within_ms: 0 } }),
  cancel: (ids) => ({ header: { type: 'cancel', ref: 'r', ...key(ids), reason: 'none' } }),
};

async function answer(peer: Welcomed, ask: Ask, ids: Ids): Promise<DownFrame> {
  const { header, payload } = ask(ids);
  peer.send(header, payload);
  return peer.next('refused');
}

function shown(frame: DownFrame, ids: Ids): string {
  return withoutGiven(JSON.stringify(frame), ids);
}

describe.each(Object.entries(FRAMES))('on a link, %s', (_name, ask) => {
  it('of another user is not found, whether foreign or absent', async () => {
    const bob = await at.caller(`${OTHER}:invoke`);
    const foreign = await answer(bob, ask, PLANTED);
    expect(foreign).toMatchObject({ type: 'refused', code: 'not_found', ref: 'r' });
    expect(shown(foreign, PLANTED)).toBe(shown(await answer(bob, ask, ABSENT), ABSENT));
    expect(shown(foreign, PLANTED)).not.toContain(MARK);
  });

  it('is forbidden on a link of its owner whose token lacks the scope', async () => {
    const hello = { client_id: `${MARK}-second`, instance_id: 'i1', payload: {} };
    const client = await at.client({ user: `${OWNER}:connect`, ...hello });
    const own = await answer(client, ask, PLANTED);
    expect(own).toMatchObject({ code: 'forbidden' });
    expect(shown(own, PLANTED)).toBe(shown(await answer(client, ask, ABSENT), ABSENT));
  });

  it('is answered for an administrator and the owner', async () => {
    for (const requester of ['admin', `${OWNER}:invoke`]) {
      const peer = await at.caller(requester);
      const { header, payload } = ask(PLANTED);
      peer.send(header, payload);
      const frame = header.type === 'cancel' ? await peer.next('receipt') : await peer.next('outcome');
      expect(frame).toMatchObject({ ref: 'r', command_id: PLANTED.command });
    }
  });
});

describe('opening a link', () => {
  const hello = {
    type: 'hello',
    client_id: PLANTED.client,
    instance_id: `${MARK}-intruder`,
    client_type: 'web',
  } as const;
  const opening = async (header: UpHeader) => {
    const peer = new Peer(at);
    await peer.opened;
    peer.send(header);
    return { refused: await peer.next('refused'), ...(await peer.end()) };
  };

  it.each([
    ['a client without the scope connect', `${OWNER}:invoke`, 'client'],
    ['a client with the scope host alone', `${OWNER}:host`, 'client'],
    ['a client by an administrator, who names no user', 'admin', 'client'],
    ['a caller without the scope invoke', `${OWNER}:connect`, 'caller'],
    ['a caller with the scope host alone', `${OWNER}:host`, 'caller'],
  ])('is forbidden to %s', async (_who, requester, kind) => {
    const token = (await at.token(requester)) ?? '';
    const { refused, code } = await opening(kind === 'client' ? { ...hello, token } : { type: 'hello', token });
    expect([refused.code, code]).toEqual(['forbidden', 4403]);
  });

  it.each(['client', 'caller'])('requires a valid token of a %s', async (kind) => {
    const { refused, code } = await opening(
      kind === 'client' ? { ...hello, token: 'no' } : { type: 'hello', token: 'no' },
    );
    expect([refused.code, code]).toEqual(['unauthenticated', 4401]);
  });

  it('by another user with the same client id affects neither the connection nor its commands', async () => {
    const before = await at.graphql('{ connections { nodes { clientId instanceId lastSeenAt inFlight } } }', {
      requester: OWNER,
    });
    const intruder = await at.client({ user: OTHER, client_id: PLANTED.client, instance_id: `${MARK}-instance` });
    expect(intruder.welcome.replaced_instance_id).toBeUndefined();
    expect(intruder.welcome.resumed).toBe(false);
    for (const command_id of [`${MARK}-live`, 'absent']) {
      intruder.send({ type: 'ack', command_id });
      intruder.send({ type: 'progress', command_id }, { from: OTHER });
      intruder.send({ type: 'result', command_id }, { from: OTHER });
      expect(await intruder.next('result_ack')).toMatchObject({ recorded: 'unknown' });
    }
    await intruder.sync();
    const live = await at.rest(`/commands/${OWNER}/${PLANTED.client}/${MARK}-live`, { requester: OWNER });
    expect(live.json).toMatchObject({ stage: 'acknowledged', outcome: null, result: null });
    expect(
      await at.graphql('{ connections { nodes { clientId instanceId lastSeenAt inFlight } } }', { requester: OWNER }),
    ).toMatchObject({
      data: before.data,
    });
    expect(at.tab.seen('replaced')).toEqual([]);
    expect(intruder.seen('command')).toEqual([]);
  });

  it('of the owner with another client id cannot end a command of the first', async () => {
    const second = await at.client({ user: OWNER, client_id: `${MARK}-third`, instance_id: `${MARK}-instance` });
    second.send({ type: 'result', command_id: `${MARK}-live` }, {});
    expect(await second.next('result_ack')).toMatchObject({ recorded: 'unknown' });
  });
});
