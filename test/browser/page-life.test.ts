/** Tests how the built runtime lives in a page of Chromium: hidden, frozen, offline, reloaded and duplicated. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAdmin } from '../../src/clients/admin/index.ts';
import { freePort } from '../kit/free-port.ts';
import { openCallboard } from '../../src/callboard.ts';
import { signToken } from '../../src/http/tokens.ts';
import { startRealRelay, type RealRelay } from '../clients/kit/real-relay.ts';
import { launchKeepingPages } from './kit/chromium.ts';
import { builtClients, startSite, type BuiltClients, type Site } from './kit/client-site.ts';
import { TOKEN_SECONDS } from '../kit/patience.ts';

let built: BuiltClients;
let browser: Browser;

beforeAll(async () => {
  built = await builtClients();
  browser = await launchKeepingPages();
});

afterAll(async () => {
  await browser?.close();
  await built?.[Symbol.asyncDispose]();
});

/** Resolves when the script of the page has run. Its policy allows no `waitForFunction`. */
async function ready(page: Page): Promise<void> {
  await expect.poll(() => page.evaluate('window.startClient !== undefined')).toBe(true);
}

async function open(site: Site): Promise<Page> {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(site.origin);
  await ready(page);
  return page;
}

function startClient(page: Page, link: string, token: string): Promise<unknown> {
  return page.evaluate(`startClient(${JSON.stringify(link)}, ${JSON.stringify(token)})`);
}

/** Resolves when the client of the page has come to this state, after `from` states. */
async function state(page: Page, word: string, from = 0): Promise<void> {
  const states = async (): Promise<unknown[]> => (await page.evaluate<unknown[]>('window.states')).slice(from);
  await expect.poll(states).toContain(word);
}

/** Resolves when the relay shows the client with this status. */
async function shownAs(relay: RealRelay, status: string): Promise<void> {
  const admin = createAdmin({ url: relay.url, token: relay.admin });
  await expect.poll(async () => (await admin.connections()).nodes.map((row) => row.status)).toEqual([status]);
}

test('a page in the back-forward cache is no client, and is one again when the user comes back', async () => {
  await using site = await startSite(built, 'life-page');
  await using relay = await startRealRelay({ allowedOrigins: [site.origin] });
  const page = await open(site);
  await startClient(page, relay.link, await relay.token('alice', 'connect'));
  await state(page, 'connected');
  await page.goto(`${site.origin}/?another`);
  await shownAs(relay, 'DISCONNECTED');
  await page.goBack({ waitUntil: 'commit' });
  await shownAs(relay, 'CONNECTED');
  // The same page goes on: it was in the cache, and its script was not run again.
  expect(await page.evaluate('window.states')).toEqual([
    'connecting',
    'connected',
    'page_hidden',
    'connecting',
    'connected',
  ]);
  await page.context().close();
});

test('a frozen page is no client, and is one again when it resumes', async () => {
  await using site = await startSite(built, 'life-page');
  await using relay = await startRealRelay({ allowedOrigins: [site.origin] });
  const page = await open(site);
  await startClient(page, relay.link, await relay.token('alice', 'connect'));
  await state(page, 'connected');
  // A headless browser freezes no page that is open, so the page gets the events alone.
  await page.evaluate('document.dispatchEvent(new Event("freeze"))');
  await shownAs(relay, 'DISCONNECTED');
  await page.evaluate('document.dispatchEvent(new Event("resume"))');
  await shownAs(relay, 'CONNECTED');
  await page.context().close();
});

test('a page that is online again, or visible again, tries at once', async () => {
  await using site = await startSite(built, 'life-page');
  const secret = 'a secret of more than thirty-two bytes';
  const token = await signToken({
    secret,
    user: 'alice',
    scopes: ['connect'],
    ttlSeconds: TOKEN_SECONDS,
    now: Date.now(),
  });
  const port = await freePort();
  const page = await open(site);
  await startClient(page, `ws://127.0.0.1:${port}/connect`, token);
  // Its timers do not fire, so without an event it would never try again.
  await state(page, 'connection_lost');
  const config = { auth: { secret, adminTokens: ['an administrator'] }, allowedOrigins: [site.origin] };
  const relay = await openCallboard({ config });
  await relay.listen({ port });
  await page.context().setOffline(true);
  await page.context().setOffline(false);
  await state(page, 'connected');
  await relay.close();
  const { length } = await page.evaluate<unknown[]>('window.states');
  await expect.poll(() => page.evaluate('window.states.at(-1)')).not.toBe('connected');
  const again = await openCallboard({ config });
  await again.listen({ port });
  await page.evaluate('document.dispatchEvent(new Event("visibilitychange"))');
  await state(page, 'connected', length);
  await again.close();
  await page.context().close();
});

test('the id of a tab survives a reload, and a duplicated tab has another one', async () => {
  await using site = await startSite(built, 'life-page');
  const page = await open(site);
  const id = await page.evaluate('window.clientId');
  await page.reload();
  await ready(page);
  expect(await page.evaluate('window.clientId')).toBe(id);
  // A window that a page opens begins with a copy of its session storage, as a duplicated tab does.
  const opened = page.context().waitForEvent('page');
  await page.evaluate('void window.open(location.href)');
  const other = await opened;
  await ready(other);
  expect(await other.evaluate('window.clientId')).not.toBe(id);
  await page.reload();
  await ready(page);
  expect(await page.evaluate('window.clientId')).toBe(id);
  await page.context().close();
});
