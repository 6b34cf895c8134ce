/** Tests the built client libraries in a browser page, with a real relay. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Browser, Page } from 'playwright-core';
import { createHttpCaller } from '../../src/clients/caller/index.ts';
import { startRealRelay } from '../clients/kit/real-relay.ts';
import { launchChromium } from './kit/chromium.ts';
import { builtClients, startSite, type BuiltClients, type Site } from './kit/client-site.ts';

let built: BuiltClients;
let browser: Browser;

beforeAll(async () => {
  built = await builtClients();
  browser = await launchChromium();
});

afterAll(async () => {
  await browser?.close();
  await built?.[Symbol.asyncDispose]();
});

async function open(site: Site): Promise<Page & AsyncDisposable> {
  const page = await browser.newPage();
  await page.goto(site.origin);
  await page.waitForFunction('window.startClient !== undefined');
  return Object.assign(page, { [Symbol.asyncDispose]: () => page.close() });
}

/** Calls a function in the page. */
function call(page: Page, name: 'startClient' | 'setTitle', ...args: readonly string[]): Promise<unknown> {
  return page.evaluate(`${name}(${args.map((arg) => JSON.stringify(arg)).join(', ')})`);
}

test('a page runs the built runtime: it connects to a relay, checks arguments and answers commands', async () => {
  await using site = await startSite(built, 'client-page');
  await using relay = await startRealRelay({ allowedOrigins: [site.origin] });
  await using page = await open(site);
  expect(await call(page, 'startClient', relay.link, await relay.token('alice', 'connect'))).toBe('connected');
  await using caller = createHttpCaller({ url: relay.url, token: await relay.token('alice', 'invoke') });
  const target = { userId: 'alice', clientId: 'tab', action: 'title.set' };
  const invocation = await caller.invoke(target, { text: 'hello' });
  expect(invocation).toMatchObject({ outcome: 'completed', result: { was: 'client', is: 'hello' } });
  expect(await page.title()).toBe('hello');
  const refused = await caller.invoke(target, { text: 'far too long' });
  expect(refused).toMatchObject({ outcome: 'failed', error: { code: 'arguments_invalid' } });
  expect(await page.title()).toBe('hello');
});

test('a page of an origin that is not allowed gets no link', async () => {
  await using site = await startSite(built, 'client-page');
  await using relay = await startRealRelay({ allowedOrigins: ['https://elsewhere.test'] });
  await using page = await open(site);
  expect(await call(page, 'startClient', relay.link, await relay.token('alice', 'connect'))).toBe('disconnected');
});

test('a page invokes with the built caller over a link', async () => {
  await using site = await startSite(built, 'client-page');
  await using relay = await startRealRelay({ allowedOrigins: [site.origin] });
  await using tab = await open(site);
  await call(tab, 'startClient', relay.link, await relay.token('alice', 'connect'));
  await using page = await open(site);
  const token = await relay.token('alice', 'invoke');
  expect(await call(page, 'setTitle', relay.link, token, 'from afar')).toBe('completed');
  expect(await tab.title()).toBe('from afar');
});

test('the built libraries need nothing except a browser, and stay small', () => {
  const sizes = Object.fromEntries(built.files.map(({ file, gzipBytes }) => [file, gzipBytes]));
  expect(sizes['runtime.js']).toBeLessThanOrEqual(20_000);
  expect(sizes['caller.js']).toBeLessThanOrEqual(9_200);
  expect(sizes['site.js']).toBeLessThanOrEqual(5_000);
});
