/** Tests health, readiness and closing of a relay, and its log. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { WebSocket } from 'ws';
import { describe, expect, it, vi } from 'vitest';
import { ownFolder } from '../kit/folder.ts';
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import { CallboardError } from '../../src/core/errors.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createClientFiles } from '../../src/http/built-files.ts';
import { requestInfoOf } from '../../src/http/request-info.ts';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock, createCrypto } from '../../src/platform/system.ts';
import { ADMIN, SECRET, ask, postJson, startHttpRelay, tokenOf } from './kit/http-relay.ts';

const memory = () =>
  createMemoryBackend({ markSecret: 'x', clock: systemClock, log: silentLog, sha256: createCrypto('x').sha256 });

describe('health and readiness', () => {
  it('differ while the store is unavailable: alive, but not ready', async () => {
    let away = true;
    const backend = {
      ...memory(),
      ready() {
        if (away) throw new CallboardError('store_unavailable', 'The store does not answer.');
      },
    };
    await using relay = await startHttpRelay({}, { backend });
    const sick = await relay.ask('/readyz', { token: null });
    expect([sick.status, sick.json]).toEqual([503, { status: 'not_ready', code: 'store_unavailable' }]);
    expect((await relay.ask('/healthz', { token: null })).status).toBe(200);
    away = false;
    expect((await relay.ask('/readyz', { token: null })).status).toBe(200);
  });

  it('change while a node drains, which continues to answer reads and admits nothing', async () => {
    await using relay = await startHttpRelay();
    await relay.callboard.drain(0);
    expect((await relay.ask('/readyz', { token: null })).json).toEqual({ status: 'not_ready', code: 'draining' });
    expect((await relay.ask('/healthz', { token: null })).status).toBe(200);
    expect((await relay.ask('/users')).status).toBe(200);
    const invoked = await relay.ask('/connections/alice/c1/actions/ping', postJson({}));
    expect([invoked.status, invoked.json?.['code']]).toEqual([503, 'draining']);
  });
});

describe('closing a relay', () => {
  it('closes links with a reason, ends streams, frees the port, and may be requested twice', async () => {
    const relay = await startHttpRelay();
    const socket = new WebSocket(`${relay.url.replace('http', 'ws')}/connect`, 'callboard.v1');
    const closed = new Promise<number>((done) => socket.on('close', done));
    await new Promise((open) => socket.on('open', open));
    const hello = {
      type: 'hello',
      token: await tokenOf('alice', 'connect'),
      client_id: 'c1',
      instance_id: 'i1',
      client_type: 'web',
    };
    const welcomed = new Promise((done) => socket.once('message', done));
    socket.send(JSON.stringify(hello));
    await welcomed;
    const stream = ask(`${relay.url}/graphql`, {
      ...postJson(
        { query: 'subscription { connectionEvents { change } }' },
        { headers: { accept: 'text/event-stream' } },
      ),
    });
    await Promise.all([relay.callboard.close(), relay.callboard.close()]);
    expect(await closed).toBe(4450);
    expect((await stream).text).not.toContain('event: complete');
    await expect(ask(`${relay.url}/healthz`)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('does not wait for idle connections', async () => {
    const relay = await startHttpRelay();
    const { Agent, get } = await import('node:http');
    const agent = new Agent({ keepAlive: true });
    await new Promise((done) =>
      get(`${relay.url}/healthz`, { agent }, (response) => response.resume().on('end', done)),
    );
    // The timer that cuts what is still open never fires, so a close that waits for the connection does not end.
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    await relay.callboard.close().finally(() => vi.useRealTimers());
    agent.destroy();
  });
});

describe('an unexpected failure', () => {
  it('is answered 500 with the id in the log, reveals nothing, and affects no other request', async () => {
    const backend = {
      ...memory(),
      ready() {
        throw new Error(`boom at /secret/path with ${ADMIN}`);
      },
    };
    await using relay = await startHttpRelay({}, { backend });
    const answer = await relay.ask('/readyz');
    expect([answer.status, answer.json?.['code']]).toEqual([500, 'internal']);
    expect(answer.text).not.toMatch(/boom|secret|at \w/);
    expect(answer.text).toContain(String(answer.headers['x-request-id']));
    const line = relay.lines.find((text) => text.includes('unexpected error'));
    expect(line).toContain(String(answer.headers['x-request-id']));
    expect(line).toContain('boom');
    expect(line).not.toContain(ADMIN);
    expect((await relay.ask('/healthz')).status).toBe(200);
    expect((await relay.ask('/metrics')).text).toContain('callboard_errors_masked_total 1');
  });
});

describe('the log of a relay', () => {
  it('contains none of the secrets that passed through it', async () => {
    await using relay = await startHttpRelay();
    const token = await tokenOf('alice', 'invoke');
    await relay.ask('/users?ticket=planted-ticket&token=planted-query');
    await relay.ask('/users', { token: 'planted-bad-token' });
    await relay.ask('/users', { token, headers: { cookie: 'session=planted-cookie' } });
    await relay.ask('/graphql', postJson({ query: '{ __typename }', variables: { a: 'planted-variable' } }, { token }));
    await relay.ask('/connections/alice/c1/actions/ping', postJson({ params: { card: 'planted-payload' } }, { token }));
    await relay.ask('/graphql', postJson({ query: 'planted-document {' }));
    const written = relay.lines.join('');
    expect(relay.lines.filter((line) => line.includes('"msg":"request"'))).toHaveLength(6);
    expect(written).not.toMatch(/planted|eyJ/);
    expect(written).not.toContain(SECRET);
    expect(written).toContain('"requester":"user:alice"');
  });
});

describe('browser builds', () => {
  it('are served with an etag, and a missing one is answered with how to build it', async () => {
    const folder = ownFolder();
    const serve = createClientFiles(pathToFileURL(`${folder}/`));
    const server = createServer((request, response) => {
      const info = requestInfoOf(request, response, { id: 'x', basePath: '', trustProxy: false });
      serve(info, 'runtime.js').catch((error: unknown) => response.writeHead(404).end(String(error)));
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    expect((await ask(url)).text).toContain('npm run build');
    writeFileSync(join(folder, 'runtime.js'), 'export const a = 1;');
    const first = await ask(url);
    expect([first.status, first.text, first.headers['content-type']]).toEqual([
      200,
      'export const a = 1;',
      'text/javascript; charset=utf-8',
    ]);
    const again = await ask(url, { headers: { 'if-none-match': String(first.headers['etag']) } });
    expect([again.status, again.text]).toEqual([304, '']);
    writeFileSync(join(folder, 'runtime.js'), 'export const a = 22;');
    expect((await ask(url)).text).toBe('export const a = 22;');
    server.close();
  });
});
