/** Tests malformed frames, and the limits of frames. */
import { describe, expect, test } from 'vitest';
import { BAD_FRAMES, BAD_FRAMES_MS } from '../../src/core/limits.ts';
import { SlidingWindow, TokenBucket } from '../../src/core/rates.ts';
import { FakeClock } from '../kit/clock.ts';
import { caller, client, startGateway } from './kit/test-gateway.ts';

describe('malformed frames', () => {
  test.each([
    ['no JSON', 'nonsense', null],
    ['no object', '[1]', null],
    ['no type', '{"ref":"r1"}', null],
    ['an unknown type', '{"type":"nope","ref":"r1"}', 'nope'],
    ['a type of the prototype', '{"type":"constructor"}', 'constructor'],
    ['a missing member', '{"type":"ack"}', 'ack'],
    ['a wrong member', '{"type":"ack","command_id":"a b"}', 'ack'],
    ['an inherited member', '{"type":"auth","__proto__":{"token":"x"}}', 'auth'],
    ['a payload where none belongs', '{"type":"ack","command_id":"c"}\n{}', 'ack'],
    ['a payload that is no JSON', '{"type":"progress","command_id":"c"}\n{', 'progress'],
    ['an empty payload', '{"type":"result","command_id":"c"}\n', 'result'],
    [
      'a payload nested too deeply',
      `{"type":"result","command_id":"c"}\n${'['.repeat(201)}${']'.repeat(201)}`,
      'result',
    ],
    ['a frame of the relay', '{"type":"welcome","node_id":"n"}', 'welcome'],
    ['a first line beyond its bound', `{"type":"pong","x":"${'x'.repeat(16 * 1024)}"}`, 'pong'],
  ])('%s is refused by name, and the link stays up', async (_what, text, frame) => {
    await using at = await startGateway();
    const peer = await client(at);
    peer.raw(text);
    const refused = await peer.next('refused');
    expect(refused.code).toBe('invalid_argument');
    expect(refused.frame ?? null).toBe(frame);
    await peer.sync();
    expect(at.counts.get('frames_refused:invalid_argument')).toBe(1);
  });

  test('a readable reference is returned, an invalid one is not', async () => {
    await using at = await startGateway();
    const peer = await caller(at);
    peer.raw('{"type":"invoke","ref":"r7"}');
    expect(await peer.next('refused')).toMatchObject({ frame: 'invoke', ref: 'r7' });
    peer.raw('{"type":"invoke","ref":"\\u0000 <b>"}');
    expect(await peer.next('refused')).not.toHaveProperty('ref');
  });

  test('a binary frame is malformed, whatever it contains', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    peer.raw(Buffer.from('{"type":"pong"}'));
    expect(await peer.next('refused')).toMatchObject({ code: 'invalid_argument', message: /binary/ });
    await peer.sync();
  });

  test('the fifth within a minute closes the link with 4400, and no other link', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const neighbour = await client(at, { client_id: 'other' });
    for (let i = 0; i < 4; i++) peer.raw('?');
    await peer.sync();
    peer.raw('?');
    expect(await peer.end()).toMatchObject({ code: 4400, bye: { reason: 'protocol_error', reconnect: true } });
    await neighbour.sync();
  });

  test('four in each minute are tolerated permanently', async () => {
    const clock = new FakeClock();
    const bad = new SlidingWindow(clock, { most: BAD_FRAMES - 1, ms: BAD_FRAMES_MS });
    for (let minute = 0; minute < 10; minute++) {
      for (let i = 0; i < 4; i++) expect(bad.take()).toBe(0);
      await clock.advance(60_000);
    }
    for (let i = 0; i < 4; i++) bad.take();
    expect(bad.take()).toBe(60_000);
  });
});

