/** Tests the opening of a link: hello, welcome and refusals. */
import { describe, expect, test } from 'vitest';
import type { LinkSession } from '../../src/core/commands/link-session.ts';
import { admin, user } from '../kit/core.ts';
import { HAS_HELLO_TIMES, HAS_REVOCATIONS } from '../kit/store.ts';
import { ALICE, authenticator, caller, client, invoke, startGateway, Peer } from './kit/test-gateway.ts';

describe('opening a link', () => {
  test('welcomes a client with everything that it must know', async () => {
    await using at = await startGateway();
    const expiresAt = at.clock.now() + 90_000;
    const peer = await client(at, {
      token: `user:alice:connect:${expiresAt}`,
      client_id: 'desk',
      instance_id: 'run-1',
    });
    expect(peer.welcome).toEqual({
      type: 'welcome',
      payload: null,
      node_id: at.core.nodeId,
      user_id: 'alice',
      client_id: 'desk',
      epoch: expect.any(Number),
      resumed: false,
      ping_ms: 20_000,
      dead_ms: 60_000,
      max_frame_bytes: 1_048_576,
      max_depth: 200,
      frames_per_message: 64,
      in_flight: 32,
      idempotency_window_ms: 3_600_000,
      token_expires_at: expiresAt,
      at_ms: 0,
    });
  });

  test('shows its advertisement in its connection exactly as sent', async () => {
    await using at = await startGateway();
    const peer = new Peer(at);
    await peer.opened;
    const schema = '{"type":"object", "maximum":1.0}';
    peer.raw(
      `${JSON.stringify({ type: 'hello', token: ALICE, client_id: 'tab', instance_id: 'i1', client_type: 'web' })}\n` +
        `{"metadata":{"n":1.50},"actions":[{"name":"go","summary":"s","description":"d","version":"1","checks_arguments":true,"schema":${schema},"metadata":[1.0]}]}`,
    );
    await peer.next('welcome');
    const shown = await at.core.connections.get(user('alice'), { userId: 'alice', clientId: 'tab' });
    expect(shown).toMatchObject({ instanceId: 'i1', clientType: 'web', metadata: '{"n":1.50}' });
    expect(shown?.actions).toEqual([
      { name: 'go', summary: 's', description: 'd', version: '1', checksArguments: true, schema, metadata: '[1.0]' },
    ]);
  });

  test('keeps the guards and effects of an action, and refuses flags that are not booleans', async () => {
    await using at = await startGateway();
    const guards = { approval: true, other: 1 };
    const effects = { read_only: false, destructive: true, idempotent: null };
    const peer = await client(at, { payload: { actions: [{ name: 'go', guards, effects }, { name: 'plain' }] } });
    const key = { userId: 'alice', clientId: 'tab' };
    const shown = async () => (await at.core.connections.get(user('alice'), key))?.actions;
    const [go, plain] = (await shown()) ?? [];
    expect(go).toMatchObject({
      guards: { approval: true, lease: null },
      effects: { readOnly: false, destructive: true, idempotent: null, openWorld: null },
    });
    expect([plain?.guards, plain?.effects]).toEqual([undefined, undefined]);
    for (const wrong of [{ guards: true }, { guards: { lease: 'yes' } }, { effects: { open_world: 1 } }]) {
      peer.send({ type: 'actions' }, { actions: [{ name: 'go', ...wrong }] });
      expect(await peer.next('refused')).toMatchObject({ code: 'invalid_argument', frame: 'actions' });
    }
    expect(await shown()).toHaveLength(2);
  });

  test('replaces all advertisements by one frame', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    peer.send({ type: 'actions' }, { actions: [{ name: 'one' }, { name: 'two', schema: false }] });
    await peer.sync();
    const key = { userId: 'alice', clientId: 'tab' };
    const names = async () => (await at.core.connections.get(user('alice'), key))?.actions.map(({ name }) => name);
    expect(await names()).toEqual(['one', 'two']);
    peer.send({ type: 'actions' }, { actions: [{ name: 'bad name' }] });
    expect(await peer.next('refused')).toMatchObject({ code: 'invalid_argument', frame: 'actions' });
    expect(await names()).toEqual(['one', 'two']);
  });

  test('welcomes a caller, without a connection', async () => {
    await using at = await startGateway();
    const one = await caller(at);
    expect(one.welcome).toMatchObject({ user_id: 'alice', node_id: at.core.nodeId });
    expect(one.welcome).not.toHaveProperty('client_id');
    expect(one.welcome).not.toHaveProperty('epoch');
    const ops = await caller(at, 'admin');
    expect(ops.welcome).not.toHaveProperty('user_id');
    expect((await at.core.connections.ofUsers(user('alice'), ['alice'], 10))[0]?.total).toBe(0);
  });

  const asClient = { client_id: 'tab', instance_id: 'i1', client_type: 'browser' as const };
  test.each([
    ['a bad token', { token: 'nonsense', ...asClient }, undefined, 'unauthenticated', 4401, false],
    [
      'a client without scope connect',
      { token: 'user:alice:invoke', ...asClient },
      undefined,
      'forbidden',
      4403,
      false,
    ],
    ['an administrator as a client', { token: 'admin', ...asClient }, undefined, 'forbidden', 4403, false],
    ['a caller without scope invoke', { token: 'user:alice:connect' }, undefined, 'forbidden', 4403, false],
    [
      'a client without instance',
      { token: ALICE, client_id: 'tab', client_type: 'web' as const },
      undefined,
      'invalid_argument',
      4400,
      false,
    ],
    [
      'a client without type',
      { token: ALICE, client_id: 'tab', instance_id: 'i' },
      undefined,
      'invalid_argument',
      4400,
      false,
    ],
    [
      'a wrong advertisement',
      { token: ALICE, ...asClient },
      { actions: [{ name: '' }] },
      'invalid_argument',
      4400,
      false,
    ],
  ])('%s is refused by name and closed', async (_what, header, payload, code, close, reconnect) => {
    await using at = await startGateway();
    const peer = new Peer(at);
    await peer.opened;
    peer.send({ type: 'hello', ...header }, payload);
    const end = await peer.end();
    expect(peer.seen('refused')).toMatchObject([{ code, frame: 'hello' }]);
    expect(end).toMatchObject({ code: close, bye: { code: close, reconnect } });
    expect(peer.seen('welcome')).toEqual([]);
  });

  test('refuses a bad token before it reads the payload', async () => {
    await using at = await startGateway();
    const peer = new Peer(at);
    await peer.opened;
    peer.raw(`${JSON.stringify({ type: 'hello', token: 'nonsense', ...asClient })}\n{broken`);
    expect((await peer.end()).code).toBe(4401);
  });

  test.each([
    ['another frame', '{"type":"pong"}'],
    ['no JSON', 'hello'],
    ['an unknown type', '{"type":"helo"}'],
    ['a hello without token', '{"type":"hello"}'],
    ['a hello whose token is empty', '{"type":"hello","token":""}'],
    ['a payload that is no JSON', `{"type":"hello","token":"${ALICE}"}\n{`],
  ])('closes with 4400 after %s in place of hello', async (_what, text) => {
    await using at = await startGateway();
    const peer = new Peer(at);
    await peer.opened;
    peer.raw(text);
    expect(await peer.end()).toMatchObject({ code: 4400, bye: { reason: 'protocol_error', reconnect: false } });
    expect(peer.seen('refused')).toMatchObject([{ code: 'invalid_argument' }]);
  });

  test('closes with 4408 without a hello within 5 seconds', async () => {
    await using at = await startGateway();
    const peer = new Peer(at);
    await peer.opened;
    await expect.poll(() => at.gateway.size).toBe(1);
    await at.clock.advance(4_999);
    expect(peer.ws.readyState).toBe(peer.ws.OPEN);
    await at.clock.advance(1);
    expect(await peer.end()).toMatchObject({ code: 4408, bye: { reconnect: true } });
  });

  test('refuses a second hello, and the link stays up', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    peer.send({ type: 'hello', token: ALICE });
    expect(await peer.next('refused')).toMatchObject({ code: 'invalid_argument', frame: 'hello' });
    await peer.sync();
  });

  test('is refused with 4450 while the node drains', async () => {
    await using at = await startGateway();
    await at.core.drain(0);
    for (const header of [{ token: ALICE, ...asClient }, { token: 'admin' }]) {
      const peer = new Peer(at);
      await peer.opened;
      peer.send({ type: 'hello', ...header });
      expect(await peer.end()).toMatchObject({ code: 4450, bye: { reconnect: true, after_ms: expect.any(Number) } });
      expect(peer.seen('refused')[0]).toMatchObject({ code: 'draining' });
    }
  });

  test('masks an unexpected error by an id that appears in the log: 4490', async () => {
    const authenticator = { authenticate: () => Promise.reject(new Error('/secret/path is gone')) };
    await using at = await startGateway({ authenticator });
    const peer = new Peer(at);
    await peer.opened;
    peer.send({ type: 'hello', token: ALICE });
    expect(await peer.end()).toMatchObject({ code: 4490 });
    const [refused] = peer.seen('refused');
    expect(refused).toMatchObject({ code: 'internal' });
    expect(refused?.message).not.toContain('secret');
    const entry = at.logged.find(({ level }) => level === 'error');
    expect(refused?.message).toContain(String(entry?.fields['id']));
    expect(at.counts.get('errors_masked')).toBe(1);
  });

  test('leaves nothing when the socket closes while core is opening the session', async () => {
    const reached = Promise.withResolvers<void>();
    const go = Promise.withResolvers<void>();
    await using at = await startGateway({
      wrap: (core) => ({
        ...core,
        links: {
          async open(...args) {
            reached.resolve();
            await go.promise;
            return core.links.open(...args);
          },
        },
      }),
    });
    const peer = new Peer(at);
    await peer.opened;
    peer.send({ type: 'hello', token: ALICE, ...asClient });
    await reached.promise;
    peer.ws.terminate();
    const sockets = () => new Promise((done) => at.server.getConnections((_error, count) => done(count)));
    await expect.poll(sockets).toBe(0);
    go.resolve();
    await expect.poll(() => at.gateway.size).toBe(0);
    const shown = await at.core.connections.get(user('alice'), { userId: 'alice', clientId: 'tab' });
    expect(shown).toMatchObject({ disconnectCause: 'lost' });
    expect(shown?.disconnectedAt).not.toBeNull();
  });
});

