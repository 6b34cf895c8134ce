/**
 * Tests the frame around every page: what the palette finds, an outage of the relay, requests that fail while the console
 * opens, and progress before a reveal.
 */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { launchChromium } from './kit/chromium.ts';
import { axeViolations, goTo, openConsole } from './kit/console-page.ts';
import { startConsoleRelay, type ConsoleRelay } from './kit/console-relay.ts';

let browser: Browser;
let bench: ConsoleRelay;
let page: Page;
/** Makes the action `notes.sort` report progress, or end. */
let report: (payload: unknown) => void;
let end: () => void;

beforeAll(async () => {
  [browser, bench] = await Promise.all([launchChromium(), startConsoleRelay()]);
  bench.runtime.handle('notes.sort', { summary: 'Sorts' }, (_, call) => {
    report = (payload) => call.progress(payload);
    return new Promise((resolve) => (end = () => resolve({})));
  });
  ({ page } = await openConsole(browser, `${bench.relay.url}/console/clients`, { token: bench.relay.admin }));
  await main().getByText('kiosk-1').first().waitFor();
});
afterAll(async () => {
  await browser?.close();
  await bench?.[Symbol.asyncDispose]();
});

const main = () => page.locator('#main');
const box = () => page.getByRole('dialog', { name: 'Go to' });

it.each([
  ['KIOSK', 'Client alice / kiosk-1'],
  ['lic', 'User alice'],
  ['otes.ad', 'Action notes.add'],
  ['drain', 'Act Drain a node'],
  ['imit', 'Page Limits'],
])('the palette finds by %j: %s', async (text, name) => {
  await page.keyboard.press('Control+k');
  await box().getByRole('textbox').fill(text);
  await box().getByRole('link', { name }).first().waitFor();
  await page.keyboard.press('Escape');
});

it('the palette has no row for what does not exist, and Enter opens nothing', async () => {
  const address = page.url();
  await page.keyboard.press('Control+k');
  await box().getByRole('textbox').fill('zebra');
  await page.keyboard.press('Enter');
  await box().getByText('Nothing has this in its name.').waitFor();
  expect(await box().getByRole('link').count()).toBe(0);
  expect(await axeViolations(page)).toEqual([]);
  await page.keyboard.press('Escape');
  expect(page.url()).toBe(address);
});

it.each([1280, 390])(
  'an outage is one bar in the frame at %i, moves nothing, and acts say why they wait',
  async (width) => {
    await page.setViewportSize({ width, height: 900 });
    await goTo(page, 'actions');
    const row = main().getByText('notes.add').first();
    await row.waitFor();
    const before = await row.boundingBox();
    await page.route('**/graphql**', (route) => route.abort());
    await page.getByRole('alert').getByText('The relay has not answered').waitFor();
    expect(await page.getByText('The relay does not answer').count()).toBe(0);
    expect(await row.boundingBox()).toEqual(before);
    const act = main().getByRole('button', { name: /^Invoke an action/ });
    expect(await act.getAttribute('aria-disabled')).toBe('true');
    expect(await act.getAttribute('title')).toMatch(/^The relay has not answered since \d\d:\d\d:\d\d UTC$/);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await axeViolations(page, colorScheme)).toEqual([]);
    }
    await page.unrouteAll();
    await page.getByRole('alert').getByText('The relay has not answered').waitFor({ state: 'detached' });
    await expect.poll(() => act.getAttribute('aria-disabled')).toBe('false');
  },
);

it.each([
  ['the connection breaks', null, 'The relay has not answered'],
  ['a proxy answers', 502, 'The relay could not read who is signed in.'],
])('the console opens once %s no longer, and says meanwhile what failed', async (_, status, said) => {
  const { page: tab } = await openConsole(browser, `${bench.relay.url}/healthz`, { token: bench.relay.admin });
  let failing = true;
  await tab.route('**/graphql', (route) => {
    if (!failing) return route.continue();
    return status === null ? route.abort() : route.fulfill({ status, body: 'Bad gateway' });
  });
  await tab.goto(`${bench.relay.url}/console/limits`);
  await tab.getByRole('alert').getByText(said).waitFor();
  await tab.locator('#main').getByText('Reading who is signed in').waitFor();
  failing = false;
  await tab.getByRole('heading', { level: 1, name: 'Limits' }).waitFor();
  await tab.getByRole('alert').getByText(said).waitFor({ state: 'detached' });
  await tab.context().close();
});

it('the page of a call that runs shows no progress before a reveal, which is one row of the audit', async () => {
  await page.setViewportSize({ width: 1280, height: 900 });
  const target = { userId: 'alice', clientId: 'kiosk-1', action: 'notes.sort' };
  const { handle } = await bench.caller.invoke(target, {}, { waitFor: 'acknowledged' });
  await goTo(page, `calls/alice/kiosk-1/${handle.commandId}`);
  await main().getByRole('heading', { name: 'notes.sort' }).waitFor();
  await expect.poll(() => page.locator('.live').innerText()).toBe('Live');
  report({ done: 1, total: 6, name: 'secret-1' });
  await main().getByText('1 report by kiosk-1').waitFor();
  await main().getByText('It runs, as kiosk-1 reports.').waitFor();
  expect(await main().innerText()).not.toContain('secret');
  expect(await auditedReads()).toEqual([]);
  await main().getByRole('button', { name: 'Reveal the reports to come…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Reason').fill('a customer asked');
  await dialog.getByRole('button', { name: 'Reveal', exact: true }).click();
  await main().getByText('The next report is shown here.').waitFor();
  await expect.poll(async () => (await auditedReads()).length).toBe(1);
  for (const done of [3, 4]) report({ done, total: 6, name: `secret-${done}` });
  await main().getByText('secret-4').waitFor();
  await main().getByText('4 of 6', { exact: true }).waitFor();
  expect(await axeViolations(page)).toEqual([]);
  expect(await auditedReads()).toEqual(['REVEAL a customer asked']);
  end();
  await main().getByText('kiosk-1 reported that it completed.').waitFor();
});

/** Returns the acts by which payloads were read, with their reasons. */
async function auditedReads(): Promise<readonly string[]> {
  const query = '{ auditEvents(first: 100) { nodes { action reason } } }';
  const headers = { authorization: `Bearer ${bench.relay.admin}`, 'content-type': 'application/json' };
  const answer = await fetch(`${bench.relay.url}/graphql`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ query }),
  });
  const { data } = await answer.json();
  const rows: readonly { readonly action: string; readonly reason: string | null }[] = data.auditEvents.nodes;
  return rows
    .filter(({ action }) => action === 'PAYLOAD' || action === 'REVEAL')
    .map(({ action, reason }) => `${action} ${reason}`);
}
