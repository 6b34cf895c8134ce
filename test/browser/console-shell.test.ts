/**
 * Tests the frame of the console: a second tab, the reader's place, the zone of times, and the badge of the title; and
 * acts that no other file tests: what is copied of a call, the audit, and acts on many objects.
 */
import { text as textOf } from 'node:stream/consumers';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isRecord } from '../../src/core/json.ts';
import { launchChromium } from './kit/chromium.ts';
import { axeViolations, goTo, openConsole } from './kit/console-page.ts';
import { startConsoleRelay, startCrowd, type ConsoleRelay } from './kit/console-relay.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';

let browser: Browser;
let bench: ConsoleRelay;
let crowd: AsyncDisposable;
let page: Page;
beforeAll(async () => {
  const settings = { traceUrl: 'https://traces.example/trace/{traceId}' };
  [browser, bench] = await Promise.all([launchChromium(), startConsoleRelay(settings)]);
  crowd = await startCrowd(bench);
  ({ page } = await openConsole(browser, address('nowhere'), { token: bench.relay.admin }));
  await main().locator('h1').waitFor();
});
afterAll(async () => {
  await browser?.close();
  await crowd?.[Symbol.asyncDispose]();
  await bench?.[Symbol.asyncDispose]();
});

const address = (path: string): string => `${bench.relay.url}/console/${path}`;
const main = () => page.locator('#main');

/** Expects that axe finds no fault in the page, in either theme. */
async function expectAccessible(): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    expect([colorScheme, await axeViolations(page, colorScheme)]).toEqual([colorScheme, []]);
  }
}

/** Keeps what the page copies from now on. Returns a function that reads the last text. */
async function watchClipboard(): Promise<() => Promise<string>> {
  await page.evaluate(() => {
    Object.defineProperty(navigator, 'clipboard', {
      value: { writeText: async (text: string) => void Reflect.set(window, 'copied', text) },
      configurable: true,
    });
  });
  return () => page.evaluate(() => String(Reflect.get(window, 'copied')));
}

it('renders its first page after the task that ends the loading of the document', async () => {
  const context = await browser.newContext({ reducedMotion: 'reduce' });
  await context.addInitScript((token) => {
    sessionStorage.setItem('callboard:token', token);
    addEventListener('DOMContentLoaded', () => {
      Reflect.set(window, 'shownWhenLoaded', document.querySelectorAll('#root *').length);
    });
  }, bench.relay.admin);
  const tab = await context.newPage();
  await tab.goto(address(''));
  await tab.locator('#main h1').waitFor();
  expect(await tab.evaluate(() => Reflect.get(window, 'shownWhenLoaded'))).toBe(0);
  await context.close();
});

