/** Tests that unsupported requests of GraphQL clients are answered in a form that these clients understand. */
import { request } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestRelay, type TestRelay } from './kit/test-relay.ts';

let relay: TestRelay;
beforeAll(async () => {
  relay = await startTestRelay();
});
afterAll(() => relay[Symbol.asyncDispose]());

const HASH = { persistedQuery: { version: 1, sha256Hash: 'ab'.repeat(32) } };

async function post(body: object, accept: string) {
  const headers = {
    accept,
    'content-type': 'application/json',
    authorization: `Bearer ${await relay.token('admin')}`,
  };
  const answer = await fetch(`${relay.url}/graphql`, { method: 'POST', headers, body: JSON.stringify(body) });
  return { status: answer.status, body: await answer.json() };
}

describe('a request for a persisted query', () => {
  const refusal = {
    errors: [{ message: 'PersistedQueryNotSupported', extensions: { code: 'persisted_query_not_supported' } }],
  };

  it('is refused with the message by which clients recognize it', async () => {
    expect(await post({ extensions: HASH }, 'application/json')).toEqual({ status: 200, body: refusal });
    expect(await post({ extensions: HASH }, 'application/graphql-response+json')).toEqual({
      status: 400,
      body: refusal,
    });
  });

  it('runs when the document comes with the hash', async () => {
    const { body } = await post({ query: '{ viewer { kind } }', extensions: HASH }, 'application/json');
    expect(body).toEqual({ data: { viewer: { kind: 'ADMIN' } } });
  });
});

describe('an upgrade to GraphQL over WebSocket', () => {
  it('is refused with the reason', async () => {
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number | undefined; text: string }>();
    const headers = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-protocol': 'graphql-transport-ws',
    };
    request(`${relay.url}/graphql`, { headers }, (answer) => {
      textOf(answer).then((text) => resolve({ status: answer.statusCode, text }), reject);
    })
      .on('error', reject)
      .end();
    const { status, text } = await promise;
    expect(status).toBe(406);
    expect(text).toContain('no GraphQL over WebSocket');
  });
});
