/** Tests the limit (the share) of one user's bytes that clients have not read. */
import { connect, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import type { Principal } from '../../src/core/auth/principal.ts';
import { silentLog } from '../../src/core/ports.ts';
import { silentMetrics } from '../../src/core/metrics.ts';
import { shareBounds } from '../../src/core/shares/share-bounds.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { UnreadBytes } from '../../src/http/unread-bytes.ts';
import { FakeClock } from '../kit/clock.ts';
import { user } from '../kit/core.ts';
import { startHttpRelay, tokenOf } from './kit/http-relay.ts';

const alice = user('alice');
const bob = user('bob');
const SECOND = 1_000;

/** Creates sockets that keep the data written to them, and a sampler that watches them. */
function stage(guarantee: number, total: number) {
  const clock = new FakeClock();
  const shares = createShares(shareBounds({ unread_bytes: { guarantee, total } }));
  const unread = new UnreadBytes({ shares, clock, log: silentLog, metrics: silentMetrics });
  const open = (requester: Principal | null, bytes: number): PassThrough => {
    // With these limits, all unread data stays on the writing side of the socket.
    const socket = new PassThrough({ readableHighWaterMark: 0, writableHighWaterMark: 1 });
    unread.accepted(socket);
    unread.serves(socket, { requester });
    if (bytes > 0) socket.write(Buffer.alloc(bytes));
    return socket;
  };
  const held = (requester: string): number => shares.of(requester).held('unread_bytes');
  return { clock, shares, unread, open, held, tick: () => clock.advance(SECOND) };
}

describe('unread bytes', () => {
  it('count for the user of the last request, from sample to sample, until they are read or the socket closes', async () => {
    const { open, held, tick, unread, shares } = stage(1_000_000, 4_000_000);
    const socket = open(alice, 100_000);
    const other = open(null, 300_000);
    const nothing = open(bob, 0);
    await tick();
    const waits = socket.writableLength;
    expect(waits).toBeGreaterThan(0);
    expect([held('alice'), held('/unauthenticated'), held('bob')]).toEqual([waits, other.writableLength, 0]);
    unread.serves(socket, { requester: bob });
    await tick();
    expect([held('alice'), held('bob')]).toEqual([0, waits]);
    socket.destroy();
    other.resume();
    await new Promise((closed) => socket.once('close', closed));
    await expect.poll(() => other.writableLength).toBe(0);
    await tick();
    expect(shares.used('unread_bytes')).toBe(0);
    expect(nothing.destroyed).toBe(false);
  });

  it('cost users over their guarantee their slowest sockets, once the total is short', async () => {
    const { open, held, tick } = stage(200_000, 800_000);
    const small = open(alice, 100_000);
    const large = open(alice, 400_000);
    const honest = open(bob, 150_000);
    await tick();
    expect([small, large, honest].map(({ destroyed }) => destroyed)).toEqual([false, true, false]);
    expect(held('alice')).toBe(small.writableLength);
    // No user is over the guarantee now, and no socket is cut while the total is not reached.
    const third = open(user('carol'), 200_000);
    const fourth = open(user('dave'), 200_000);
    await tick();
    expect([small, honest, third, fourth].some(({ destroyed }) => destroyed)).toBe(false);
    // Above the total, the sockets that are furthest behind are cut first.
    const fifth = open(user('eve'), 199_000);
    await tick();
    expect([third, fourth].filter(({ destroyed }) => destroyed)).toHaveLength(1);
    expect([small, honest, fifth].some(({ destroyed }) => destroyed)).toBe(false);
  });

  it('refuse a large answer before it is written, and every request of a user who is over', async () => {
    const { open, tick, unread } = stage(200_000, 800_000);
    const socket = open(alice, 0);
    expect(unread.refusal(socket, 500_000)).toBeNull();
    expect(unread.refusal(socket, 700_000)).toMatchObject({
      code: 'share_exceeded',
      details: { share: 'unread_bytes', retryAfterMs: 5_000 },
    });
    socket.write(Buffer.alloc(450_000));
    unread.wrote(socket, 450_000);
    // The bytes count at once, without waiting for the next sample.
    expect(unread.refusal(open(alice, 0), 200_000)).not.toBeNull();
    expect(unread.refusal(open(alice, 0), 100_000)).toBeNull();
    expect(unread.refusal(open(bob, 0), 200_000)).toBeNull();
    const second = open(alice, 0);
    second.write(Buffer.alloc(200_000));
    unread.wrote(second, 200_000);
    expect(() => unread.requireRoom(alice)).toThrow(expect.objectContaining({ code: 'share_exceeded' }));
    expect(() => unread.requireRoom(bob)).not.toThrow();
    await tick();
    expect(() => unread.requireRoom(alice)).not.toThrow();
  });
});

describe('a relay with unread answers', () => {
  const sockets: Socket[] = [];
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });

  it('cuts clients that read nothing, answers those that read, and holds no more than the total', async () => {
    const clock = new FakeClock(Date.now());
    const bound = { guarantee: 200_000, total: 1_000_000 };
    await using at = await startHttpRelay({ shares: { unread_bytes: bound } }, { clock });
    const { port } = new URL(at.url);
    const token = await tokenOf('mallory', 'invoke');
    const request = 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n';
    for (let i = 0; i < 8; i++) {
      const socket = connect(Number(port), '127.0.0.1');
      sockets.push(socket);
      socket.pause();
      socket.on('error', () => {});
      socket.write(request.repeat(100));
    }
    const { shares } = at.callboard.core;
    await expect
      .poll(async () => {
        // The clock moves in steps below the sampling interval of a second, so that the bytes stay unread long
        // enough.
        await clock.advance(SECOND / 5);
        expect(shares.used('unread_bytes')).toBeLessThanOrEqual(bound.total);
        return at.lines.some((line) => line.includes('leaves more bytes unread than the share allows'));
      })
      .toBe(true);
    const honest = await at.ask('/graphql', {
      method: 'POST',
      token,
      headers: { 'content-type': 'application/json' },
      body: '{"query":"{ __typename }"}',
    });
    expect(honest.json).toEqual({ data: { __typename: 'Query' } });
    const metrics = await at.ask('/metrics');
    expect(metrics.status).toBe(200);
    expect(metrics.text).toMatch(/callboard_unread_cut_total [1-9]/);
    expect(metrics.text).toContain('callboard_share_limit{share="unread_bytes"} 1000000');
  });
});
