/** Tests a site with its application, its host and viewers in a real browser, with faults in between. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Browser, Page } from 'playwright-core';
import { buildClients, type Built } from '../../scripts/bundles.ts';
import { startBoard, type BoardPage } from '../../demo/board.ts';
import { startRealRelay } from '../clients/kit/real-relay.ts';
import { startTcpProxy, type TcpProxy } from '../kit/tcp-proxy.ts';
import { launchChromium } from './kit/chromium.ts';
import { eventually } from '../kit/patience.ts';

let folder: string;
let built: readonly Built[];
let browser: Browser;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'callboard-site-'));
  built = await buildClients(folder);
  browser = await launchChromium();
});

afterAll(async () => {
  await browser?.close();
  await rm(folder, { recursive: true, force: true });
});

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

type DemoSite = AsyncDisposable & {
  /** The proxy in front of the relay. */
  readonly proxy: TcpProxy;
  readonly pages: readonly BoardPage[];
  open(name: string, hash?: string): Promise<Page>;
};

/** Starts a relay, the task board in a separate process, its host with a control server, and Chromium for its pages. */
async function startDemoSite(everyMs: number | null = null): Promise<DemoSite> {
  await using starting = new AsyncDisposableStack();
  const board = starting.use(await startBoard({ env: process.env, log: quiet, everyMs }));
  const relay = starting.use(await startRealRelay({ allowedOrigins: [board.origin] }));
  const token = (user: string): Promise<string> => relay.token(user, 'connect', 'invoke', 'host');
  const proxy = starting.use(await startTcpProxy(relay.url));
  const pages = await board.join({ url: proxy.url, token });
  const parts = starting.move();
  return {
    proxy,
    pages,
    async open(name, hash = '') {
      const page = await browser.newPage();
      parts.defer(() => page.close());
      // The library is built from the present sources, because the relay would serve the last build.
      await page.route('**/clients/site.js', (route) =>
        route.fulfill({ path: join(folder, 'site.js'), headers: { 'access-control-allow-origin': '*' } }),
      );
      await page.goto(`${pages.find((known) => known.name === name)?.url}${hash}`);
      if (name === 'all') return page;
      await page.locator('#status', { hasText: 'live' }).waitFor();
      await page.locator('#t1').waitFor();
      return page;
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

const said = (page: Page, text: string) => page.locator('#said', { hasText: text }).waitFor();

test('the application does what one viewer requests through the relay, and the other viewer sees it', async () => {
  await using demo = await startDemoSite();
  const editor = await demo.open('editor');
  const reader = await demo.open('reader');
  expect(await reader.locator('li.open').count()).toBe(3);
  await editor.locator('#t2 button').click();
  await said(editor, 'Finished: Mend the curtain');
  await Promise.all([editor, reader].map((page) => page.locator('#t2.done').waitFor()));
  expect(await reader.locator('li.open').count()).toBe(2);
});

test('a viewer whose grant names no action is refused with a message, and nothing changes', async () => {
  await using demo = await startDemoSite();
  const reader = await demo.open('reader');
  await reader.locator('#t1 button').click();
  await said(reader, 'Refused: The action is not among those that the site and the grant allow. (site_action_denied)');
  expect(await reader.locator('li.open').count()).toBe(3);
});

test('both viewers act automatically in one page: one finishes tasks, the other is refused', async () => {
  await using demo = await startDemoSite();
  const page = await demo.open('all', '#auto');
  const [editor, reader] = [page.frameLocator('iframe >> nth=0'), page.frameLocator('iframe >> nth=1')];
  await editor.locator('#said', { hasText: 'Finished: Sweep the stage' }).waitFor();
  await reader.locator('#said', { hasText: 'site_action_denied' }).waitFor();
  await reader.locator('#t1.done').waitFor();
});

test('every viewer sees what the application does by itself', async () => {
  await using demo = await startDemoSite(300);
  const pages = [await demo.open('editor'), await demo.open('reader')];
  await Promise.all(pages.map((page) => page.locator('#t6').waitFor()));
});

test('a viewer that lost the relay reconnects by itself, and sees changes that it missed', async () => {
  // Longer than the start of the page, so that not all tasks are there when the relay is lost.
  await using demo = await startDemoSite(2_500);
  const reader = await demo.open('reader');
  demo.proxy.cut();
  await reader.locator('#status', { hasText: /waiting|connecting/ }).waitFor();
  // The application continues without a relay, so no viewer gets an event about this task.
  const seen = await reader.locator('#tasks li').count();
  const tasks = async (): Promise<unknown[]> => (await fetch(demo.pages[0]?.url.replace(/\w+$/, 'tasks') ?? '')).json();
  await eventually(async () => expect((await tasks()).length).toBeGreaterThan(seen));
  expect(await reader.locator('#tasks li').count()).toBe(seen);
  demo.proxy.mend();
  await reader.locator(`#t${seen + 1}`).waitFor();
});

test('the built library is a few kilobytes and needs nothing except a browser', () => {
  const size = built.find(({ file }) => file === 'site.js');
  expect(size?.gzipBytes).toBeGreaterThan(1_000);
  expect(size?.gzipBytes).toBeLessThan(8_000);
});
