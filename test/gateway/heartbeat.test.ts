/** Tests pings, signs of life, and expiring tokens of links. */
import { describe, expect, test } from 'vitest';
import { connectionStatus } from '../../src/core/connections/connection.ts';
import { CallboardError } from '../../src/core/errors.ts';
import { changed } from '../kit/changed.ts';
import { settle } from '../kit/clock.ts';
import { admin, user } from '../kit/core.ts';
import { caller, client, startGateway, Peer, type TestGateway } from './kit/test-gateway.ts';

const KEY = { userId: 'alice', clientId: 'tab' };
const shown = (at: TestGateway) => at.core.connections.get(user('alice'), KEY);

describe('the heartbeat', () => {
  test('sends a ping every 20 seconds, to clients and callers alike', async () => {
    await using at = await startGateway();
    const peers = [await client(at), await caller(at)];
    await at.clock.advance(19_000);
    for (const peer of peers) expect(peer.seen('ping')).toHaveLength(0);
    for (let round = 1; round <= 5; round++) {
      await at.clock.advance(round === 1 ? 1_000 : 20_000);
      for (const peer of peers) {
        await peer.next('ping');
        peer.send({ type: 'pong' });
        await peer.sync();
        expect(peer.seen('ping')).toHaveLength(round);
      }
    }
  });

  test('measures the time from a ping to its pong, once, and no pong without a ping', async () => {
    await using at = await startGateway();
    const [own, other] = [await client(at), await caller(at)];
    own.send({ type: 'pong' });
    await own.sync();
    expect(at.durations).toEqual([]);
    await at.clock.advance(20_000);
    await Promise.all([own.next('ping'), other.next('ping')]);
    await at.clock.advance(70);
    for (const peer of [own, own, other]) {
      peer.send({ type: 'pong' });
      await peer.sync();
    }
    expect(at.durations).toEqual(Array(2).fill({ name: 'client_rtt_seconds', ms: 70 }));
  });

  test('takes any frame as a sign of life, which updates last seen', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    for (let step = 0; step < 8; step++) {
      await at.clock.advance(30_000);
      peer.raw(step % 2 === 0 ? '{"type":"pong"}' : '{"type":"ack","command_id":"unknown"}');
      await peer.sync();
      await expect.poll(async () => (await shown(at))?.lastSeenAt).toBe(at.clock.now());
    }
    expect(peer.ws.readyState).toBe(peer.ws.OPEN);
  });

  test('neither closes a link nor sends anything while the store is unavailable', async () => {
    let calls = 0;
    let away = true;
    await using at = await startGateway({
      wrap: (core) => ({
        ...core,
        links: {
          async open(...args) {
            const session = await core.links.open(...args);
            const alive = async (): Promise<boolean> => {
              calls++;
              if (away) throw new CallboardError('store_unavailable', 'The store does not answer.');
              return session.alive();
            };
            return changed(session, { alive });
          },
        },
      }),
    });
    const peer = await client(at);
    for (let second = 0; second < 3; second++) {
      await at.clock.advance(1_000);
      peer.send({ type: 'pong' });
      await peer.sync();
    }
    expect(calls).toBe(3);
    expect(peer.ws.readyState).toBe(peer.ws.OPEN);
    expect(peer.seen('refused').filter(({ code }) => code === 'store_unavailable')).toEqual([]);
    away = false;
    await at.clock.advance(1_000);
    peer.send({ type: 'pong' });
    await expect.poll(async () => (await shown(at))?.lastSeenAt).toBe(at.clock.now());
  });

  test('records many frames of one second once', async () => {
    let touched = 0;
    await using at = await startGateway({
      wrap: (core) => ({
        ...core,
        links: {
          async open(...args) {
            const session = await core.links.open(...args);
            return changed(session, { alive: () => (touched++, session.alive()) });
          },
        },
      }),
    });
    const peer = await client(at);
    for (let i = 0; i < 50; i++) peer.send({ type: 'pong' });
    await peer.sync();
    // The relay records at most one sign of life a second. In this second, it recorded the hello.
    expect(touched).toBe(0);
    await at.clock.advance(1_000);
    for (let i = 0; i < 50; i++) peer.send({ type: 'pong' });
    await peer.sync();
    expect(touched).toBe(1);
    await at.clock.advance(1_000);
    for (let i = 0; i < 50; i++) peer.send({ type: 'pong' });
    await peer.sync();
    expect(touched).toBe(2);
  });

  test('shows a link as stale after 45 silent seconds, and closes it with 4440 as lost after 60', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    await at.clock.advance(44_000);
    const stale = await shown(at);
    expect(stale && connectionStatus(stale, at.clock.now())).toBe('connected');
    await at.clock.advance(1_000);
    expect(stale && connectionStatus(stale, at.clock.now())).toBe('stale');
    await at.clock.advance(15_000);
    expect(await peer.end()).toMatchObject({ code: 4440, bye: { reason: 'heartbeat_lost', reconnect: true } });
    expect(await shown(at)).toMatchObject({ disconnectCause: 'heartbeat_lost' });
  });

  test('publishes once for each silence of a client that it is silent, before the link is lost', async () => {
    await using at = await startGateway();
    const [peer, lively] = [await client(at), await client(at, { client_id: 'lively' })];
    const events = at.core.connections.events(admin, null);
    /** Returns the next change other than `connected`, which may arrive late from another node. */
    const next = async () => {
      for (;;) {
        const { change, connection } = (await events.next()).value.event;
        if (change !== 'connected') return [change, connection.clientId, connectionStatus(connection, at.clock.now())];
      }
    };
    const seconds = async (count: number): Promise<void> => {
      for (let second = 0; second < count; second++) {
        await at.clock.advance(1_000);
        lively.send({ type: 'pong' });
        await lively.sync();
      }
    };
    await seconds(55);
    expect(await next()).toEqual(['stale', 'tab', 'stale']);
    peer.send({ type: 'pong' });
    await peer.sync();
    await seconds(48);
    expect(await next()).toEqual(['stale', 'tab', 'stale']);
    await seconds(13);
    expect((await peer.end()).code).toBe(4440);
    expect(await next()).toEqual(['disconnected', 'tab', 'disconnected']);
    await events.return();
  });

  test('ends a half-open socket that accepts everything and sends nothing', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    peer.ws.pause();
    await at.clock.advance(60_000);
    expect(await shown(at)).toMatchObject({ disconnectCause: 'heartbeat_lost' });
    // The client never answers the close, so `ws` destroys the socket after a few seconds.
    await expect.poll(() => at.gateway.size).toBe(0);
  });

  test('closes a link whose row is bound elsewhere with 4410 at its next sign of life', async () => {
    await using at = await startGateway({
      wrap: (core) => ({
        ...core,
        links: {
          open: async (...args) => changed(await core.links.open(...args), { alive: () => Promise.resolve(false) }),
        },
      }),
    });
    const peer = await client(at);
    await at.clock.advance(1_000);
    peer.send({ type: 'pong' });
    expect(await peer.end()).toMatchObject({ code: 4410, bye: { reconnect: true } });
  });
});

