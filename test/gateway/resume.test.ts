/** Tests clients that reconnect, as the same instance or another. */
import { describe, expect, test } from 'vitest';
import { toJson } from '../../src/core/json.ts';
import { user } from '../kit/core.ts';
import { Peer, authenticator, client, startGateway, invoke } from './kit/test-gateway.ts';

const WHO = user('alice');
const KEY = { userId: 'alice', clientId: 'tab' };

type Welcomed = Awaited<ReturnType<typeof client>>;

function after({ welcome }: Welcomed): number {
  return (welcome.epoch ?? 0) + 1;
}

describe('reconnecting', () => {
  test('as the same instance resumes: an unfinished command stays with it and is not sent again', async () => {
    await using at = await startGateway();
    const first = await client(at);
    const waiting = invoke(at, 'c1');
    await first.next('command');
    first.ws.terminate();
    await expect.poll(() => at.gateway.size).toBe(0);
    const again = await client(at);
    expect(again.welcome).toMatchObject({ resumed: true, epoch: after(first) });
    again.send({ type: 'result', command_id: 'c1' }, 'held');
    expect(await again.next('result_ack')).toMatchObject({ recorded: 'recorded' });
    expect(await waiting).toMatchObject({ result: '"held"' });
    expect(again.seen('command')).toEqual([]);
  });

  test('lets the resumed link report on unfinished commands without counting as unsolicited', async () => {
    await using at = await startGateway();
    const first = await client(at);
    const waiting = Array.from({ length: 32 }, (_, i) => invoke(at, `c${i}`));
    for (const _ of waiting) await first.next('command');
    first.ws.terminate();
    await expect.poll(() => at.gateway.size).toBe(0);
    const again = await client(at);
    for (let round = 0; round < 20; round++)
      for (let i = 0; i < 32; i++) again.send({ type: 'progress', command_id: `c${i}` }, round);
    for (let i = 0; i < 32; i++) again.send({ type: 'result', command_id: `c${i}` }, i);
    const ends = await Promise.all(waiting);
    expect(ends.map((end) => end.kind === 'outcome' && end.result)).toEqual(ends.map((_, i) => String(i)));
    expect(again.seen('refused')).toEqual([]);
  });

  test('replaces nothing by a link that has ended before its hello was checked', async () => {
    const checked = Promise.withResolvers<void>();
    await using at = await startGateway({
      authenticator: {
        async authenticate(token, address) {
          if (token?.endsWith('connect,host')) await checked.promise;
          return authenticator.authenticate(token, address);
        },
      },
    });
    const present = await client(at, { instance_id: 'i2' });
    const earlier = new Peer(at);
    await earlier.opened;
    const names = { client_id: 'tab', instance_id: 'i1', client_type: 'browser' } as const;
    earlier.send({ type: 'hello', token: 'user:alice:connect,host', ...names }, {});
    earlier.ws.close(1001);
    await earlier.closed;
    checked.resolve();
    await expect.poll(() => at.gateway.size).toBe(1);
    await present.sync();
    expect(present.seen('replaced')).toEqual([]);
    const shown = await at.core.connections.get(WHO, KEY);
    expect(shown).toMatchObject({ instanceId: 'i2', disconnectedAt: null });
  });

  test('delivers commands that arrived in between after the welcome', async () => {
    await using at = await startGateway();
    const waiting = invoke(at, 'c1', { connectWithinMs: 10_000 });
    const peer = await client(at);
    await peer.next('command');
    expect(peer.all.map(({ type }) => type)).toEqual(['welcome', 'command']);
    peer.send({ type: 'result', command_id: 'c1' });
    await waiting;
  });

  test('as another instance replaces the old one, which is closed with 4409; its late result is fenced or late', async () => {
    await using at = await startGateway();
    const old = await client(at);
    const waiting = invoke(at, 'c1');
    await old.next('command');
    const next = await client(at, { instance_id: 'i2' });
    expect(next.welcome).toMatchObject({ resumed: false, replaced_instance_id: 'i1', epoch: after(old) });
    expect(await old.next('replaced')).toMatchObject({ instance_id: 'i2' });
    expect(await old.end()).toMatchObject({ code: 4409, bye: { reason: 'replaced', reconnect: false } });
    next.send({ type: 'result', command_id: 'c1' }, 'not mine');
    expect(await next.next('result_ack')).toMatchObject({ recorded: 'fenced' });
    await at.clock.advance(6_000);
    expect(await waiting).toMatchObject({
      command: { outcome: 'outcome_unknown', error: { code: 'instance_replaced' }, lastProvenStage: 'dispatched' },
    });
    expect(next.seen('command')).toEqual([]);
    const shown = await at.core.connections.get(WHO, KEY);
    expect(shown).toMatchObject({ instanceId: 'i2', replacedInstanceId: 'i1', disconnectedAt: null });
  });

  test('still ends a command with a result that the replaced instance sent before it knew', async () => {
    await using at = await startGateway();
    const old = await client(at);
    const waiting = invoke(at, 'c1');
    await old.next('command');
    old.ws.pause();
    const next = await client(at, { instance_id: 'i2' });
    old.send({ type: 'result', command_id: 'c1' }, 'in time');
    expect(await waiting).toMatchObject({ command: { outcome: 'completed' }, result: '"in time"' });
    old.ws.resume();
    expect((await old.closed).code).toBe(4409);
    await next.sync();
  });

  test('with a second socket of the same instance takes over from the first', async () => {
    await using at = await startGateway();
    const first = await client(at);
    const second = await client(at);
    expect(second.welcome).toMatchObject({ resumed: true, epoch: after(first) });
    expect((await first.end()).code).toBe(4409);
    const waiting = invoke(at, 'c1');
    await second.next('command');
    second.send({ type: 'result', command_id: 'c1' });
    await waiting;
    expect(await at.core.connections.get(WHO, KEY)).toMatchObject({ disconnectedAt: null });
  });

  test('with the same client id as another user is another client', async () => {
    await using at = await startGateway();
    const mine = await client(at);
    const theirs = await client(at, { token: 'user:bob:connect,invoke', instance_id: 'i9' });
    await mine.sync();
    await theirs.sync();
    expect(mine.seen('replaced')).toEqual([]);
    const waiting = invoke(at, 'c1', { params: toJson({ secret: 1 }) });
    await mine.next('command');
    mine.send({ type: 'result', command_id: 'c1' });
    await waiting;
    await theirs.sync();
    expect(theirs.seen('command')).toEqual([]);
  });
});
