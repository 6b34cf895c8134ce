/**
 * Tests the console over time: sign-in, expiry, filters with back and forward, live streams, other users, and many
 * tabs.
 */
import type { Browser, Page, Request } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { signTicket } from '../../src/http/sign-in-tickets.ts';
import { isRecord } from '../../src/core/json.ts';
import { startTcpProxy } from '../kit/tcp-proxy.ts';
import { launchChromium } from './kit/chromium.ts';
import { expectClean, goTo, openConsole, type ConsolePage } from './kit/console-page.ts';
import { startConsoleRelay, startDoomedClient, type ConsoleRelay } from './kit/console-relay.ts';
import { tabAndType } from './kit/keyboard.ts';

let browser: Browser;
let bench: ConsoleRelay;
let commandId: string;
beforeAll(async () => {
  [browser, bench] = await Promise.all([launchChromium(), startConsoleRelay()]);
  commandId = (await call('before the page')).handle.commandId;
});
afterAll(async () => {
  await browser?.close();
  await bench?.[Symbol.asyncDispose]();
});

const address = (path: string): string => `${bench.relay.url}/console/${path}`;
const call = (text: string) =>
  bench.caller.invoke({ userId: 'alice', clientId: 'kiosk-1', action: 'notes.add' }, { text });

describe('signing in', () => {
  it('a pasted token signs in and keeps the deep link; a wrong one is explained; it stays in session storage', async () => {
    const opened = await openConsole(browser, address('clients/alice/kiosk-1?x=1'));
    const { page } = opened;
    await tabAndType(page.getByLabel('Token'), 'wrong');
    await page.keyboard.press('Enter');
    await page.getByText('does not accept this token').waitFor();
    await tabAndType(page.getByLabel('Token'), bench.relay.admin);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'kiosk-1' }).waitFor();
    expect(page.url()).toBe(address('clients/alice/kiosk-1?x=1'));
    const kept = await page.evaluate(() => [localStorage.getItem('callboard:token'), document.cookie]);
    expect(kept).toEqual([null, '']);
    await page.reload();
    await page.getByRole('heading', { name: 'kiosk-1' }).waitFor();
    expectClean(opened);
    await page.context().close();
  });

  it('the link of a ticket signs in once, and leaves the URL', async () => {
    const ticket = await signTicket({ secret: bench.relay.secret, name: 'lena', now: Date.now() });
    const { page } = await openConsole(browser, `${address('nodes')}#code=${ticket}`);
    await page.getByText('Reporting').first().waitFor();
    await page.getByText('lena').waitFor();
    expect(page.url()).toBe(address('nodes'));
    await page.context().close();
    const again = await openConsole(browser, `${address('nodes')}#code=${ticket}`);
    await again.page.getByText('used already').waitFor();
    await again.page.context().close();
  });

  it('an expired token asks again in place: page and filters stay', async () => {
    const short = await bench.relay.token('alice', 'connect', 'invoke');
    const { page } = await openConsole(browser, address('clients?status=connected'), { token: short });
    await page.getByRole('link', { name: 'alice / kiosk-1' }).waitFor();
    // Typed before the token expires, because any request of the page may bring the form, which takes the focus.
    await page.keyboard.press('/');
    await page.keyboard.type('node:x');
    await page.route('**/graphql', (route) =>
      route.fulfill({
        status: 401,
        json: { errors: [{ message: 'The token has expired.', extensions: { code: 'unauthenticated' } }] },
      }),
    );
    await page.keyboard.press('Enter');
    await page.getByText('Sign in again to go on').waitFor();
    await page.locator('input[name="token"]:focus').waitFor();
    await page.unroute('**/graphql');
    await page.keyboard.type(bench.relay.admin);
    await page.keyboard.press('Enter');
    await page.getByText('No client matches').waitFor();
    expect(new URL(page.url()).search).toBe('?status=connected&node=x');
    await page.context().close();
  });

  it('a user sees only its own pages, and nothing of others by their addresses', async () => {
    const token = await bench.relay.token('bob', 'connect', 'invoke');
    const { page } = await openConsole(browser, address('nodes'), { token });
    await page.getByText('Nodes are for administrators').waitFor();
    expect(await page.locator('.rail').getByText('Nodes').count()).toBe(0);
    for (const [path, answer] of [
      ['clients/alice/kiosk-1', 'This client is not connected'],
      [`calls/alice/kiosk-1/${commandId}`, 'No record of this command'],
      ['users/alice', 'may see only what is yours'],
      ['history?stream=alice%2Fclients%2Fkiosk-1', 'There is no such thing, or it is not yours'],
    ] as const) {
      await goTo(page, path);
      await page.locator('#main').getByText(answer).waitFor();
      expect([path, await page.locator('#main').getByText('notes.add').count()]).toEqual([path, 0]);
    }
    await page.context().close();
  });
});

