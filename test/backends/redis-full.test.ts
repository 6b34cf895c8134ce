/** Tests what a relay answers callers, links and load balancers when Redis has no memory left. */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { openCallboard, type Callboard } from '../../src/callboard.ts';
import { parseDown } from '../../src/protocol/frame-codec.ts';
import { type DownFrame, SUBPROTOCOL } from '../../src/protocol/frames.ts';
import { ADMIN, ask, postJson, SECRET, tokenOf } from '../http/kit/http-relay.ts';
import { startRedis, type RedisServer } from '../kit/redis.ts';

let server: RedisServer;
let callboard: Callboard;
let hand: Redis;
let url: string;

beforeAll(async () => {
  server = await startRedis();
  hand = new Redis(server.url);
  callboard = await openCallboard({
    config: {
      auth: { adminTokens: [ADMIN], secret: SECRET },
      redis: {
        url: server.url,
        store: 'redis',
        partitions: 2,
        durability: 'memory',
        namespace: randomUUID(),
        strictMigration: false,
        legacy: { commandStream: null, pending: null },
      },
    },
  });
  url = await callboard.listen();
});
afterAll(async () => {
  await callboard.close();
  hand.disconnect();
  await server.stop();
});

/** Sets the memory limit of Redis to the present use plus this many bytes; 0: no limit. */
async function limitTo(bytes: number): Promise<void> {
  await hand.config('SET', 'maxmemory', String(bytes));
}

/** Sends a hello, and resolves with all frames up to the welcome or the close. */
async function hello(clientId: string): Promise<{ readonly frames: readonly DownFrame[]; readonly ws: WebSocket }> {
  const token = await tokenOf('alice', 'connect', 'invoke');
  const ws = new WebSocket(`${url.replace('http', 'ws')}/connect`, [SUBPROTOCOL]);
  const frames: DownFrame[] = [];
  return new Promise((resolve, reject) => {
    ws.on('error', reject);
    ws.on('open', () => {
      const ids = { client_id: clientId, instance_id: 'i1', client_type: 'web' } as const;
      ws.send(`${JSON.stringify({ type: 'hello', token, ...ids })}\n{"actions":[{"name":"open"}]}`);
    });
    ws.on('message', (data) => {
      const frame = parseDown(String(data));
      if (!frame) return reject(new Error('The relay sent what is no frame.'));
      frames.push(frame);
      if (frame.type === 'welcome') resolve({ frames, ws });
    });
    ws.on('close', () => resolve({ frames, ws }));
  });
}

describe('a Redis without memory', () => {
  it('is store_full for callers, links and load balancers, and never internal', async () => {
    const welcomed = await hello('tab');
    expect(welcomed.frames.map(({ type }) => type)).toEqual(['welcome']);
    expect((await ask(`${url}/readyz`, { token: null })).status).toBe(200);
    await limitTo(1024 * 1024);

    const ready = await ask(`${url}/readyz`, { token: null });
    expect([ready.status, ready.json]).toEqual([503, { status: 'not_ready', code: 'store_full' }]);

    const token = await tokenOf('alice', 'connect', 'invoke');
    const path = '/connections/alice/tab/actions/open';
    const call = await ask(url + path, postJson({ command_id: 'c1' }, { token }));
    expect([call.status, call.json?.['code']]).toEqual([503, 'store_full']);
    const input = '{ userId: "alice", clientId: "tab", action: "open" }';
    const query = `mutation { invokeAction(input: ${input}) { ... on Refusal { code by share } } }`;
    const invoked = await ask(`${url}/graphql`, postJson({ query }, { token }));
    expect(invoked.json).toEqual({ data: { invokeAction: { code: 'store_full', by: 'CAPACITY', share: null } } });

    const { frames } = await hello('other');
    expect(frames).toMatchObject([
      { type: 'refused', code: 'store_full', frame: 'hello' },
      { type: 'bye', code: 4432, reason: 'store_full', reconnect: true, after_ms: 5_000 },
    ]);

    // Existing data can be read, and the open link stays up.
    expect((await ask(`${url}/connections?user_id=alice`, { token: ADMIN })).status).toBe(200);
    expect(welcomed.frames.some(({ type }) => type === 'bye')).toBe(false);

    await limitTo(0);
    expect((await ask(`${url}/readyz`, { token: null })).status).toBe(200);
    const found = await ask(`${url}/commands/alice/tab/c1`, { token });
    expect(found.status).toBe(404);
    const again = await hello('other');
    expect(again.frames.map(({ type }) => type)).toEqual(['welcome']);
    welcomed.ws.close();
    again.ws.close();
  });
});