describe('a second tab', () => {
  const form = (tab: Page) => tab.getByLabel('Token');

  async function signIn(tab: Page, token: string, at = address('clients')): Promise<void> {
    await tab.goto(at);
    await form(tab).fill(token);
    await tab.keyboard.press('Enter');
    await tab.locator('#main h1').waitFor();
  }

  async function newContext(): Promise<BrowserContext> {
    return browser.newContext({ reducedMotion: 'reduce' });
  }

  it('is signed in by the first one, and nothing is kept beyond the tabs', async () => {
    const context = await newContext();
    const [first, second] = [await context.newPage(), await context.newPage()];
    await signIn(first, bench.relay.admin);
    await second.goto(address('clients/alice/kiosk-1'));
    await second.getByRole('heading', { name: 'kiosk-1' }).waitFor();
    const kept = await second.evaluate(() => [JSON.stringify(localStorage), document.cookie]);
    expect(kept).toEqual(['{}', '']);
    await context.close();
  });

  it('takes the token of the tab that was used last', async () => {
    const context = await newContext();
    const [ofAlice, ofAdmin] = [await context.newPage(), await context.newPage()];
    await Promise.all([ofAlice, ofAdmin].map((tab) => tab.goto(address('clients'))));
    await form(ofAlice).fill(await bench.relay.token('alice', 'invoke'));
    await ofAlice.keyboard.press('Enter');
    await ofAlice.getByText('User. Signed in').waitFor();
    await form(ofAdmin).fill(bench.relay.admin);
    await ofAdmin.keyboard.press('Enter');
    await ofAdmin.getByText('Administrator. Signed in').waitFor();
    const third = await context.newPage();
    await third.goto(address('clients'));
    await third.getByText('Administrator. Signed in').waitFor();
    await ofAlice.keyboard.press('Shift');
    const fourth = await context.newPage();
    await fourth.goto(address('clients'));
    await fourth.getByText('User. Signed in').waitFor();
    await context.close();
  });

  it('is signed out with the first one, and stays so', async () => {
    const context = await newContext();
    const [first, second] = [await context.newPage(), await context.newPage()];
    await signIn(first, bench.relay.admin);
    await second.goto(address('clients'));
    await second.locator('#main h1').waitFor();
    await first.getByRole('button', { name: 'Sign out' }).click();
    await form(second).waitFor();
    const third = await context.newPage();
    await signIn(third, bench.relay.admin);
    await second.reload();
    await form(second).waitFor();
    await context.close();
  });

  it('signs in itself where the relay has a base path, because other programs of the origin could listen', async () => {
    await using other = await startConsoleRelay({ basePath: '/relay' });
    const context = await newContext();
    const at = `${other.relay.url}/console/clients`;
    const [first, second] = [await context.newPage(), await context.newPage()];
    await signIn(first, other.relay.admin, at);
    await second.goto(at);
    await form(second).waitFor();
    await context.close();
  });
});

describe('the place of the reader', () => {
  const hasFocus = (selector: string) =>
    page.waitForFunction((wanted) => document.activeElement?.matches(wanted) ?? false, selector);

  it('is restored on Back: scroll position and focus', async () => {
    await page.setViewportSize({ width: 1280, height: 700 });
    await goTo(page, 'clients');
    const link = main().getByRole('link', { name: 'shop / till-30' });
    await link.waitFor();
    await link.scrollIntoViewIfNeeded();
    const before = await page.evaluate(() => scrollY);
    expect(before).toBeGreaterThan(200);
    await link.click();
    await main().getByRole('heading', { name: 'till-30' }).waitFor();
    expect(await page.evaluate(() => scrollY)).toBe(0);
    await hasFocus('#main');
    await page.goBack();
    await link.waitFor();
    await expect.poll(() => page.evaluate(() => scrollY)).toBe(before);
    await hasFocus('a[href$="/clients/shop/till-30"]');
    await page.goForward();
    await main().getByRole('heading', { name: 'till-30' }).waitFor();
    await page.goBack();
    await expect.poll(() => page.evaluate(() => scrollY)).toBe(before);
    await page.reload();
    await expect.poll(() => page.evaluate(() => scrollY)).toBe(before);
  });

  it('moves into a page that a key opened, which a live region names', async () => {
    await page.keyboard.press('g');
    await page.keyboard.press('y');
    await main().getByRole('heading', { name: 'Limits' }).waitFor();
    await hasFocus('#main');
    await expect.poll(() => page.locator('.app > [aria-live]').innerText()).toBe('Page Limits');
    await expect.poll(() => page.title()).toBe('Limits · Callboard');
  });

  it('stays on a filter that was written', async () => {
    await goTo(page, 'clients');
    await main().getByLabel('Filter clients').fill('status:connected');
    await page.keyboard.press('Enter');
    await main().getByRole('button', { name: 'Remove status connected' }).waitFor();
    await hasFocus('input[name="filter"]');
  });
});

it('the search box has the same place on every page', async () => {
  const places = new Set<number | undefined>();
  for (const name of ['Overview', 'Calls', 'Limits', 'Nodes', 'Audit']) {
    await page.locator('.rail').getByText(name, { exact: true }).click();
    await main().getByRole('heading', { level: 1, name, exact: true }).waitFor();
    places.add((await page.locator('.goto').boundingBox())?.x);
  }
  expect(places.size).toBe(1);
});

