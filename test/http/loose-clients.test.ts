/** Tests requests as some clients write them, and the errors of arguments that do not fit. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ADMIN, postJson, raw, startHttpRelay, type HttpRelay } from './kit/http-relay.ts';

let relay: HttpRelay;
beforeAll(async () => void (relay = await startHttpRelay()));
afterAll(() => relay[Symbol.asyncDispose]());

const QUERY = { query: '{ viewer { kind } }' };
const ANSWER = { data: { viewer: { kind: 'ADMIN' } } };

describe('GraphQL', () => {
  it.each(['application/json; charset=utf8', 'application/json; charset="UTF8"'])(
    'reads a body of type %s',
    async (type) => {
      const answer = await relay.ask('/graphql', postJson(QUERY, { headers: { 'content-type': type } }));
      expect([answer.status, answer.json]).toEqual([200, ANSWER]);
    },
  );

  it('takes an empty operation name for none, and an empty accept for any', async () => {
    for (const query of [QUERY.query, 'query A { viewer { kind } }'])
      expect((await relay.ask('/graphql', postJson({ query, operationName: '' }))).json).toEqual(ANSWER);
    const empty = await relay.ask('/graphql', postJson(QUERY, { headers: { accept: '' } }));
    expect([empty.status, empty.json]).toEqual([200, ANSWER]);
    const failing = await relay.ask('/graphql', postJson({ query: '{ nothing }' }, { headers: { accept: '' } }));
    expect(failing.text).toContain('graphql_validation_failed');
  });

  it.each([
    ['query ($n: Int) { connections(first: $n) { nodes { clientId } } }', { n: null }],
    ['query ($n: Int) { users(first: $n) { nodes { id } } }', { n: null }],
  ])('names the argument with a default that is null: %s', async (query, variables) => {
    const headers = { accept: 'application/graphql-response+json' };
    const { status, json, text } = await relay.ask('/graphql', postJson({ query, variables }, { headers }));
    expect([status, json?.['errors']]).toEqual([
      400,
      [expect.objectContaining({ extensions: { code: 'invalid_argument' } })],
    ]);
    expect(text).toContain('first');
    expect(text).not.toMatch(/cost|Infinity/);
    expect((await relay.ask('/graphql', postJson({ query }))).status).toBe(200);
  });
});

describe('Expect: 100-continue', () => {
  const head = (...lines: string[]) =>
    ['POST /graphql HTTP/1.1', 'Host: x', 'Expect: 100-continue', 'Content-Type: application/json', ...lines].join(
      '\r\n',
    );
  const body = JSON.stringify(QUERY);

  it('is answered with 100 only to a request whose body is read', async () => {
    const bearer = `Authorization: Bearer ${ADMIN}`;
    const length = `Content-Length: ${body.length}`;
    const read = await raw(relay.url, `${head(bearer, length, 'Connection: close')}\r\n\r\n${body}`);
    expect(read).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK/);
    for (const refused of [
      head('Authorization: Bearer wrong', length),
      head(bearer, 'Content-Length: 99999999'),
      head(bearer, length, 'Origin: https://evil.example'),
    ]) {
      expect(await raw(relay.url, `${refused}\r\n\r\n`)).toMatch(/^HTTP\/1.1 4\d\d /);
    }
  });
});

it('an event stream forbids proxies to transform it', async () => {
  const stream = new AbortController();
  const headers = { authorization: `Bearer ${ADMIN}`, accept: 'text/event-stream', 'content-type': 'application/json' };
  const query = JSON.stringify({ query: 'subscription { pendingRpcAlerts(olderThanMs: 60000) { over } }' });
  const response = await fetch(`${relay.url}/graphql`, { method: 'POST', headers, body: query, signal: stream.signal });
  expect(response.headers.get('cache-control')).toBe('no-cache, no-transform');
  stream.abort();
});

describe.runIf(process.getuid?.() === 0)('a user without a home directory, whom the system does not know', () => {
  const BIN = join(import.meta.dirname, '..', '..', 'src', 'bin.ts');
  const run = (...argv: string[]) =>
    spawn(process.execPath, [BIN, ...argv], { uid: 54_321, gid: 54_321, env: {}, stdio: 'pipe' });

  it('may start a relay, whose credentials last for one run', async () => {
    const child = run('serve', '--json', '--port', '0');
    let complaint = '';
    child.stderr.on('data', (chunk) => (complaint += chunk));
    const line = await new Promise<string>((done) => child.stdout.once('data', (text) => done(String(text))));
    expect(JSON.parse(line)).toMatchObject({ event: 'listening' });
    expect(complaint).toMatch(/last for this run only: This user has no home directory/);
    child.kill('SIGKILL');
  });

  it('may use the command line', async () => {
    const child = run('status', '--url', relay.url, '--token', ADMIN);
    let said = '';
    child.stderr.on('data', (chunk) => (said += chunk));
    await new Promise((done) => child.on('close', done));
    expect(said).not.toMatch(/unexpected|homedir/);
  });
});
