/** Tests how links close, by the relay or by their client. */
import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { Core } from '../../src/core/core.ts';
import type { DisconnectCause } from '../../src/core/connections/connection.ts';
import type { ClientLink } from '../../src/core/commands/client-link.ts';
import { CLOSE, reconnectAfter } from '../../src/protocol/codes.ts';
import { changed } from '../kit/changed.ts';
import { meanwhile, settle } from '../kit/clock.ts';
import { admin, user } from '../kit/core.ts';
import { caller, client, startGateway, invoke, Peer } from './kit/test-gateway.ts';

const KEY = { userId: 'alice', clientId: 'tab' };

describe('closes that core requests', () => {
  test.each<[DisconnectCause, keyof typeof CLOSE]>([
    ['replaced', 'replaced'],
    ['heartbeat_lost', 'heartbeat_lost'],
    ['token_expired', 'unauthenticated'],
    ['protocol_error', 'protocol_error'],
    ['back_pressure', 'back_pressure'],
    ['node_drained', 'draining'],
    ['node_lost', 'node_lost'],
    ['operator', 'operator'],
  ])('%s is sent as %s, with its code, and reported back to core', async (cause, reason) => {
    let link: ClientLink | undefined;
    const causes: DisconnectCause[] = [];
    await using at = await startGateway({
      wrap: (core: Core): Core => ({
        ...core,
        links: {
          async open(requester, hello, given) {
            link = given;
            const session = await core.links.open(requester, hello, given);
            return changed(session, { closed: (why) => (causes.push(why), session.closed(why)) });
          },
        },
      }),
    });
    const peer = await client(at);
    link?.close(cause, null);
    link?.close('operator', null);
    link?.sendCancel('c1', null);
    const [code, reconnect] = [CLOSE[reason], reconnectAfter(reason)];
    expect(await peer.end()).toMatchObject({ code, reason, bye: { code, reason, reconnect: reconnect === 'yes' } });
    expect(peer.all.at(-1)?.type).toBe('bye');
    await expect.poll(() => at.gateway.size).toBe(0);
    expect(causes).toEqual([cause]);
    expect(link?.backlog()).toBe(0);
  });
});

describe('operator actions', () => {
  test('disconnecting closes the socket with 4451, and the client may reconnect', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const answer = await meanwhile(at.clock, at.core.delivery.disconnectClient(admin, KEY, null));
    expect(answer).toMatchObject({ state: 'closed', connection: { disconnectCause: 'operator' } });
    expect(await peer.end()).toMatchObject({ code: 4451, bye: { reason: 'operator', reconnect: true } });
    await client(at);
    expect(await at.core.connections.get(admin, KEY)).toMatchObject({ disconnectedAt: null });
  });

  test('draining closes each socket with 4450 once it is idle', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const call = at.core.rpc.invoke(admin, { ...KEY, action: 'open', params: null, commandId: 'c1' });
    await peer.next('command');
    const drained = meanwhile(at.clock, at.core.delivery.drainNode(admin, 'n1', 600_000));
    expect(await drained).toMatchObject({ draining: true, links: 1 });
    expect(at.gateway.size).toBe(1);
    peer.send({ type: 'result', command_id: 'c1' }, { ok: true });
    expect(await call).toMatchObject({ command: { outcome: 'completed' } });
    await at.clock.advance(100);
    expect(await peer.end()).toMatchObject({ code: 4450, bye: { reason: 'draining', reconnect: true } });
    expect(peer.seen('result_ack')).toMatchObject([{ command_id: 'c1' }]);
  });
});

