/** Tests that large JSON in payloads is never built as a value. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { countParts, trustJson } from '../../src/core/json.ts';
import { ENVELOPE_PARTS } from '../../src/core/limits.ts';
import { startJsonRelay, type JsonRelay } from './kit/json-texts.ts';

/**
 * An object with many members. ITEMS is an array with many items. Each text is about a mebibyte long; building its
 * value is slow, and scanning it takes 4 to 10 ms.
 */
const KEYS = `{${Array.from({ length: 70_000 }, (_, i) => `"key${i}":1`).join()}}`;
const ITEMS = `[${'1,'.repeat(500_000)}1]`;
const ROW = '{"context_id":"c1","status":"idle","ownership":"worker"}';
const ACTION = '/connections/alice/tab/actions/open';
const INVOKE = `mutation ($params: JSON) { invokeAction(input: { userId: "alice", clientId: "tab", action: "open", params: $params }) { __typename } }`;

let at: JsonRelay;
beforeAll(async () => {
  at = await startJsonRelay(true);
});
afterAll(() => at[Symbol.asyncDispose]());

/** Returns the number of members and items of the largest value that was built from JSON in this process. */
let built: () => number;
beforeEach(() => {
  const parse = vi.spyOn(JSON, 'parse');
  built = () => Math.max(0, ...parse.mock.calls.map(([text]) => countParts(trustJson(String(text)), 1_000_000)));
});
afterEach(() => {
  vi.restoreAllMocks();
});

describe('JSON with very many members or items', () => {
  const large = [
    ['members', KEYS],
    ['items', `{"items":${ITEMS}}`],
  ] as const;

  it.each(large)('passes through as params and result without being built: %s', async (_, text) => {
    const served = at.serve(text);
    const call = at.send(ACTION, `{"params":${text}}`);
    expect(await served).toBe(text);
    expect(built()).toBeLessThan(ENVELOPE_PARTS);
    vi.restoreAllMocks();
    expect((await call).text).toContain(`"result":${text}`);
  });

  it.each(large)('passes through over GraphQL and links: %s', async (_, text) => {
    const overGraphql = at.serve('1');
    const answer = at.query(INVOKE, `{"params":${text}}`, 'alice');
    expect(await overGraphql).toBe(text);
    expect((await answer).text).toContain('InvokeActionOutcome');
    const overLink = at.serve('1');
    at.requester.raw(`{"type":"invoke","ref":"r1","client_id":"tab","action":"open"}\n${text}`);
    expect(await overLink).toBe(text);
    expect(await at.requester.next('outcome')).toMatchObject({ outcome: 'completed' });
    expect(built()).toBeLessThan(ENVELOPE_PARTS);
  });

  it.each([
    ['a body of REST', ACTION, KEYS],
    ['a member of it that is no JSON', ACTION, `{"command_id":${KEYS}}`],
    ['a list of it', '/ingest', `[${'{},'.repeat(300_000)}{}]`],
    ['an unknown member of an item', '/ingest', `[{"x":${KEYS}}]`],
    ['a body of GraphQL', '/graphql', KEYS],
    ['its extensions', '/graphql', `{"query":"{__typename}","extensions":${KEYS}}`],
    [
      'a variable of another type',
      '/graphql',
      `{"query":"query($x:ID!){user(userId:$x){id}}","variables":{"x":${KEYS}}}`,
    ],
    [
      'an input object',
      '/graphql',
      `{"query":"mutation($i:InvokeActionInput!){invokeAction(input:$i){__typename}}","variables":{"i":${KEYS}}}`,
    ],
    [
      'a list of input objects',
      '/graphql',
      `{"query":"mutation($m:[IngestMessageInput!]!){ingestMessages(messages:$m){...on IngestResult{items{retained}}}}","variables":{"m":[${'{},'.repeat(300_000)}{}]}}`,
    ],
  ])('is refused if the relay would build it: %s', async (_, path, body) => {
    const { status, text } = await at.send(path, body);
    expect([200, 400]).toContain(status);
    expect(text).toMatch(/"code":"invalid_argument"/);
    expect(built()).toBeLessThanOrEqual(ENVELOPE_PARTS);
  });

  it('has no effect in variables that an operation does not declare', async () => {
    expect((await at.query('{ __typename }', KEYS, 'alice')).text).toBe('{"data":{"__typename":"Query"}}');
    expect(built()).toBeLessThan(10);
  });

  it.each([
    ['an advertisement', 'actions', KEYS],
    ['an advertised action', 'actions', `{"actions":[${KEYS}]}`],
    ['a list of actions', 'actions', `{"actions":${ITEMS}}`],
    ['a report', 'report', `{"contexts":{"set":${ITEMS}}}`],
    ['a row of a report', 'report', `{"contexts":{"set":[${KEYS}]}}`],
    ['what a row has besides its members', 'report', `{"contexts":{"set":[${ROW.slice(0, -1)},${KEYS.slice(1)}]}}`],
    ['a member of a row', 'report', `{"contexts":{"set":[{"context_id":${KEYS}}]}}`],
  ])('is refused in a frame that the relay reads: %s', async (_, type, payload) => {
    // The user may send again what the bytes before this frame count for.
    await at.clock.advance(1_000);
    at.peer.raw(`{"type":"${type}"}\n${payload}`);
    expect(await at.peer.next('refused')).toMatchObject({ code: 'invalid_argument', frame: type });
    expect(built()).toBeLessThanOrEqual(ENVELOPE_PARTS);
  });
});