describe('frame limits', () => {
  test('a frame of 1 MiB is accepted, one of another byte is refused, and one beyond 2 MiB closes with 4413', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const head = '{"type":"result","command_id":"c"}\n"';
    peer.raw(`${head}${'x'.repeat(1024 * 1024 - head.length - 1)}"`);
    expect(await peer.next('result_ack')).toMatchObject({ recorded: 'unknown' });
    peer.raw(`${head}${'x'.repeat(1024 * 1024 - head.length)}"`);
    expect(await peer.next('refused')).toMatchObject({ code: 'payload_too_large', frame: 'result', command_id: 'c' });
    peer.raw(`${head}${'x'.repeat(2 * 1024 * 1024 - head.length)}"`);
    expect(await peer.end()).toMatchObject({ code: 4413, bye: { code: 4413, reconnect: true } });
  });

  test('a frame far beyond the bound is not read to its end', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    peer.raw('x'.repeat(32 * 1024 * 1024));
    expect((await peer.closed).code).toBeOneOf([4413, 1006]);
    await expect.poll(() => at.gateway.size).toBe(0);
  });

  test('a frame in endless small fragments closes with 4400', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const neighbour = await client(at, { client_id: 'other' });
    for (let i = 0; i < 2_000; i++) peer.ws.send('x', { fin: false });
    expect((await peer.closed).code).toBe(4400);
    await neighbour.sync();
  });

  test('bytes that are not text, and bytes that are not a WebSocket frame, close with 4400', async () => {
    await using at = await startGateway();
    const one = await client(at);
    one.ws.send(Buffer.from([0x7b, 0xff, 0xfe]), { binary: false });
    expect((await one.closed).code).toBe(4400);
    const two = await client(at, { client_id: 'two' });
    (two.ws as unknown as { _socket: { write(bytes: Buffer): void } })._socket.write(Buffer.from([0xff, 0xff, 0xff]));
    expect((await two.closed).code).toBe(4400);
  });

  test('200 unsolicited frames at once are accepted; the next is refused with a retry time', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    for (let i = 0; i < 200; i++) peer.send({ type: 'pong' });
    peer.send({ type: 'ack', command_id: 'unasked' });
    expect(await peer.next('refused')).toEqual({
      type: 'refused',
      payload: null,
      code: 'rate_limited',
      message: 'Too many frames.',
      frame: 'ack',
      command_id: 'unasked',
      retry_after_ms: 10,
    });
    await at.clock.advance(10);
    peer.send({ type: 'pong' });
    peer.send({ type: 'pong' });
    expect(await peer.next('refused')).toMatchObject({ frame: 'pong', code: 'rate_limited' });
    expect(peer.seen('refused')).toHaveLength(2);
  });

  test('a flood closes with 4429, and does not affect other links', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const neighbour = await client(at, { client_id: 'other' });
    for (let i = 0; i < 20_000; i++) peer.send({ type: 'pong' });
    await neighbour.sync();
    const end = await peer.end();
    expect(end).toMatchObject({ code: 4429, bye: { reconnect: true, after_ms: 5_000 } });
    expect(peer.seen('refused').length).toBeLessThanOrEqual(200);
  });

  test('a flood of WebSocket pings is a flood too: a paced one closes with 4429, a burst is cut', async () => {
    await using at = await startGateway();
    const paced = await client(at);
    for (let batch = 0; batch < 20 && paced.ws.readyState === paced.ws.OPEN; batch++) {
      const { promise, resolve } = Promise.withResolvers<void>();
      let answers = 0;
      paced.ws.on('pong', () => ++answers === 25 && resolve());
      for (let i = 0; i < 25; i++) paced.ws.ping();
      await Promise.race([promise, paced.closed]);
      paced.ws.removeAllListeners('pong');
    }
    expect((await paced.end()).code).toBe(4429);
    const burst = await client(at, { client_id: 'two' });
    for (let i = 0; i < 5_000; i++) burst.ws.ping();
    expect((await burst.closed).code).toBeOneOf([4429, 1006]);
    await expect.poll(() => at.gateway.size).toBe(0);
  });

  test('a peer slightly above the rate is closed in time; one that exceeds it once is not', async () => {
    const clock = new FakeClock();
    const steady = new TokenBucket(clock, { perSecond: 100, burst: 200 });
    let floods = 0;
    for (let tenth = 0; tenth < 100; tenth++) {
      for (let i = 0; i < 15; i++) if (steady.take() > 0 && steady.refused >= 200) floods++;
      await clock.advance(100);
    }
    expect(floods).toBeGreaterThan(0);
    const once = new TokenBucket(clock, { perSecond: 100, burst: 200 });
    for (let round = 0; round < 5; round++) {
      for (let i = 0; i < 350; i++) expect(once.take() > 0 && once.refused >= 200).toBe(false);
      await clock.advance(2_000);
    }
  });

  test('a wall clock that is set back blocks no link for longer than the bucket takes to fill', async () => {
    const clock = new FakeClock();
    const bucket = new TokenBucket(clock, { perSecond: 100, burst: 200 });
    for (let i = 0; i < 200; i++) bucket.take();
    clock.stepWall(-3_600_000);
    expect(bucket.take()).toBe(10);
    await clock.advance(1_000);
    expect(bucket.take()).toBe(0);
  });
});
