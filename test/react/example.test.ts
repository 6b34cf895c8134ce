/** Tests the hooks in a browser, by the example app that examples/react-board shows. */
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Browser, Page } from 'playwright-core';
import { build } from 'vite';
import { ActionCancelled, createRuntime, type Call } from '../../src/clients/runtime/index.ts';
import { launchChromium } from '../browser/kit/chromium.ts';
import { startRealRelay, type RealRelay } from '../clients/kit/real-relay.ts';
import { startTcpProxy } from '../kit/tcp-proxy.ts';
import { eventually, WAIT_MS } from '../kit/patience.ts';

const ROOT = join(import.meta.dirname, '../..');
const TYPES: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript' };

let folder: string;
let browser: Browser;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'callboard-react-'));
  await build({
    configFile: false,
    logLevel: 'error',
    root: join(ROOT, 'examples/react-board'),
    // The libraries come from the present sources, because no package is installed here.
    resolve: { alias: [{ find: /^callboard-client\/(\w+)$/, replacement: `${ROOT}/src/clients/$1/index.ts` }] },
    oxc: { jsx: { runtime: 'automatic', importSource: 'react' } },
    build: { outDir: folder, emptyOutDir: true, target: 'es2022' },
  });
  browser = await launchChromium();
});

afterAll(async () => {
  await browser?.close();
  await rm(folder, { recursive: true, force: true });
});

type App = AsyncDisposable & { readonly page: Page; readonly origin: string };