it('the page of a user has its calls, and the id of the user in no row', async () => {
  await goTo(page, 'users/shop');
  const calls = main().getByRole('table', { name: 'Time line of this user' });
  await calls.getByRole('link', { name: 'sum.show' }).first().waitFor();
  await main()
    .getByRole('table', { name: 'Clients of this user' })
    .getByRole('link', { name: 'till-1', exact: true })
    .waitFor();
  expect(await main().locator('tbody .who-of').count()).toBe(0);
  await main().getByRole('link', { name: 'Acts', exact: true }).click();
  await calls.getByRole('link', { name: 'sum.show' }).waitFor({ state: 'detached' });
});

describe('a row', () => {
  it('opens its page by a click beside its links, in a tab of its own with Ctrl', async () => {
    await goTo(page, 'clients?user=alice');
    const row = main().locator('tbody tr', { hasText: 'kiosk-1' });
    const [opened] = await Promise.all([
      page.context().waitForEvent('page'),
      row.getByText('Connected').click({ modifiers: ['ControlOrMeta'] }),
    ]);
    await opened.getByRole('heading', { name: 'kiosk-1' }).waitFor();
    await opened.close();
    await row.getByText('Connected').click();
    await main().getByRole('heading', { name: 'kiosk-1' }).waitFor();
  });
});

describe('times', () => {
  it('are shown in UTC, or in the zone of the browser, and both as their title', async () => {
    const context = await browser.newContext({ timezoneId: 'Asia/Kolkata', reducedMotion: 'reduce' });
    await context.addInitScript((given) => sessionStorage.setItem('callboard:token', given), bench.relay.admin);
    const tab = await context.newPage();
    await tab.goto(address('clients?user=alice'));
    const time = tab.locator('#main tbody tr time').first();
    await time.waitFor();
    const iso = (await time.getAttribute('datetime')) ?? '';
    const local = new Date(Date.parse(iso) + 5.5 * 3600_000).toISOString().slice(11, 23);
    await tab.getByRole('columnheader', { name: 'Connected, UTC' }).waitFor();
    await expect.poll(() => time.innerText()).toContain(iso.slice(11, 19));
    const title = await time.getAttribute('title');
    expect(title).toContain(`${iso.slice(11, 23)} UTC`);
    expect(title).toContain(`${local} local`);
    await tab.getByRole('radio', { name: 'Local' }).check({ force: true });
    await tab.getByRole('columnheader', { name: 'Connected, local' }).waitFor();
    await expect.poll(() => time.innerText()).toContain(local.slice(0, 8));
    await tab.reload();
    await tab.getByRole('columnheader', { name: 'Connected, local' }).waitFor();
    await context.close();
  });
});

