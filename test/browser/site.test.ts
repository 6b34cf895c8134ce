import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Browser, Page } from 'playwright-core';
import { buildClients, type Built } from '../../src/clients/build.ts';
import { startBoard, type Board, type BoardPage } from '../../src/demo/board/start.ts';
import { startRealRelay, type RealRelay } from '../clients/real-relay.ts';
import { launchChromium } from './chromium.ts';

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

type Stage = AsyncDisposable & {
  readonly relay: RealRelay;
  readonly board: Board;
  readonly pages: readonly BoardPage[];
  open(name: string): Promise<Page>;
};

/** A relay, the board in a process of its own, its host with a control server between them, and pages in Chromium. */
async function startStage(everyMs: number | null = null): Promise<Stage> {
  await using starting = new AsyncDisposableStack();
  const board = starting.use(await startBoard({ env: process.env, log: quiet, everyMs }));
  const relay = starting.use(await startRealRelay({ allowedOrigins: [board.origin] }));
  const token = (user: string): Promise<string> => relay.token(user, 'connect', 'invoke', 'host');
  const pages = await board.join({ url: relay.url, token });
  const parts = starting.move();
  return {
    relay,
    board,
    pages,
    async open(name) {
      const page = await browser.newPage();
      parts.defer(() => page.close());
      // The library as it is built now; the relay serves the one that was built last.
      await page.route('**/clients/site.js', (route) =>
        route.fulfill({ path: join(folder, 'site.js'), headers: { 'access-control-allow-origin': '*' } }),
      );
      await page.goto(pages.find((known) => known.name === name)?.url ?? '');
      await page.locator('#status', { hasText: 'live' }).waitFor();
      await page.locator('#t1').waitFor();
      return page;
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

const said = (page: Page, text: string) => page.locator('#said', { hasText: text }).waitFor();

test('what one viewer does through the relay, the application does, and the other viewer sees', async () => {
  await using stage = await startStage();
  const editor = await stage.open('editor');
  const reader = await stage.open('reader');
  expect(await reader.locator('li.open').count()).toBe(3);
  await editor.locator('#t2 button').click();
  await said(editor, 'Finished: Mend the curtain');
  await Promise.all([editor, reader].map((page) => page.locator('#t2.done').waitFor()));
  expect(await reader.locator('li.open').count()).toBe(2);
});

test('a viewer whose grant names no action is refused, in words, and nothing changes', async () => {
  await using stage = await startStage();
  const reader = await stage.open('reader');
  await reader.locator('#t1 button').click();
  await said(reader, 'Refused: The action is not among those that the site and the grant allow. (site_action_denied)');
  expect(await reader.locator('li.open').count()).toBe(3);
});

test('what the application does by itself, every viewer sees', async () => {
  await using stage = await startStage(300);
  const pages = [await stage.open('editor'), await stage.open('reader')];
  await Promise.all(pages.map((page) => page.locator('#t6').waitFor()));
});

test('a viewer that lost the relay comes back and sees what it missed', async () => {
  await using stage = await startStage();
  const editor = await stage.open('editor');
  const reader = await stage.open('reader');
  await reader.context().setOffline(true);
  await reader.locator('#status', { hasText: /waiting|connecting/ }).waitFor();
  await editor.locator('#t3 button').click();
  await said(editor, 'Finished: Call the half');
  expect(await reader.locator('#t3.done').count()).toBe(0);
  await reader.context().setOffline(false);
  await reader.locator('#t3.done').waitFor();
});

test('the built library is a few kilobytes and needs nothing but a browser', () => {
  const size = built.find(({ file }) => file === 'site.js');
  expect(size?.gzipBytes).toBeGreaterThan(1_000);
  expect(size?.gzipBytes).toBeLessThan(8_000);
});