describe('one tab', () => {
  let opened: ConsolePage;
  let page: Page;
  beforeAll(async () => {
    opened = await openConsole(browser, address('nowhere'), { token: bench.relay.admin });
    ({ page } = opened);
  });
  afterEach(() => expectClean(opened));

  it('keeps filters in the URL, and back and forward restore them', async () => {
    await page.goto(address('clients'));
    await page.getByRole('link', { name: 'alice / kiosk-1' }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('status:stale');
    await page.keyboard.press('Enter');
    await page.getByText('No client matches').waitFor();
    await page.getByRole('button', { name: 'Remove status stale' }).waitFor();
    await page.goBack();
    await page.getByRole('link', { name: 'alice / kiosk-1' }).waitFor();
    await page.goForward();
    await page.getByText('No client matches').waitFor();
    await page.getByLabel('Filter clients').fill('colour:red');
    await page.keyboard.press('Enter');
    await page.getByText('There is no filter “colour”').waitFor();
  });

  it('zooms into a span by mouse and by keyboard; the URL keeps it over reload, back and forward', async () => {
    await page.goto(address(''));
    const plot = page.getByRole('img', { name: 'Admitted' });
    await plot.scrollIntoViewIfNeeded();
    const box = await plot.boundingBox();
    if (!box) throw new Error('the plot has no place');
    const [y, quarter] = [box.y + box.height / 2, box.width / 4];
    await page.mouse.move(box.x + quarter, y);
    await page.mouse.down();
    await page.mouse.move(box.x + 3 * quarter, y, { steps: 3 });
    await page.mouse.up();
    const chosen = page.getByRole('navigation', { name: 'Window' }).locator('[aria-current]');
    await chosen.getByText(/^..:..:.. to ..:..:.. UTC$/).waitFor();
    const [from = NaN, to = NaN] = spanOf(page).map((end) => Date.parse(end ?? ''));
    // The pointer was dragged over half of 15 minutes. Either end may be a few seconds off.
    expect(Math.abs(to - from - 450_000)).toBeLessThan(15_000);
    const dragged = page.url();
    await page.reload();
    await chosen.getByText(' to ').waitFor();
    expect(page.url()).toBe(dragged);

    await page.keyboard.press('z');
    await page.getByLabel('From, UTC').fill('nonsense');
    await page.keyboard.press('Enter');
    await page.getByText('“nonsense” is not a time').waitFor();
    const typed = [-3_600_000, -1_800_000].map((ago) => `${new Date(Date.now() + ago).toISOString().slice(0, 19)}Z`);
    await page.getByLabel('From, UTC').fill(typed[0] ?? '');
    await page.getByLabel('To, UTC').fill(typed[1] ?? '');
    await page.keyboard.press('Enter');
    await page.locator('dialog').waitFor({ state: 'detached' });
    await expect.poll(() => spanOf(page)).toEqual(typed);
    await page.keyboard.press('[');
    await expect.poll(() => spanOf(page).map((end) => Date.parse(end ?? ''))).toSatisfy(isQuarterHour);
    await page.goBack();
    await expect.poll(() => spanOf(page)).toEqual(typed);
    await chosen.getByText(typed[0]?.slice(11, 19) ?? '').waitFor();
    await page.goBack();
    expect(page.url()).toBe(dragged);
    await page.goForward();
    await chosen.getByText(typed[0]?.slice(11, 19) ?? '').waitFor();
  });

  it.each([
    ['from=yesterday&to=14%3A00', '“yesterday” is not a time.'],
    ['from=2026-11-21T14%3A00', 'only one end of a span.'],
    ['from=2020-01-01T00%3A00&to=2020-01-01T01%3A00', 'the span is older.'],
    ['window=fortnight', 'There is no window “fortnight”.'],
  ])('says what is wrong with ?%s, and shows the last 15 minutes', async (query, sentence) => {
    await page.goto(address(`?${query}`));
    await page.getByText(sentence).waitFor();
    await page.getByText('The page shows the last 15 min.').waitFor();
    const window = page.getByRole('navigation', { name: 'Window' });
    expect(await window.locator('[aria-current]').innerText()).toBe('Last 15 min');
    await page.getByRole('img', { name: 'Admitted' }).waitFor();
  });

  it('closes its stream while it is hidden or paused, and opens it again', async () => {
    await page.goto(address('clients'));
    const live = page.getByText('Live', { exact: true });
    await live.waitFor();
    const closed = () => page.waitForEvent('requestfailed', (request) => request.url().endsWith('/graphql/stream'));
    const hide = (hidden: boolean) =>
      page.evaluate((value) => {
        Object.defineProperty(document, 'hidden', { value, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
      }, hidden);
    await Promise.all([closed(), hide(true)]);
    await hide(false);
    await live.waitFor();
    await Promise.all([closed(), page.keyboard.press('.')]);
    await page.getByText('Paused', { exact: true }).waitFor();
    await page.keyboard.press('.');
    await live.waitFor();
  });
});

/** Returns the start and the end of the time span in the page's URL. */
function spanOf(page: Page): readonly (string | null)[] {
  const { searchParams } = new URL(page.url());
  return [searchParams.get('from'), searchParams.get('to')];
}

const isQuarterHour = ([from = NaN, to = NaN]: readonly number[]): boolean => to - from === 900_000;

/**
 * Counts the page's requests whose GraphQL document contains this text. `begun` counts all of them, and `open` those
 * without an answer yet.
 */
function readsOf(page: Page, text: string): { readonly begun: number; readonly open: number } {
  const reads = { begun: 0, open: 0 };
  const count = (change: (of: typeof reads) => void) => (request: Request) => {
    const body: unknown = request.postDataJSON();
    if (isRecord(body) && String(body['query']).includes(text)) change(reads);
  };
  page.on(
    'request',
    count((of) => ((of.begun += 1), (of.open += 1))),
  );
  const ended = count((of) => void (of.open -= 1));
  page.on('requestfinished', ended);
  page.on('requestfailed', ended);
  return reads;
}

/**
 * Opens the console at a URL and goes to a page of it. Resolves once the stream of the page is up and the page has sent
 * its query again, which it does when the stream opens. What happened before that counts as read.
 */
async function openLive(url: string, path: string, query: string): Promise<Page> {
  const { page } = await openConsole(browser, url, { token: bench.relay.admin });
  const reads = readsOf(page, query);
  await goTo(page, path);
  await page.getByText('Live', { exact: true }).waitFor();
  await expect.poll(() => ({ again: reads.begun > 1, open: reads.open })).toEqual({ again: true, open: 0 });
  return page;
}

it('new calls wait behind a bar, and a stream that breaks comes back without a lost row', async () => {
  await using proxy = await startTcpProxy(bench.relay.url);
  const page = await openLive(`${proxy.url}/console/clients`, 'calls', 'query Calls(');
  const rows = page.locator('tbody tr');
  await rows.first().waitFor();
  const before = await rows.count();
  await call('one');
  await page.getByRole('button', { name: 'Show 1 new call' }).click();
  await expect.poll(() => rows.count()).toBe(before + 1);
  proxy.cut();
  await page.getByText(/behind|Live updates stopped|has not answered/).waitFor();
  await call('two');
  proxy.mend();
  await expect.poll(() => rows.count()).toBe(before + 2);
  await page.context().close();
});

it('a call that is admitted while the list is read again is not lost', async () => {
  const page = await openLive(address('clients'), 'calls', 'query Calls(');
  const rows = page.locator('tbody tr');
  const before = await rows.count();
  await call('before the request');
  const isRead = Promise.withResolvers<void>();
  const isAdmitted = Promise.withResolvers<void>();
  // The relay has read the list before the second call, and its answer arrives after the event of that call.
  await page.route('**/graphql', async (route) => {
    if (!String(route.request().postData()).includes('query Calls(')) return route.continue();
    const response = await route.fetch();
    isRead.resolve();
    await isAdmitted.promise;
    return route.fulfill({ response });
  });
  await page.getByRole('button', { name: 'Show 1 new call' }).click();
  await isRead.promise;
  await call('while the answer is awaited');
  await page.getByRole('button', { name: 'Show 2 new calls' }).waitFor();
  isAdmitted.resolve();
  await expect.poll(() => rows.count()).toBe(before + 1);
  await page.getByRole('button', { name: 'Show 1 new call' }).click();
  await expect.poll(() => rows.count()).toBe(before + 2);
  await page.context().close();
});

it('a list whose filter changes while its answer is awaited shows no change of the old filter', async () => {
  const page = await openLive(address('clients'), 'calls?follow=on', 'query Calls(');
  const rows = page.locator('tbody tr');
  await rows.first().waitFor();
  const before = await rows.count();
  const isHeld = Promise.withResolvers<void>();
  // The next request without the new filter gets no answer.
  await page.route('**/graphql', async (route) => {
    const body = String(route.request().postData());
    if (body.includes('query Calls(') && !body.includes('"nobody"')) isHeld.resolve();
    else await route.continue();
  });
  // The stream of the new filter does not open, because the list would then be read once more.
  await page.route('**/graphql/stream', async (route) => {
    if (!String(route.request().postData()).includes('"nobody"')) await route.continue();
  });
  // The list is read again when its stream opens again.
  await page.keyboard.press('.');
  await page.getByText('Paused', { exact: true }).waitFor();
  await page.keyboard.press('.');
  await isHeld.promise;
  await call('of the old filter');
  await expect.poll(() => rows.count()).toBe(before + 1);
  await goTo(page, 'calls?follow=on&user=nobody');
  await page.getByText('No call matches').waitFor();
  await page.context().close();
});

it('a page that cannot load the library of streams reads its list again and again', async () => {
  const { page } = await openConsole(browser, address('nowhere'), { token: bench.relay.admin });
  await page.route('**/assets/stream-*.js', (route) => route.abort());
  await page.goto(address('calls'));
  const rows = page.locator('tbody tr');
  await rows.first().waitFor();
  const before = await rows.count();
  await page.getByText('Live, every 3 s', { exact: true }).waitFor();
  await call('without a stream');
  await expect.poll(() => rows.count()).toBe(before + 1);
  await page.context().close();
});

it('sends a request again that a pause interrupted, so that the change before it is shown', async () => {
  const page = await openLive(address('users'), 'users/alice', 'query UserPage(');
  const isUserPage = (request: Request): boolean => String(request.postData()).includes('query UserPage(');
  let held = 0;
  // The first request after the change gets no answer.
  await page.route('**/graphql', async (route) => {
    if (!isUserPage(route.request()) || held++ > 0) await route.continue();
  });
  const [, client] = await Promise.all([page.waitForRequest(isUserPage), startDoomedClient(bench.relay)]);
  await using _client = client;
  await page.keyboard.press('.');
  await page.getByText('Paused', { exact: true }).waitFor();
  await page.getByRole('link', { name: 'kiosk-2' }).waitFor();
  await page.context().close();
});

it('seven tabs over HTTP/1.1 all answer', async () => {
  const context = await browser.newContext();
  await context.addInitScript((given) => sessionStorage.setItem('callboard:token', given), bench.relay.admin);
  const tabs = await Promise.all(Array.from({ length: 7 }, () => context.newPage()));
  await Promise.all(
    tabs.map(async (page) => {
      await page.goto(address('clients'));
      await page.getByRole('link', { name: 'alice / kiosk-1' }).waitFor();
      await page.getByText(/^Live/).first().waitFor();
    }),
  );
  await context.close();
});
