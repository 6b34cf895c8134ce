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

type Sleep = { readonly stop: () => Promise<void>; readonly go: () => Promise<void> };

/** Freezes the page, as a browser freezes one in the background. */
async function frozen(page: Page): Promise<Sleep> {
  const devtools = await page.context().newCDPSession(page);
  const set = async (state: 'frozen' | 'active'): Promise<void> =>
    void (await devtools.send('Page.setWebLifecycleState', { state }));
  return { stop: () => set('frozen'), go: () => set('active') };
}

/** Stops the processes that run the pages of this test's browser, as a machine that sleeps does. */
async function stopped(): Promise<Sleep> {
  const devtools = await browser.newBrowserCDPSession();
  const { processInfo } = await devtools.send('SystemInfo.getProcessInfo');
  const renderers = processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => id);
  const signal = async (name: 'SIGSTOP' | 'SIGCONT'): Promise<void> => {
    for (const id of renderers) process.kill(id, name);
  };
  return { stop: () => signal('SIGSTOP'), go: () => signal('SIGCONT') };
}

test.each([
  ['frozen by its browser', frozen],
  ['stopped with its process', stopped],
])('a page that was %s runs no command after its deadline', async (_, sleepOf) => {
  await using site = await startSite(built, 'client-page');
  await using relay = await startRealRelay({ allowedOrigins: [site.origin] });
  await using page = await open(site);
  await call(page, 'startClient', relay.link, await relay.token('alice', 'connect'));
  await using caller = createHttpCaller({ url: relay.url, token: await relay.token('alice', 'invoke') });
  const target = { userId: 'alice', clientId: 'tab', action: 'title.set' };
  const { stop, go } = await sleepOf(page);
  await stop();
  const within = { respondWithinMs: 1_000 };
  let ended: string | null = null;
  try {
    ({ outcome: ended } = await caller.invoke(target, { text: 'asleep' }, within));
    // The page sleeps on for another second, so that no small delay decides. These params are refused in any case.
    await caller.invoke(target, { text: 'far too long' }, within);
  } finally {
    await go();
  }
  // A browser may let a frozen page handle messages: then the command ran in time, and its caller knows.
  expect(ended === 'completed' || ended === 'outcome_unknown').toBe(true);
  const awake = await caller.invoke(target, { text: 'awake' });
  expect(awake).toMatchObject({ result: { was: ended === 'completed' ? 'asleep' : 'client', is: 'awake' } });
});

test('the built libraries need nothing except a browser, and stay small', () => {
  const sizes = Object.fromEntries(built.files.map(({ file, gzipBytes }) => [file, gzipBytes]));
  expect(sizes['runtime.js']).toBeLessThanOrEqual(20_850);
  expect(sizes['caller.js']).toBeLessThanOrEqual(12_300);
  expect(sizes['site.js']).toBeLessThanOrEqual(7_300);
});
