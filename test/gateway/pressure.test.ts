/** Tests clients and callers that do not read what the relay writes. */
import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { toJson } from '../../src/core/json.ts';
import { settle } from '../kit/clock.ts';
import { user } from '../kit/core.ts';
import { caller, client, startGateway, type TestGateway, type Peer } from './kit/test-gateway.ts';
import { unawaited } from '../kit/patience.ts';

const CALLS = 24;
const BIG_BYTES = 900_000;
const BIG = toJson({ text: 'x'.repeat(BIG_BYTES) });

function invoke({ core }: TestGateway, clientId: string, i: number) {
  const request = { userId: 'alice', clientId, action: 'open', params: BIG, commandId: `c${i}` };
  return core.rpc.invoke(user('alice'), { ...request, respondWithinMs: 300_000 });
}

/** Calls 24 times and waits until the relay writes no more to the client, which does not read. */
async function fill(at: TestGateway, clientId: string): Promise<void> {
  for (let i = 0; i < CALLS; i++) void invoke(at, clientId, i);
  await settle();
}

/** Returns a function that sums the bytes that the relay has written to the connections opened from now on. */
function bytesWritten({ server }: TestGateway): () => number {
  const sockets: Socket[] = [];
  server.on('connection', (socket) => void sockets.push(socket));
  return () => sockets.reduce((sum, socket) => sum + socket.bytesWritten, 0);
}

async function answersAll(peer: Peer, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const { command_id } = await peer.next('command');
    peer.send({ type: 'result', command_id });
  }
}

describe('a client that does not read', () => {
  test('gets no further command once 1 MiB waits for it, and the rest as soon as it reads again', async () => {
    await using at = await startGateway();
    const written = bytesWritten(at);
    const slow = await client(at);
    slow.ws.pause();
    await fill(at, 'tab');
    expect(written()).toBeGreaterThan(BIG_BYTES);
    expect(written()).toBeLessThan(CALLS * BIG_BYTES);
    slow.ws.resume();
    await answersAll(slow, CALLS);
    expect(slow.seen('bye')).toEqual([]);
  });

  test('is closed with 4430 after 30 seconds without relief, although it still sends', async () => {
    await using at = await startGateway();
    const slow = await client(at);
    slow.ws.pause();
    await fill(at, 'tab');
    await at.clock.advance(29_000);
    slow.send({ type: 'pong' });
    await expect
      .poll(
        async () => (await at.core.connections.get(user('alice'), { userId: 'alice', clientId: 'tab' }))?.lastSeenAt,
      )
      .toBe(at.clock.now());
    expect(await connection(at)).toMatchObject({ disconnectedAt: null });
    await at.clock.advance(3_000);
    expect(await connection(at)).toMatchObject({ disconnectCause: 'back_pressure' });
    slow.ws.resume();
    expect((await slow.closed).code).toBeOneOf([4430, 1006]);
  });

  test('does not slow down its neighbours', async () => {
    await using at = await startGateway();
    const slow = await client(at);
    const neighbour = await client(at, { client_id: 'quick' });
    slow.ws.pause();
    await fill(at, 'tab');
    const calls = Array.from({ length: 20 }, (_, i) => invoke(at, 'quick', i));
    await answersAll(neighbour, 20);
    for (const { kind } of await Promise.all(calls)) expect(kind).toBe('outcome');
  });
});

test('a caller that does not read its results is closed with 4430 above 8 MiB, and its commands still end', async () => {
  await using at = await startGateway();
  const peer = await client(at);
  const requester = await caller(at);
  for (let i = 0; i < 32; i++) {
    requester.send({ type: 'invoke', ref: `r${i}`, client_id: 'tab', action: 'open', command_id: `c${i}` });
  }
  const first = await peer.next('command');
  requester.ws.pause();
  peer.send({ type: 'result', command_id: first.command_id }, 'x'.repeat(900_000));
  for (let i = 1; i < 32; i++) {
    peer.send({ type: 'result', command_id: (await peer.next('command')).command_id }, 'x'.repeat(900_000));
  }
  for (let i = 0; i < 32; i++) expect(await peer.next('result_ack')).toMatchObject({ recorded: 'recorded' });
  await expect.poll(() => at.counts.get('links_closed:back_pressure')).toBe(1);
  requester.ws.resume();
  expect((await requester.closed).code).toBeOneOf([4430, 1006]);
});

test('the frames of one turn are written together', async () => {
  await using at = await startGateway();
  const writes: number[] = [];
  at.server.prependListener('upgrade', (_request, socket) => {
    const write = socket._write.bind(socket);
    socket._write = (chunk, encoding, done) => {
      writes.push(chunk.length);
      write(chunk, encoding, done);
    };
  });
  const peer = await client(at);
  writes.length = 0;
  for (let i = 0; i < 6; i++) {
    const request = { userId: 'alice', clientId: 'tab', action: 'open', params: null, commandId: `c${i}` };
    unawaited(at.core.rpc.invoke(user('alice'), request));
  }
  for (let i = 0; i < 6; i++) await peer.next('command');
  expect(writes).toHaveLength(1);
});

function connection(at: TestGateway) {
  return at.core.connections.get(user('alice'), { userId: 'alice', clientId: 'tab' });
}
