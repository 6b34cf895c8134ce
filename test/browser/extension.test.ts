/** Tests that an extension of a real browser can be a client, if its origin is allowed. */
import { createHash, generateKeyPairSync } from 'node:crypto';
import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContext, Worker } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { postJson, startHttpRelay, tokenOf } from '../http/kit/http-relay.ts';
import { launchExtension } from './kit/chromium.ts';

const opened = new DisposableStack();
let browser: BrowserContext;
let worker: Worker;
let origin: string;
beforeAll(async () => {
  const folder = opened.use(mkdtempDisposableSync(join(tmpdir(), 'callboard-extension-'))).path;
  origin = `chrome-extension://${writeExtension(folder)}`;
  browser = await launchExtension(folder);
  worker = browser.serviceWorkers()[0] ?? (await browser.waitForEvent('serviceworker'));
});
afterAll(async () => {
  await browser?.close();
  opened.dispose();
});

/** Writes an unpacked extension with a service worker and a page. Returns its id, which the browser derives from the key. */
function writeExtension(folder: string): string {
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const key = publicKey.export({ type: 'spki', format: 'der' });
  const manifest = {
    ...{ manifest_version: 3, name: 'client', version: '1.0', key: key.toString('base64') },
    background: { service_worker: 'worker.js' },
  };
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify(manifest));
  writeFileSync(join(folder, 'worker.js'), '');
  writeFileSync(join(folder, 'page.html'), '<title>page</title>');
  const digest = createHash('sha256').update(key).digest('hex').slice(0, 32);
  return [...digest].map((digit) => String.fromCharCode(97 + Number.parseInt(digit, 16))).join('');
}

/** Opens a link in the extension's worker, which answers every command with its params. Resolves with the first frame's type. */
function connect(url: string, token: string): Promise<string> {
  return worker.evaluate(
    ({ url, hello }) =>
      new Promise<string>((resolve) => {
        const socket = new WebSocket(url, 'callboard.v1');
        socket.onopen = () => socket.send(`${hello}\n{"actions":[{"name":"echo","schema":{"type":"object"}}]}`);
        socket.onerror = () => resolve('error');
        socket.onmessage = ({ data }) => {
          const [head = '', payload = ''] = String(data).split('\n');
          const { type, command_id } = JSON.parse(head);
          if (type === 'command') socket.send(`${JSON.stringify({ type: 'result', command_id })}\n${payload}`);
          resolve(type);
        };
      }),
    {
      url: `${url.replace('http', 'ws')}/connect`,
      hello: JSON.stringify({ type: 'hello', token, client_id: 'ext', instance_id: 'i1', client_type: 'browser' }),
    },
  );
}

test('an extension whose origin is allowed is a client, and its pages may send requests', async () => {
  await using relay = await startHttpRelay({ allowedOrigins: [origin] });
  const token = await tokenOf('alice', 'connect', 'invoke');
  expect(await connect(relay.linkUrl, token)).toBe('welcome');
  const path = '/connections/alice/ext/actions/echo';
  const called = await relay.ask(path, postJson({ params: { text: 'hello' } }, { token }));
  expect(called.json).toMatchObject({ outcome: 'completed', result: { text: 'hello' } });

  const page = await browser.newPage();
  await page.goto(`${origin}/page.html`);
  const kind = await page.evaluate(
    async ({ url, token }) => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const answer = await fetch(url, { method: 'POST', headers, body: '{"query":"{ viewer { kind } }"}' });
      return answer.json();
    },
    { url: `${relay.url}/graphql`, token },
  );
  expect(kind).toEqual({ data: { viewer: { kind: 'USER' } } });
  await page.close();
});

test('another extension is refused, and the log names it', async () => {
  await using relay = await startHttpRelay({ allowedOrigins: ['chrome-extension://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'] });
  expect(await connect(relay.linkUrl, await tokenOf('alice', 'connect'))).toBe('error');
  const refused = relay.lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'a request was refused');
  expect(refused).toMatchObject({ level: 'warn', reason: 'foreign_origin', origin });
});
