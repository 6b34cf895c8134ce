/** Tests the configurations of deploy/proxies, each run with its real proxy. */
import { spawnSync } from 'node:child_process';
import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ADMIN, startHttpRelay, tokenOf, type HttpRelay } from '../http/kit/http-relay.ts';
import { ownFolder } from '../kit/folder.ts';
import { find, makeCertificate } from './kit/programs.ts';
import { isInstalled, PROXIES, startProxy, type Proxy } from './kit/proxies.ts';

const NAMES = Object.keys(PROXIES) as (keyof typeof PROXIES)[];

/**
 * Sends one request over HTTP/2 and TLS. With `until`, resolves as soon as that text has arrived, and ends the stream.
 */
function ask(
  { port, certificate }: Proxy,
  headers: Readonly<Record<string, string>>,
  { body, until }: { readonly body?: string; readonly until?: string } = {},
): Promise<{ readonly status: number; readonly text: string; readonly protocol: string | null }> {
  const session = connectHttp2(`https://localhost:${port}`, { ca: certificate });
  return new Promise<{ status: number; text: string; protocol: string | null }>((resolve, reject) => {
    session.on('error', reject);
    const stream = session.request({ ':path': '/', authorization: `Bearer ${ADMIN}`, ...headers });
    let status = 0;
    let text = '';
    const done = (): void => resolve({ status, text, protocol: session.alpnProtocol ?? null });
    stream.on('response', (answer) => (status = Number(answer[':status'])));
    stream.setEncoding('utf8');
    stream.on('data', (chunk: string) => {
      text += chunk;
      if (until !== undefined && text.includes(until)) done();
    });
    stream.on('end', done);
    stream.on('error', reject);
    stream.end(body);
  }).finally(() => session.destroy());
}

it.each(NAMES)('deploy/proxies: the configuration of %s contains every text that this test replaces in it', (name) => {
  const path = ownFolder();
  makeCertificate(path);
  const program = PROXIES[name].prepare({ folder: path, port: 1, relayPorts: [2, 3], basePath: '' });
  expect(program.join(' ')).toContain(path);
});

// The names in this file are those of compose.yaml, so Caddy can read it here and not run with it.
it.runIf(isInstalled('caddy'))('deploy/compose: Caddy reads its configuration', () => {
  const folder = ownFolder();
  const read = (text: string) => {
    const file = join(folder, 'Caddyfile');
    writeFileSync(file, text);
    const args = ['adapt', '--config', file, '--adapter', 'caddyfile'];
    return spawnSync(find('caddy') ?? '', args, { encoding: 'utf8', env: { HOME: folder } });
  };
  const text = readFileSync(join(import.meta.dirname, '../../deploy/compose/Caddyfile'), 'utf8');
  const { status, stdout } = read(text);
  expect([status, stdout]).toEqual([0, expect.stringContaining('"dial":"relay-b:4400"')]);
  expect(read(text.replace('health_uri', 'health_url')).status).not.toBe(0);
});

// Only an installed proxy can run. The test above reads every configuration on any machine.
const RUNS = NAMES.flatMap((name) => ['', '/callboard'].map((basePath) => ({ name, basePath })));
describe.each(RUNS)('deploy/proxies: $name', ({ name, basePath }) => {
  describe.skipIf(!isInstalled(name))(`runs with the base path "${basePath}"`, () => {
    const opened = new AsyncDisposableStack();
    let relay: HttpRelay;
    let proxy: Proxy;
    beforeAll(async () => {
      const { path } = opened.use(mkdtempDisposableSync(join(tmpdir(), 'callboard-deploy-')));
      relay = opened.use(await startHttpRelay({ trustProxy: true, basePath }));
      proxy = opened.use(
        await startProxy(name, { folder: path, relayPorts: [Number(new URL(relay.url).port)], basePath }),
      );
    });
    afterAll(() => opened.disposeAsync());

    it('passes requests over HTTP/2, with bodies up to the relay’s own bound', async () => {
      const { status, protocol } = await ask(proxy, { ':path': `${basePath}/users` });
      expect([status, protocol]).toEqual([200, 'h2']);
      const query = JSON.stringify({ query: '{ __typename }', variables: { filler: 'x'.repeat(1_000_000) } });
      const json = { ':method': 'POST', ':path': `${basePath}/graphql`, 'content-type': 'application/json' };
      expect((await ask(proxy, json, { body: query })).status).toBe(200);
    });

    it('tells the relay its origin, so that its own pages may send requests and pages of others may not', async () => {
      const origin = `https://localhost:${proxy.port}`;
      expect((await ask(proxy, { ':path': `${basePath}/users`, origin })).status).toBe(200);
      const foreign = await ask(proxy, { ':path': `${basePath}/users`, origin: 'https://evil.example' });
      expect([foreign.status, foreign.text]).toEqual([403, expect.stringContaining('ALLOWED_ORIGINS')]);
    });

    it('tells the relay the address of its peer', async () => {
      await ask(proxy, { ':path': `${basePath}/no-such-path` });
      const line = relay.lines.map((text) => JSON.parse(text)).findLast(({ path }) => path === '/no-such-path');
      expect(line).toMatchObject({ address: expect.stringMatching(/^(127\.0\.0\.1|::1)$/) });
    });

    it('passes a link in both directions', async () => {
      const socket = new WebSocket(`wss://localhost:${proxy.port}${basePath}/connect`, 'callboard.v1', {
        ca: proxy.certificate,
        origin: `https://localhost:${proxy.port}`,
      });
      const first = new Promise<string>((done) => socket.once('message', (data) => done(String(data))));
      await new Promise((done) => socket.once('open', done));
      const token = await tokenOf('alice', 'connect');
      const hello = { type: 'hello', token, client_id: 'tab', instance_id: 'i1', client_type: 'browser' };
      socket.send(`${JSON.stringify(hello)}\n{"actions":[]}`);
      expect(JSON.parse((await first).split('\n')[0] ?? '')).toMatchObject({ type: 'welcome' });
      socket.terminate();
    });

    it('passes the first event of a stream at once, without buffering', async () => {
      const stream = { ':method': 'POST', ':path': `${basePath}/graphql/stream`, 'content-type': 'application/json' };
      const query = JSON.stringify({ query: 'subscription { pendingRpcAlerts(olderThanMs: 60000) { over } }' });
      const headers = { ...stream, accept: 'text/event-stream' };
      const { status, text } = await ask(proxy, headers, { body: query, until: 'event: next' });
      expect([status, text]).toEqual([200, expect.stringContaining('"over":false')]);
    });
  });
});