/** Serves the app as its own backend does: its files, the address of the relay, and tokens. Opens it in a page. */
async function openApp(start: (origin: string) => Promise<{ readonly relay: RealRelay; readonly url: string }>) {
  await using starting = new AsyncDisposableStack();
  let answers: Readonly<Record<string, () => Promise<string>>> = {};
  const server = createServer((request, response) => {
    const path = request.url === '/' ? '/index.html' : (request.url ?? '');
    const answer = answers[path];
    response.setHeader('content-type', TYPES[extname(path)] ?? 'text/plain');
    response.setHeader('content-security-policy', "default-src 'self'; connect-src 'self' http://127.0.0.1:*");
    const text = answer ? answer() : readFile(join(folder, path));
    text.then(
      (body) => response.end(body),
      () => response.writeHead(404).end(),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  starting.defer(async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  });
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  const origin = `http://127.0.0.1:${address.port}`;
  const { relay, url } = await start(origin);
  answers = {
    '/settings': async () => JSON.stringify({ relay: url, userId: 'alice' }),
    '/token': () => relay.token('alice', 'invoke'),
  };
  const page = await browser.newPage();
  starting.defer(() => page.close());
  await page.goto(origin);
  const parts = starting.move();
  return { page, origin, [Symbol.asyncDispose]: () => parts.disposeAsync() } satisfies App;
}

/** Starts a relay and the app. `proxy` is between the two. */
async function startApp() {
  await using starting = new AsyncDisposableStack();
  const known = Promise.withResolvers<{ relay: RealRelay; proxy: Awaited<ReturnType<typeof startTcpProxy>> }>();
  const app = starting.use(
    await openApp(async (origin) => {
      const relay = starting.use(await startRealRelay({ allowedOrigins: [origin] }));
      const proxy = starting.use(await startTcpProxy(relay.url));
      known.resolve({ relay, proxy });
      return { relay, url: proxy.url };
    }),
  );
  const parts = starting.move();
  return { ...(await known.promise), page: app.page, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

type Run = { readonly text: string; readonly call: Call; readonly end: (result: object) => void };

/** Connects a client with the action `notes.add`, whose runs the test ends. */
async function startNotes(relay: RealRelay, clientId = 'kiosk-1') {
  const token = await relay.token('alice', 'connect');
  const runtime = createRuntime({ url: relay.link, token, clientId, clientType: 'console', onStatus: () => undefined });
  const runs: Run[] = [];
  runtime.handle<{ text: string }, object>('notes.add', {}, ({ text }, call) => {
    const { promise, resolve, reject } = Promise.withResolvers<object>();
    runs.push({ text, call, end: resolve });
    call.signal.addEventListener('abort', () => reject(new ActionCancelled()));
    return promise;
  });
  runtime.connect();
  await runtime.ready();
  const latest = (): Promise<Run> =>
    eventually(() => {
      const run = runs.at(-1);
      if (!run) throw new Error('nothing was invoked');
      return run;
    });
  return { runtime, runs, latest, [Symbol.asyncDispose]: () => runtime.close({ withinMs: 0 }) };
}

const says = (page: Page, text: string | RegExp): Promise<void> => page.locator('output', { hasText: text }).waitFor();
const add = (page: Page): Promise<void> => page.getByRole('button', { name: 'Add' }).click();

/** Reports progress until the page shows it: what was reported before the page listened is not repeated. */
const showsProgress = (page: Page, { call }: Run): Promise<void> =>
  eventually(async () => {
    call.progress({ done: 1, of: 2 });
    expect(await page.locator('output').textContent()).toBe('1 of 2 done');
  });

test('an invocation shows its progress and its result', async () => {
  await using app = await startApp();
  await using notes = await startNotes(app.relay);
  await says(app.page, 'Nothing was sent.');
  await app.page.locator('#live', { hasText: 'live' }).waitFor();
  const sent: string[] = [];
  app.page.on('request', (request) => {
    const path = new URL(request.url()).pathname;
    if (path !== '/token' && request.method() !== 'OPTIONS') sent.push(`${request.method()} ${path}`);
  });
  await add(app.page);
  const run = await notes.latest();
  expect(run.text).toBe('milk');
  await showsProgress(app.page, run);
  run.end({ count: 7 });
  await says(app.page, 'Added: 7 notes.');
  expect(notes.runs).toHaveLength(1);
  // The request of the call is also its stream of progress: a browser has few connections.
  expect(sent).toEqual(['POST /connections/alice/kiosk-1/actions/notes.add']);
});

test('a call that is running survives a reload, and runs once', async () => {
  await using app = await startApp();
  await using notes = await startNotes(app.relay);
  await add(app.page);
  const run = await notes.latest();
  await app.page.reload();
  await app.page.getByRole('button', { name: 'Cancel' }).waitFor();
  await showsProgress(app.page, run);
  run.end({ count: 1 });
  await says(app.page, 'Added: 1 notes.');
  await app.page.reload();
  await says(app.page, 'Added: 1 notes.');
  expect(notes.runs).toHaveLength(1);
});

test('a refusal of the relay, a cancelled call and a relay that does not answer are told apart', async () => {
  await using app = await startApp();
  const notes = await startNotes(app.relay);
  await says(app.page, 'Nothing was sent.');
  await add(app.page);
  await notes.latest();
  await app.page.getByRole('button', { name: 'Cancel' }).click();
  await says(app.page, 'Cancelled.');
  await notes[Symbol.asyncDispose]();
  await app.page.locator('li', { hasText: 'disconnected' }).waitFor();
  await add(app.page);
  await says(app.page, 'Refused: The client is not connected');
  app.proxy.cut();
  await add(app.page);
  // The page says so once the whole budget of the call is used up, which is half of a usual wait.
  const silent = app.page.locator('output', { hasText: 'The relay does not answer. The note may have been added.' });
  await silent.waitFor({ timeout: 2 * WAIT_MS });
  await app.page.locator('#live', { hasText: /waiting|connecting/ }).waitFor();
});

test('a call whose client starts again is shown as unknown', async () => {
  await using app = await startApp();
  await using notes = await startNotes(app.relay);
  await add(app.page);
  await notes.latest();
  await using _again = await startNotes(app.relay);
  await says(app.page, 'It is not known whether the note was added.');
});

test('the clients are shown as they connect and leave', async () => {
  await using app = await startApp();
  const first = await startNotes(app.relay, 'first');
  await app.page.locator('li', { hasText: 'first connected' }).waitFor();
  await using _second = await startNotes(app.relay, 'second');
  await app.page.locator('li', { hasText: 'second connected' }).waitFor();
  await first[Symbol.asyncDispose]();
  await app.page.locator('li', { hasText: 'first disconnected' }).waitFor();
  expect(await app.page.locator('#live').textContent()).toBe('live');
});