it('the title counts waits over 60 seconds, also while the tab is hidden', async () => {
  const { page: tab } = await openConsole(browser, 'about:blank', { token: bench.relay.admin });
  await tab.clock.install();
  let long = 3;
  await tab.route('**/graphql', async (route) => {
    if (!String(route.request().postData()).includes('longWaits')) return route.continue();
    const response = await route.fetch();
    const answer: unknown = await response.json();
    const data = isRecord(answer) && isRecord(answer['data']) ? answer['data'] : {};
    return route.fulfill({ json: { data: { ...data, longWaits: { count: long } } } });
  });
  await tab.goto(address('nowhere'));
  await expect.poll(() => tab.title()).toBe('(3) No such page · Callboard');
  await tab.evaluate(() => {
    Object.defineProperty(document, 'hidden', { value: true, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  });
  long = 0;
  await tab.clock.fastForward(61_000);
  await expect.poll(() => tab.title()).toBe('No such page · Callboard');
  await tab.context().close();
});

describe('what is copied of a call', () => {
  /** Calls with a trace context, and opens the page of the call. */
  async function openTraced(action: string, text: string): Promise<string> {
    const { relay } = bench;
    const answer = await fetch(`${relay.url}/connections/alice/kiosk-1/actions/${action}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${await relay.token('alice', 'invoke')}`,
        'content-type': 'application/json',
        traceparent: `00-${TRACE}-b7ad6b7169203331-01`,
      },
      body: JSON.stringify({ params: { text } }),
    });
    const body: unknown = await answer.json();
    const commandId = isRecord(body) ? String(body['command_id']) : '';
    await goTo(page, `calls/alice/kiosk-1/${commandId}`);
    await main().getByRole('heading', { name: action }).waitFor();
    return commandId;
  }

  it('is the case as Markdown, in which texts of the client are code, and as JSON; neither has a payload', async () => {
    const commandId = await openTraced('notes.fail', 'secret milk');
    const copied = await watchClipboard();
    await main().locator('summary', { hasText: 'Copy' }).click();
    await expectAccessible();
    await page.getByRole('button', { name: 'Copy as Markdown for the ticket' }).click();
    const text = await copied();
    expect(text).toMatch(/^# `notes\.fail` on `alice \/ kiosk-1`: Failed\n\nhttp/);
    expect(text).toContain(address(`calls/alice/kiosk-1/${commandId}`));
    expect(text).toContain(`- Command: \`${commandId}\``);
    expect(text).toContain('- Error: `handler_failed` `no paper`');
    expect(text).toContain(`- Trace: \`${TRACE}\` https://traces.example/trace/${TRACE}`);
    expect(text).toMatch(/## What is proven\n\n- \d{4}-\d\d-\d\dT[\d:.]+Z \*\*Admitted\*\*/);
    expect(text).toContain('## Retained messages');
    expect(text).not.toContain('secret milk');
    await page.getByRole('button', { name: 'Copy as JSON' }).click();
    const file: unknown = JSON.parse(await copied());
    expect(file).toMatchObject({
      address: address(`calls/alice/kiosk-1/${commandId}`),
      traceUrl: `https://traces.example/trace/${TRACE}`,
      command: { commandId, outcome: 'FAILED', delivery: { caller: { kind: 'USER', name: 'alice' } } },
    });
    expect(JSON.stringify(file)).not.toContain('secret milk');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Copy as JSON' }).waitFor({ state: 'hidden' });
  });

  it('the page links the trace, if the relay names where traces are shown', async () => {
    await openTraced('notes.add', 'milk');
    const link = main().getByRole('link', { name: 'Open the trace' });
    expect(await link.getAttribute('href')).toBe(`https://traces.example/trace/${TRACE}`);
    expect(await link.getAttribute('rel')).toBe('noreferrer');
  });
});

/** Makes calls that wait for clients which do not connect. */
async function startWaiting(clientId: string, count: number): Promise<void> {
  const waiting = { connectWithinMs: 300_000, waitFor: 'admitted' } as const;
  for (let i = 0; i < count; i++)
    await bench.caller.invoke({ userId: 'alice', clientId, action: 'notes.add' }, {}, waiting);
}

describe('acts on many objects', () => {
  const dialog = () => page.getByRole('dialog');

  it('cancels all commands of a filter that wait: the count first, a reason, then what each answered', async () => {
    await startWaiting('away', 3);
    await startWaiting('elsewhere', 1);
    await goTo(page, 'calls');
    await main().getByText('notes.add').first().waitFor();
    expect(await main().getByRole('button', { name: 'Cancel waiting…' }).count()).toBe(0);
    await goTo(page, 'calls?client=away');
    await main().getByRole('button', { name: 'Cancel waiting…' }).click();
    await dialog().getByText('3 commands.').waitFor();
    await expectAccessible();
    await dialog().getByLabel('Reason').fill('the shop is closed');
    await dialog().getByRole('button', { name: 'Cancel 3 commands' }).click();
    await dialog().getByText('Done: 3 of 3 commands.').waitFor();
    await dialog().getByText('3 cancelled, never written to the client').waitFor();
    await dialog().getByRole('button', { name: 'Close' }).click();
    await goTo(page, 'calls?outcome=cancelled&client=away');
    await main().getByText('3 calls on this page.').waitFor();
    await goTo(page, 'calls?stage=admitted&client=elsewhere');
    await main().getByText('1 call on this page.').waitFor();
    await goTo(page, 'audit?act=cancel');
    await expect.poll(() => main().getByText('the shop is closed').count()).toBe(3);
  });

  it('is offered on the page of a client that is not connected, while commands wait for it', async () => {
    await startWaiting('gone', 2);
    await goTo(page, 'clients/alice/gone');
    await main().getByText('2 calls wait for it.').waitFor();
    await main().getByRole('button', { name: 'Cancel waiting…' }).click();
    await dialog().getByText('2 commands.').waitFor();
    await dialog().getByLabel('Reason').fill('it was taken away');
    await dialog().getByRole('button', { name: 'Cancel 2 commands' }).click();
    await dialog().getByText('2 cancelled, never written to the client').waitFor();
    await dialog().getByRole('button', { name: 'Close' }).click();
    await main().getByRole('button', { name: 'Cancel waiting…' }).waitFor({ state: 'detached' });
  });

  it('is not offered where nothing can wait', async () => {
    await goTo(page, 'calls?client=nobody');
    await main().getByText('No call matches').waitFor();
    expect(await main().getByRole('button', { name: 'Cancel waiting…' }).count()).toBe(0);
  });

  it('disconnects all clients of a node, one by one', async () => {
    await goTo(page, 'nodes');
    await main()
      .getByRole('button', { name: /^Disconnect all of/ })
      .click();
    await dialog().getByText('51 clients.').waitFor();
    await expectAccessible();
    await dialog().getByLabel('Reason').fill('the node moves');
    await dialog().getByRole('button', { name: 'Disconnect 51 clients' }).click();
    await dialog().getByText('Done: 51 of 51 clients.').waitFor();
    await dialog()
      .getByText(/^\d+ closed/)
      .waitFor();
    await dialog().getByRole('button', { name: 'Close' }).click();
    await bench.runtime.ready();
  });
});

describe('the audit', () => {
  it('filters by act and time, links its subjects, and says who the viewer is', async () => {
    await goTo(page, 'audit?act=disconnect&user=alice');
    const row = main().locator('tbody tr', { hasText: 'kiosk-1' });
    await row.getByText('the node moves').waitFor();
    await row.getByText('(you)').waitFor();
    await main().getByText('Chain checked').waitFor();
    await main().getByText('is the place of a token without a name').waitFor();
    await row.getByRole('link', { name: 'alice / kiosk-1' }).click();
    await main().getByRole('heading', { name: 'kiosk-1' }).waitFor();
    await goTo(page, 'audit?act=reveal');
    await main().getByText('No event matches').waitFor();
    await goTo(page, 'audit?from=2020-01-01&to=2020-01-02');
    await main().getByText('No event matches').waitFor();
    await goTo(page, 'audit?from=nonsense');
    await main().getByText('“nonsense” is not a time.').waitFor();
    await expectAccessible();
  });

  it('saves what the filters select, one act on a line', async () => {
    await goTo(page, 'audit?act=cancel');
    await main().getByText('the shop is closed').first().waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      main().getByRole('button', { name: 'Save as JSON lines' }).click(),
    ]);
    expect(download.suggestedFilename()).toMatch(/^audit-\d{4}-\d\d-\d\d\.jsonl$/);
    const lines = (await textOf(await download.createReadStream())).trimEnd().split('\n');
    expect(lines).toHaveLength(5);
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({
      action: 'CANCEL',
      reason: 'the shop is closed',
      outcome: 'cancelled',
      subject: { userId: 'alice', clientId: 'away' },
    });
    await main().getByRole('status').getByText('5 events saved.').waitFor();
  });
});
