/** Tests the console as a user sees it: everything of its own, and nothing that the relay refuses. */
import type { Browser, Page, Response } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isRecord } from '../../src/core/json.ts';
import { launchChromium } from './kit/chromium.ts';
import { axeViolations, expectClean, goTo, openConsole, type ConsolePage } from './kit/console-page.ts';
import { startConsoleRelay, startRunning, type ConsoleRelay } from './kit/console-relay.ts';

let browser: Browser;
let bench: ConsoleRelay;
let opened: ConsolePage;
let page: Page;
let commandId: string;
/** What the relay answered with an error, as `<operation>: <code>`. */
const refused: string[] = [];
const answers: Promise<void>[] = [];

beforeAll(async () => {
  [browser, bench] = await Promise.all([launchChromium(), startConsoleRelay()]);
  const { caller, relay } = bench;
  const target = { userId: 'alice', clientId: 'kiosk-1' };
  const { handle } = await caller.invoke({ ...target, action: 'notes.add' }, { text: 'milk' });
  commandId = handle.commandId;
  await caller.invoke({ ...target, action: 'notes.fail' }, {});
  opened = await openConsole(browser, `${relay.url}/console/`, { token: await relay.token('alice', 'invoke') });
  ({ page } = opened);
  page.on('response', (response) => void answers.push(noteRefusal(response)));
});
afterAll(async () => {
  await browser?.close();
  await bench?.[Symbol.asyncDispose]();
});

const main = () => page.locator('#main');

async function noteRefusal(response: Response): Promise<void> {
  if (!response.url().endsWith('/graphql')) return;
  const body: unknown = await response.json().catch(() => ({}));
  const query: unknown = response.request().postDataJSON()?.query;
  const operation = /(?:query|mutation) (\w+)/.exec(String(query))?.[1] ?? '';
  const errors = isRecord(body) ? JSON.stringify(body['errors'] ?? null) : 'null';
  // On a busy machine, Redis may answer late: the page asks again.
  if (errors !== 'null' && !errors.includes('"store_unavailable"')) refused.push(`${operation}: ${errors}`);
}

it('begins with an overview of the own clients, calls and waits', async () => {
  await using _running = await startRunning(bench);
  await page.reload();
  await main().getByRole('heading', { name: 'Overview' }).waitFor();
  await main().getByText('Your clients, calls and waits.').waitFor();
  const table = (name: string) => main().getByRole('table', { name, exact: true });
  await table('Clients of this user').getByRole('link', { name: 'kiosk-1', exact: true }).waitFor();
  await table('Callers that wait for this user’s clients').getByRole('link', { name: 'notes.wait' }).waitFor();
  await table('Time line of this user').getByRole('link', { name: 'notes.fail' }).waitFor();
  await page.locator('.who').getByText('User. Signed in until').waitFor();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    expect([colorScheme, await axeViolations(page, colorScheme)]).toEqual([colorScheme, []]);
  }
});

it('lists the own calls, and shows new ones; the page of a call can cancel it', async () => {
  await using running = await startRunning(bench);
  await goTo(page, 'calls');
  await main().getByRole('heading', { level: 1, name: 'Calls' }).waitFor();
  await main().getByRole('link', { name: 'notes.fail' }).waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  const added = main().getByRole('link', { name: 'notes.add' });
  const before = await added.count();
  await bench.caller.invoke({ userId: 'alice', clientId: 'kiosk-1', action: 'notes.add' }, { text: 'bread' });
  // The call is new above the list, or in the list if the page read it again because its stream has just begun.
  const shown = main().getByRole('button', { name: 'Show 1 new call' });
  await expect.poll(async () => (await shown.count()) + (await added.count()) - before).toBeGreaterThan(0);
  await main().locator(`a[href$="${running.commandId}"]`, { hasText: 'notes.wait' }).click();
  await page.getByRole('button', { name: 'Cancel…' }).click();
  await page.getByRole('button', { name: 'Cancel the call' }).click();
  await page.locator('.case-head').getByText('Cancelled', { exact: true }).waitFor();
});

it('invokes an action of an own client', async () => {
  await goTo(page, 'clients/alice/kiosk-1');
  await page.getByRole('button', { name: 'Invoke notes.add…' }).click();
  await page.locator('.drawer').getByLabel('text', { exact: true }).fill('eggs');
  await page.keyboard.press('Control+Enter');
  await page.locator('.drawer').getByText('{"added":"eggs"}').waitFor();
  await page.keyboard.press('Escape');
});

it('leads to no page that is not for users, and no request of any page is refused', async () => {
  const seen = new Set<string>();
  const wanted = ['', `calls/alice/kiosk-1/${commandId}`, 'users/alice', 'history?stream=alice%2Flinks'];
  while (wanted.length > 0) {
    const path = wanted.shift() ?? '';
    if (seen.has(path)) continue;
    seen.add(path);
    await goTo(page, path);
    await main().locator('h1').waitFor();
    await expect
      .poll(() =>
        main()
          .getByText(/^Reading /)
          .count(),
      )
      .toBe(0);
    expect([path, await main().getByText('for administrators').count()]).toEqual([path, 0]);
    expect([path, await main().getByText('No such page').count()]).toEqual([path, 0]);
    const hrefs = await page
      .locator('.rail a, #main a')
      .evaluateAll((links) => links.map((link) => link.getAttribute('href') ?? ''));
    wanted.push(...hrefs.filter((href) => href.startsWith('/console/')).map((href) => href.slice('/console/'.length)));
  }
  await Promise.all(answers);
  // Pages and objects of each kind were reached by links alone.
  for (const path of [
    'calls',
    'waits',
    'clients',
    'actions',
    'history',
    'places',
    'sites',
    'audit',
    'clients/alice/kiosk-1',
  ])
    expect([...seen]).toContain(path);
  expect(refused).toEqual([]);
  expectClean(opened);
});

it('says how to connect a client while there is nothing', async () => {
  const { page: fresh } = await openConsole(browser, `${bench.relay.url}/console/`, {
    token: await bench.relay.token('bob', 'invoke'),
  });
  await fresh.getByText('Nothing of yours is here yet').waitFor();
  await fresh.getByRole('link', { name: 'How to connect a client' }).click();
  await fresh.getByText('callboard token --user bob').waitFor();
  await fresh.context().close();
});

it('says why a token that may not read anything does not sign in', async () => {
  const { page: fresh } = await openConsole(browser, `${bench.relay.url}/console/`);
  await fresh.getByLabel('Token').fill(await bench.relay.token('alice', 'connect'));
  await fresh.keyboard.press('Enter');
  await fresh.getByText('needs the scope “invoke”').waitFor();
  await fresh.context().close();
});