describe('links that end', () => {
  const socketOf = (peer: Peer): Socket => (peer.ws as unknown as { _socket: Socket })._socket;

  test.each<[string, (peer: Peer) => void, DisconnectCause, number | null]>([
    ['closes with 1000', (peer) => peer.ws.close(1000), 'client_closed', 1000],
    ['closes with a code of its own', (peer) => peer.ws.close(4999, 'bored'), 'client_closed', 4999],
    ['closes without a code', (peer) => peer.ws.close(), 'client_closed', null],
    ['announces that it closes', (peer) => peer.send({ type: 'closing' }), 'client_closed', null],
    ['only ends its socket', (peer) => void socketOf(peer).end(), 'lost', null],
    ['destroys its socket', (peer) => peer.ws.terminate(), 'lost', null],
    ['resets its socket', (peer) => void socketOf(peer).resetAndDestroy(), 'reset', null],
  ])('a client that %s is shown so, and no more is claimed', async (_says, leave, cause, closeCode) => {
    await using at = await startGateway();
    const peer = await client(at);
    leave(peer);
    await expect
      .poll(() => at.core.connections.get(user('alice'), KEY))
      .toMatchObject({ disconnectCause: cause, closeCode });
    peer.ws.terminate();
    await expect.poll(() => at.gateway.size).toBe(0);
    expect(at.counts.get(`links_closed:${cause}`)).toBe(1);
    const rows = await at.core.history.messages(user('alice'), { stream: 'alice/links' }, {});
    expect(rows?.nodes.map(({ kind, link }) => [kind, link?.cause, link?.closeCode])).toContainEqual([
      'link_closed',
      cause,
      closeCode,
    ]);
  });

  test('a client that sent its close frame is no longer a target, although its socket is still open', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    // The client does not read the answer to its close, so the close handshake does not end.
    peer.ws.close(1000);
    peer.ws.pause();
    await expect.poll(() => at.counts.get('links_closed:client_closed')).toBe(1);
    expect(at.gateway.size).toBe(1);
    await settle();
    expect(await invoke(at, 'c1')).toMatchObject({ kind: 'refused', code: 'not_connected' });
  });

  test('closing all sends draining to each, with random reconnect delays, and resolves when core has recorded it', async () => {
    await using at = await startGateway();
    const peers = [await client(at), await client(at, { client_id: 'two' }), await caller(at), new Peer(at)];
    await peers[3]?.opened;
    await at.gateway.closeAll('draining');
    expect(at.gateway.size).toBe(0);
    expect(await at.core.connections.get(user('alice'), KEY)).toMatchObject({ disconnectCause: 'node_drained' });
    for (const peer of peers) {
      const { code, bye } = await peer.end();
      expect(code).toBe(4450);
      expect(bye).toMatchObject({ reconnect: true });
      expect(bye?.after_ms).toBeGreaterThanOrEqual(0);
      expect(bye?.after_ms).toBeLessThan(1_000);
    }
  });

  test('with a spread time, the links are closed one after another', async () => {
    await using at = await startGateway();
    const peers: Peer[] = [];
    for (let i = 0; i < 10; i++) peers.push(await client(at, { client_id: `c${i}` }));
    const done = at.gateway.closeAll('draining', { spreadMs: 5_000 });
    const closed: number[] = [];
    for (let second = 0; second < 5; second++) {
      await at.clock.advance(second === 0 ? 0 : 1_000);
      await settle();
      closed.push(at.counts.get('links_closed:node_drained') ?? 0);
    }
    expect(closed).toEqual([1, 3, 5, 7, 9]);
    await at.clock.advance(1_000);
    await done;
    for (const peer of peers) expect((await peer.closed).code).toBe(4450);
  });

  test('a peer that never agrees to close delays nothing for more than a few seconds', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    peer.ws.pause();
    await at.gateway.closeAll('draining');
    expect(at.gateway.size).toBe(0);
  });

  test('a failure of core to record an end is logged, and the link is gone all the same', async () => {
    await using at = await startGateway({
      wrap: (core) => ({
        ...core,
        links: {
          async open(...args) {
            const closed = (): Promise<never> => Promise.reject(new Error('the store is away'));
            return changed(await core.links.open(...args), { closed });
          },
        },
      }),
    });
    const peer = await client(at);
    peer.ws.close(1000);
    await expect.poll(() => at.gateway.size).toBe(0);
    expect(at.logged.filter(({ level }) => level === 'error')).toHaveLength(1);
  });
});
