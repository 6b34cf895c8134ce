/** Tests a relay that serves TLS itself. */
import { once } from 'node:events';
import { request } from 'node:https';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { text } from 'node:stream/consumers';
import { WebSocket } from 'ws';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCallboard, type Callboard } from '../../src/callboard.ts';
import { CERTIFICATE, OTHER_CERTIFICATE } from '../kit/certificates.ts';
import { signToken } from '../../src/http/tokens.ts';
import { TOKEN_SECONDS, eventually } from '../kit/patience.ts';

const ADMIN = 'the-admin-token-of-this-test';
const SECRET = 'a secret of more than thirty-two bytes';

let relay: Callboard;
let port: number;
beforeAll(async () => {
  relay = createCallboard({ config: { auth: { adminTokens: [ADMIN], secret: SECRET }, tls: CERTIFICATE } });
  port = Number(new URL(await relay.listen({ host: 'localhost' })).port);
});
afterAll(() => relay.close());

type Asked = { readonly headers?: Record<string, string>; readonly ca?: string; readonly method?: string };

/** Sends one request on a connection of its own. */
async function ask(path: string, { headers, ca = CERTIFICATE.cert, method = 'GET' }: Asked = {}, body = '') {
  const authorization = `Bearer ${ADMIN}`;
  const sent = request({
    host: 'localhost',
    port,
    path,
    method,
    ca,
    agent: false,
    headers: { authorization, ...headers },
  });
  sent.end(body);
  const [answer] = await once(sent, 'response');
  return { status: answer.statusCode, text: () => text(answer), answer };
}

async function unauthenticated(): Promise<string | undefined> {
  const { text } = await ask('/metrics');
  return /^callboard_unauthenticated_sockets (\d+)/m.exec(await text())?.[1];
}

describe('a relay with a certificate', () => {
  it('says https in its URL and answers REST and GraphQL', async () => {
    expect(relay.url).toBe(`https://localhost:${port}`);
    expect((await ask('/users')).status).toBe(200);
    const json = { 'content-type': 'application/json' };
    const answer = await ask('/graphql', { method: 'POST', headers: json }, '{"query":"{ __typename }"}');
    expect(JSON.parse(await answer.text())).toEqual({ data: { __typename: 'Query' } });
  });

  it('treats its https origin as its own, and the http origin of the same name as foreign', async () => {
    const of = (origin: string) => ask('/users', { headers: { origin } });
    expect((await of(`https://localhost:${port}`)).status).toBe(200);
    expect((await of(`http://localhost:${port}`)).status).toBe(403);
  });

  it('serves links', async () => {
    const socket = new WebSocket(`wss://localhost:${port}/connect`, 'callboard.v1', { ca: CERTIFICATE.cert });
    const welcome = once(socket, 'message');
    await once(socket, 'open');
    const token = await signToken({
      secret: SECRET,
      user: 'alice',
      scopes: ['connect'],
      ttlSeconds: TOKEN_SECONDS,
      now: Date.now(),
    });
    const hello = { type: 'hello', token, client_id: 'tab', instance_id: 'i1', client_type: 'browser' };
    socket.send(`${JSON.stringify(hello)}\n{"actions":[]}`);
    expect(String((await welcome)[0])).toContain('"welcome"');
    socket.terminate();
    await once(socket, 'close');
  });

  it('serves event streams', async () => {
    const query = 'subscription { pendingRpcAlerts(olderThanMs: 60000) { over } }';
    const headers = { 'content-type': 'application/json', accept: 'text/event-stream' };
    const { answer } = await ask('/graphql/stream', { method: 'POST', headers }, JSON.stringify({ query }));
    let received = '';
    for await (const chunk of answer) {
      received += String(chunk);
      if (received.includes('"over":false')) break;
    }
    expect(received).toContain('event: next');
  });

  it('counts sockets from before their handshake until they close or send a token', async () => {
    await eventually(async () => expect(await unauthenticated()).toBe('0'));
    const silent = connect(port, 'localhost');
    await once(silent, 'connect');
    await eventually(async () => expect(await unauthenticated()).toBe('1'));
    silent.destroy();
    await eventually(async () => expect(await unauthenticated()).toBe('0'));
  });

  it('closes a connection that does not speak TLS and serves the others', async () => {
    const plain = connect(port, 'localhost');
    plain.on('error', () => {});
    plain.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    plain.resume();
    await once(plain, 'close');
    expect((await ask('/users')).status).toBe(200);
  });

  it('refuses old versions of TLS', async () => {
    const old = connectTls({
      port,
      host: 'localhost',
      ca: CERTIFICATE.cert,
      maxVersion: 'TLSv1.1',
      minVersion: 'TLSv1.1',
    });
    const [error] = await once(old, 'error');
    expect(error).toBeInstanceOf(Error);
  });

  it('serves a replaced certificate to new connections, and keeps the one before if the texts do not fit', async () => {
    const open = connectTls({ port, host: 'localhost', ca: CERTIFICATE.cert });
    await once(open, 'secureConnect');
    expect(() => relay.replaceCertificate({ ...OTHER_CERTIFICATE, key: CERTIFICATE.key })).toThrow();
    expect((await ask('/users')).status).toBe(200);
    relay.replaceCertificate(OTHER_CERTIFICATE);
    await expect(ask('/users')).rejects.toThrow(/certificate/);
    expect((await ask('/users', { ca: OTHER_CERTIFICATE.cert })).status).toBe(200);
    expect(open.destroyed).toBe(false);
    open.destroy();
  });
});

it('a relay without a certificate refuses to serve one', async () => {
  await using plain = createCallboard({ config: { auth: { adminTokens: [ADMIN] } } });
  expect(() => plain.replaceCertificate(CERTIFICATE)).toThrow('without TLS');
});