describe.runIf(HAS_HELLO_TIMES)('a hello whose token takes long', () => {
  test('does not replace the next instance of its client, which connected before it', async () => {
    const asked = Promise.withResolvers<void>();
    const checked = Promise.withResolvers<void>();
    const slow = `${ALICE}:4102444800000`;
    await using at = await startGateway({
      authenticator: {
        async authenticate(token) {
          if (token === slow) {
            asked.resolve();
            await checked.promise;
          }
          return authenticator.authenticate(token);
        },
      },
    });
    const peer = new Peer(at);
    await peer.opened;
    peer.send({ type: 'hello', token: slow, client_id: 'tab', instance_id: 'i1', client_type: 'browser' });
    await asked.promise;
    await at.clock.advance(100);
    const next = await client(at, { instance_id: 'i2' });
    await at.clock.advance(100);
    checked.resolve();
    expect(await peer.next('refused')).toMatchObject({ code: 'stale_instance' });
    await next.sync();
    expect(next.seen('replaced')).toEqual([]);
  });
});

describe.runIf(HAS_REVOCATIONS)('a client that is revoked while its link opens', () => {
  test('is not welcomed, and gets no command', async () => {
    const asked = Promise.withResolvers<void>();
    const opens = Promise.withResolvers<void>();
    await using at = await startGateway({
      authenticator: {
        async authenticate(token) {
          const principal = await authenticator.authenticate(token);
          if (principal?.kind !== 'user') return principal;
          return { ...principal, token: { id: 'stolen', issuedAt: 0 } };
        },
      },
      wrap: (core) => ({
        ...core,
        links: {
          async open(...args): Promise<LinkSession> {
            const session = await core.links.open(...args);
            asked.resolve();
            await opens.promise;
            return session;
          },
        },
      }),
    });
    const waiting = invoke(at, 'c1', { connectWithinMs: 60_000, waitFor: 'admitted' });
    const peer = new Peer(at);
    await peer.opened;
    peer.send({ type: 'hello', token: ALICE, client_id: 'tab', instance_id: 'i1', client_type: 'browser' });
    await asked.promise;
    await waiting;
    await at.core.revocations.revoke(admin, { userId: 'alice', clientId: 'tab', reason: 'it is lost' });
    opens.resolve();
    expect(await peer.end()).toMatchObject({ code: 4403, bye: { reason: 'forbidden' } });
    expect(peer.all.map(({ type }) => type)).toEqual(['bye']);
    const key = { userId: 'alice', clientId: 'tab' };
    expect(await at.core.delivery.command(admin, { ...key, commandId: 'c1' })).toMatchObject({ dispatchedAt: null });
    await expect.poll(() => at.core.connections.get(admin, key)).toMatchObject({ disconnectedAt: expect.any(Number) });
  });
});
