/** Tests the limit (the share) of the links that one user may hold. */
import { describe, expect, test } from 'vitest';
import { shareBounds, type GivenBounds } from '../../src/core/shares/share-bounds.ts';
import { createShares, type Shares } from '../../src/core/shares/shares.ts';
import { ALICE, caller, client, startGateway, Peer } from './kit/test-gateway.ts';

const BOB = 'user:bob:connect,invoke';

function sharesOf(given: GivenBounds): Shares {
  return createShares(shareBounds(given));
}

/** Sends hello as another client of the user, and returns the relay's answer. */
async function refusedHello(at: Parameters<typeof client>[0], token: string, payload?: unknown) {
  const peer = new Peer(at);
  await peer.opened;
  peer.send({ type: 'hello', token, client_id: 'other', instance_id: 'i1', client_type: 'web' }, payload);
  const { code, share } = await peer.next('refused');
  const { code: closed, bye } = await peer.end();
  return { code, share, closed, reconnect: bye?.reconnect, afterMs: bye?.after_ms };
}

describe('links of one user', () => {
  test('beyond the share get their hello refused with the share, and close with a reconnect later', async () => {
    await using at = await startGateway({ shares: sharesOf({ links: { guarantee: 2, total: 4 } }) });
    await client(at, { client_id: 'one' });
    await caller(at);
    await client(at, { client_id: 'three' });
    const refused = { code: 'share_exceeded', share: 'links', closed: 4431, reconnect: true, afterMs: 5_000 };
    expect(await refusedHello(at, ALICE)).toEqual(refused);
    // Bob has fewer links than each user is guaranteed.
    await client(at, { token: BOB, client_id: 'bob' });
    const full = { ...refused, code: 'store_full', closed: 4432 };
    expect(await refusedHello(at, BOB)).toEqual(full);
    expect(at.core.shares.used('links')).toBe(4);
  });

  test('that end, of a client or a caller, make room for another', async () => {
    await using at = await startGateway({ shares: sharesOf({ links: { guarantee: 1, total: 1 } }) });
    for (let round = 0; round < 3; round++) {
      const peer = await caller(at);
      peer.ws.close(1000);
      await peer.closed;
      await expect.poll(() => at.core.shares.used('links')).toBe(0);
      const tab = await client(at);
      tab.ws.terminate();
      await expect.poll(() => at.core.shares.used('links')).toBe(0);
    }
  });

  test('hold a socket, too, and are refused without one', async () => {
    const bounds = { sockets: { guarantee: 1, total: 1 } };
    await using at = await startGateway({ shares: sharesOf(bounds) });
    const peer = await caller(at);
    expect(at.core.shares.used('sockets')).toBe(1);
    expect(await refusedHello(at, BOB)).toMatchObject({ code: 'store_full', share: 'sockets', closed: 4432 });
    expect(at.core.shares.used('links')).toBe(1);
    peer.ws.close(1000);
    await peer.closed;
    await expect.poll(() => at.core.shares.used('sockets')).toBe(0);
  });

  test('whose hello is refused for another reason hold nothing', async () => {
    await using at = await startGateway({ shares: sharesOf({ links: { guarantee: 1, total: 1 } }) });
    await at.core.drain(0);
    expect(await refusedHello(at, ALICE)).toMatchObject({ code: 'draining' });
    expect(at.core.shares.used('links')).toBe(0);
  });

  test('do not count those of an administrator', async () => {
    await using at = await startGateway({ shares: sharesOf({ links: { guarantee: 1, total: 10 } }) });
    await caller(at, 'admin');
    expect(at.core.shares.of('/admin/ops').held('links')).toBe(1);
  });
});