describe('the token', () => {
  test('closes the link with 4401 within the second in which it expires', async () => {
    await using at = await startGateway();
    const peer = await client(at, { token: `user:alice:connect:${at.clock.now() + 30_000}` });
    await at.clock.advance(29_000);
    await peer.sync();
    await at.clock.advance(1_000);
    expect(await peer.end()).toMatchObject({ code: 4401, bye: { reason: 'unauthenticated' } });
    expect(await shown(at)).toMatchObject({ disconnectCause: 'token_expired' });
  });

  test('lasts, after a renewal, until the new one expires', async () => {
    await using at = await startGateway();
    const start = at.clock.now();
    const peer = await client(at, { token: `user:alice:connect:${start + 30_000}` });
    peer.send({ type: 'auth', token: `user:alice:connect,invoke:${start + 50_000}` });
    expect(await peer.next('renewed')).toMatchObject({ token_expires_at: start + 50_000 });
    await at.clock.advance(49_000);
    await peer.sync();
    await at.clock.advance(1_000);
    expect((await peer.end()).code).toBe(4401);
  });

  test('may also be renewed with a shorter one', async () => {
    await using at = await startGateway();
    const start = at.clock.now();
    const peer = await caller(at, `user:alice:invoke:${start + 50_000}`);
    peer.send({ type: 'auth', token: `user:alice:invoke:${start + 10_000}` });
    await peer.next('renewed');
    await at.clock.advance(10_000);
    expect((await peer.end()).code).toBe(4401);
  });

  test.each([
    ['of another user', 'user:bob:connect,invoke', 'forbidden'],
    ['of an administrator', 'admin', 'forbidden'],
    ['without the scope of the link', 'user:alice:invoke', 'forbidden'],
    ['that is bad', 'nonsense', 'unauthenticated'],
  ])('stays in force when a renewal %s is refused', async (_what, token, code) => {
    await using at = await startGateway();
    const peer = await client(at, { token: `user:alice:connect:${at.clock.now() + 30_000}` });
    peer.send({ type: 'auth', token });
    expect(await peer.next('refused')).toMatchObject({ code, frame: 'auth' });
    await at.clock.advance(29_000);
    await peer.sync();
    await at.clock.advance(1_000);
    expect((await peer.end()).code).toBe(4401);
  });

  test('loses at once a scope that a renewal drops', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    peer.send({ type: 'auth', token: 'user:alice:connect,host' });
    await peer.next('renewed');
    peer.send({ type: 'invoke', ref: 'r', client_id: 'tab', action: 'open' });
    expect(await peer.next('refused')).toMatchObject({ code: 'forbidden', ref: 'r' });
  });

  test('that expired between two beats carries no further frame', async () => {
    await using at = await startGateway();
    const peer = await client(at, { token: `user:alice:connect,invoke:${at.clock.now() + 500}` });
    await at.clock.advance(600);
    peer.send({ type: 'invoke', ref: 'r', client_id: 'tab', action: 'open' });
    expect((await peer.end()).code).toBe(4401);
    expect(peer.seen('command')).toEqual([]);
  });
});

test('a link that is opened and cut without a frame leaves nothing', async () => {
  await using at = await startGateway();
  const peers = Array.from({ length: 20 }, () => new Peer(at));
  await Promise.all(peers.map(({ opened }) => opened));
  await expect.poll(() => at.gateway.size).toBe(20);
  for (const { ws } of peers) ws.terminate();
  await expect.poll(() => at.gateway.size).toBe(0);
  await settle();
  await at.clock.advance(120_000);
  expect(at.logged.filter(({ level }) => level === 'error')).toEqual([]);
});
