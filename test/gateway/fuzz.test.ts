/** Tests that random bytes and random frames harm neither the relay nor other links. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { UP } from '../../src/protocol/frames.ts';
import { ALICE, caller, client, startGateway, Peer, type TestGateway } from './kit/test-gateway.ts';

let at: TestGateway & AsyncDisposable;
let neighbour: Peer;
const rejections: unknown[] = [];
const note = (error: unknown) => void rejections.push(error);

beforeAll(async () => {
  process.on('unhandledRejection', note);
  process.on('uncaughtException', note);
  at = await startGateway();
  neighbour = await client(at, { token: 'user:neighbour:connect,invoke', client_id: 'calm' });
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  process.off('unhandledRejection', note);
  process.off('uncaughtException', note);
});

const words = fc.oneof(
  fc.constantFrom(
    'tab',
    'calm',
    'open',
    'c1',
    'r1',
    'user:neighbour:connect',
    'admin',
    ALICE,
    '',
    'a b',
    '../x',
    '__proto__',
  ),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom('x'.repeat(129), '\u0000', '\r\n', '\ud800', '💥'),
);
const values = fc.oneof(
  words,
  fc.integer(),
  fc.double(),
  fc.boolean(),
  fc.constant(null),
  fc.jsonValue({ maxDepth: 2 }),
);
const types = fc.oneof(fc.constantFrom(...Object.keys(UP), 'welcome', 'bye', 'constructor', 'toString'), fc.string());
const members = [...new Set(Object.values(UP).flatMap((table) => Object.keys(table))), '__proto__', 'extra'];
const headers = fc.tuple(types, fc.dictionary(fc.constantFrom(...members), values, { maxKeys: 8 }));
const payloads = fc.oneof(
  fc.json(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '{',
    '{"actions":[{"name":"a"},{"name":"a"}]}',
    '{"__proto__":{"polluted":1}}',
    '['.repeat(20_000),
    '',
  ),
);
const frames = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
  headers.map(([type, rest]) => JSON.stringify({ ...rest, type })),
  fc.tuple(headers, payloads).map(([[type, rest], payload]) => `${JSON.stringify({ type, ...rest })}\n${payload}`),
);

/** Draws a valid frame with one character changed. */
const mutated = fc
  .tuple(fc.constantFrom(...VALID()), fc.nat(), fc.string({ unit: 'binary', minLength: 0, maxLength: 3 }), fc.nat(3))
  .map(([text, place, put, cut]) => {
    const start = place % (text.length + 1);
    return text.slice(0, start) + put + text.slice(start + cut);
  });

function VALID(): string[] {
  return [
    `{"type":"hello","token":"${ALICE}","client_id":"tab","instance_id":"i1","client_type":"web"}\n{"actions":[{"name":"open","schema":{"type":"object"}}]}`,
    `{"type":"auth","token":"${ALICE}"}`,
    '{"type":"ack","command_id":"c1"}',
    '{"type":"progress","command_id":"c1"}\n{"done":1}',
    '{"type":"result","command_id":"c1"}\n{"a":[1,2,{"b":null}]}',
    '{"type":"error","command_id":"c1","code":"handler_failed","message":"no"}',
    '{"type":"actions"}\n{"actions":[{"name":"open","checks_arguments":true,"metadata":[1.0]}]}',
    '{"type":"report"}\n{"contexts":{"set":[{"context_id":"c","status":"idle","ownership":"worker","metadata":[1.0]}],"removed":["d"]},"windows":{"snapshot":true}}',
    '{"type":"invoke","ref":"r1","client_id":"tab","action":"open","wait_for":"admitted"}\n{"x":1}',
    '{"type":"await","ref":"r2","client_id":"tab","command_id":"c1","within_ms":0}',
    '{"type":"cancel","ref":"r3","client_id":"tab","command_id":"c1"}',
    '{"type":"leave","ref":"r1"}',
    '{"type":"closing"}',
  ];
}

/** Sends all texts, and waits until the relay has handled them: it answers the close only then. */
async function pour(peer: Peer, texts: readonly string[]): Promise<void> {
  for (const text of texts) if (peer.ws.readyState === peer.ws.OPEN) peer.raw(text);
  peer.ws.close(1000);
  await peer.closed;
}

async function soundAfter(peer: Peer): Promise<void> {
  for (const refused of peer.seen('refused')) {
    expect(refused.code).not.toBe('internal');
    expect(refused.message).not.toMatch(/\.ts|node:|\/src\//);
  }
  await neighbour.sync();
  expect(neighbour.all.filter(({ type }) => type !== 'refused' && type !== 'welcome' && type !== 'ping')).toEqual([]);
  expect(rejections).toEqual([]);
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
}

test('any bytes in place of hello leave the relay and its other links unaffected', async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(frames, mutated), async (text) => {
      const peer = new Peer(at);
      await peer.opened;
      await pour(peer, [text]);
      await soundAfter(peer);
    }),
    { numRuns: 300 },
  );
});

test.each(['client', 'caller'])(
  'any frames of a welcomed %s leave the relay and its other links unaffected',
  async (kind) => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(frames, mutated), { maxLength: 12 }), async (texts) => {
        const peer = kind === 'client' ? await client(at) : await caller(at);
        await pour(peer, texts);
        await soundAfter(peer);
      }),
      { numRuns: 300 },
    );
  },
);

/** Draws a frame that can be read: a JSON object with a type, and a payload that is JSON. */
const readable = fc
  .tuple(
    fc.oneof(
      headers,
      headers.map(([type, rest]) => [type, { ...rest, more: 'x'.repeat(20_000) }] as const),
    ),
    fc.oneof(
      fc.constant(null),
      fc.json(),
      fc.constantFrom(5, 200, 201, 5_000).map((levels) => '['.repeat(levels) + ']'.repeat(levels)),
      fc.constantFrom(1_048_000, 1_048_576, 2_000_000).map((bytes) => `"${'x'.repeat(bytes)}"`),
    ),
  )
  .map(([[type, rest], payload]) => {
    const header = JSON.stringify({ ...rest, type });
    return payload === null ? header : `${header}\n${payload}`;
  });

let users = 0;
test.each(['client', 'caller'])('after any frames of a %s that can be read, its link still serves', async (kind) => {
  await fc.assert(
    fc.asyncProperty(fc.array(readable, { maxLength: 12 }), async (texts) => {
      // Each link has a user of its own, so that none waits for the byte rate of one.
      const token = `user:${kind}-${users++}:connect,invoke`;
      const peer = kind === 'client' ? await client(at, { token }) : await caller(at, token);
      for (const text of texts) peer.raw(text);
      await peer.sync();
      await pour(peer, []);
      await soundAfter(peer);
    }),
    { numRuns: 100 },
  );
});

test('after all of it nothing is left open, and nothing unexpected was logged', async () => {
  await expect.poll(() => at.gateway.size).toBe(1);
  expect(at.logged.filter(({ level }) => level === 'error')).toEqual([]);
});
