/**
 * Tests what an operator relies on: a page whose file cannot be loaded says so, lists follow the time, a drain says what it
 * does, a command is found by its id, and what is copied says what it lacks.
 */
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { launchChromium } from './kit/chromium.ts';
import { axeViolations, goTo, openConsole } from './kit/console-page.ts';
import { startConsoleRelay, startRunning, type ConsoleRelay } from './kit/console-relay.ts';

let browser: Browser;
let bench: ConsoleRelay;
let page: Page;
beforeAll(async () => {
  [browser, bench] = await Promise.all([launchChromium(), startConsoleRelay()]);
  page = await fresh('nowhere');
});
afterEach(() => page.unrouteAll({ behavior: 'ignoreErrors' }));
afterAll(async () => {
  await browser?.close();
  await bench?.[Symbol.asyncDispose]();
});

const main = () => page.locator('#main');
const target = { userId: 'alice', clientId: 'kiosk-1' };

/** Opens a page in a tab that has loaded no other one, in place of the tab before. */
async function fresh(path: string): Promise<Page> {
  await page?.context().close();
  const opened = await openConsole(browser, `${bench.relay.url}/console/${path}`, { token: bench.relay.admin });
  await opened.page.locator('#main h1').waitFor();
  return opened.page;
}

describe('a file that cannot be loaded', () => {
  it('is said in place of its page, which comes by itself when the file can be loaded', async () => {
    page = await fresh('clients');
    await page.route('**/assets/audit-*.js*', (route) => route.fulfill({ status: 404 }));
    await page.locator('.rail').getByText('Audit').click();
    await main().getByRole('heading', { name: 'Audit' }).waitFor();
    await main().getByText('This page could not be loaded.').waitFor();
    expect(await main().getByRole('heading', { name: 'Clients' }).count()).toBe(0);
    expect(await axeViolations(page)).toEqual([]);
    await page.locator('.rail').getByText('Limits').click();
    await main().getByText('What each admission scope holds now').waitFor();
    await page.locator('.rail').getByText('Audit').click();
    await main().getByText('This page could not be loaded.').waitFor();
    await page.unrouteAll();
    await main().getByText('No operator did anything yet').waitFor();
  });

  it('comes by itself after the relay was away, with the files that it needs itself', async () => {
    page = await fresh('clients');
    await page.route('**/assets/*.js*', (route) => route.abort());
    await page.locator('.rail').getByText('Users').click();
    await main().getByText('This page could not be loaded.').waitFor();
    await page.unrouteAll();
    await main().getByText('alice').first().waitFor();
  });

  it('can be loaded again with the files of an upgraded relay', async () => {
    page = await fresh('clients');
    await page.route('**/assets/users-*.js*', (route) => route.fulfill({ status: 404 }), { times: 1 });
    await page.locator('.rail').getByText('Users').click();
    await main().getByRole('button', { name: 'Load again' }).click();
    await main().getByText('alice').first().waitFor();
  });

  it('is said in place of the drawer, which can be closed', async () => {
    page = await fresh('clients/alice/kiosk-1');
    await page.route('**/assets/drawer-*.js*', (route) => route.abort());
    await page.getByRole('button', { name: 'Invoke notes.add…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Invoke an action' });
    await dialog.getByText('could not be loaded').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.unrouteAll();
    await page.getByRole('button', { name: 'Invoke notes.add…' }).click();
    await page.locator('.drawer').getByLabel('text', { exact: true }).waitFor();
  });

  it('is said in place of the form, and the arguments can be written as JSON', async () => {
    page = await fresh('clients/alice/kiosk-1');
    await page.route('**/assets/form-*.js*', (route) => route.abort());
    await page.getByRole('button', { name: 'Invoke notes.add…' }).click();
    await page.locator('.drawer').getByText('The form could not be loaded.').waitFor();
    await page.locator('.drawer').getByText('JSON', { exact: true }).click();
    await page.locator('#params').fill('{"text":"milk"}');
    await page.locator('.drawer').getByRole('button', { name: 'Invoke', exact: true }).click();
    await page.locator('.drawer').getByText('{"added":"milk"}').waitFor();
  });
});

describe('waits', () => {
  it('lists a wait as soon as it is old enough, though nothing else happens', async () => {
    await goTo(page, 'nowhere');
    await main().getByText('no page at this address').waitFor();
    await goTo(page, 'waits?older=4s');
    await main().getByText('No wait matches').waitFor();
    // Started last: it is younger than four seconds when the page learns of it, however long the page took to open.
    await using running = await startRunning(bench);
    await main().getByRole('link', { name: 'notes.wait' }).waitFor();
    await main().getByText('1 shown of 1 wait.').waitFor();
    await bench.caller.cancel(running.handle);
    await main().getByText('No wait matches').waitFor();
  });

  it('leaves out a wait that another filter excludes, and reads nothing more often than every second', async () => {
    page = await fresh('nowhere');
    // The page's own clock tells when it asked: this process may learn of two requests together.
    await page.evaluate(() => {
      const asked: number[] = [];
      const real = window.fetch;
      window.fetch = (input, init) => {
        if (String(init?.body).includes('query Waits')) asked.push(performance.now());
        return real(input, init);
      };
      Reflect.set(window, 'asked', asked);
    });
    const asked = (): Promise<number[]> => page.evaluate(() => Reflect.get(window, 'asked'));
    await goTo(page, 'waits?older=1s&client=another');
    await main().getByText('No wait matches').waitFor();
    await expect.poll(async () => (await asked()).length).toBeGreaterThan(3);
    const times = await asked();
    const gaps = times.slice(2).map((at, i) => at - (times[i + 1] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThan(900);
  });
});

describe('the search box', () => {
  const box = () => page.getByRole('dialog', { name: 'Go to' });

  async function search(text: string): Promise<void> {
    await page.keyboard.press('Control+k');
    await box().getByRole('textbox').fill(text);
  }

  it.each([
    ['the whole id', (id: string) => id],
    ['its last eight characters', (id: string) => id.slice(-8)],
    ['the short id as tables show it', (id: string) => `…${id.slice(-8)}`],
  ])('finds a command by %s', async (_, partOf) => {
    const { handle } = await bench.caller.invoke({ ...target, action: 'notes.add' }, { text: 'milk' });
    await goTo(page, 'nowhere');
    await search(partOf(handle.commandId));
    await box().getByText('notes.add').waitFor();
    await page.keyboard.press('Enter');
    await main().getByRole('heading', { name: 'notes.add' }).waitFor();
    await main().getByText(handle.commandId).first().waitFor();
  });

  it('says that there is no such command, and never leads to a user of that name', async () => {
    await goTo(page, 'nowhere');
    await search('0199aaaa-bbbb-7ccc-8ddd-eeeeffff0000');
    await box()
      .getByText(/No command with a record has this id/)
      .waitFor();
    expect(await box().getByRole('link').count()).toBe(0);
    expect(await axeViolations(page)).toEqual([]);
    await page.keyboard.press('Escape');
  });
});

describe('what is copied of a call', () => {
  it.each(['Copy as curl', 'Copy as command line'])('%s has no arguments, and says so', async (name) => {
    const { handle } = await bench.caller.invoke({ ...target, action: 'notes.add' }, { text: 'milk' });
    page = await fresh(`calls/alice/kiosk-1/${handle.commandId}`);
    await page.evaluate(() => {
      Object.defineProperty(navigator, 'clipboard', {
        value: { writeText: async (text: string) => void Reflect.set(window, 'copied', text) },
      });
    });
    await main().locator('summary', { hasText: 'Copy' }).click();
    await page.getByRole('button', { name }).click();
    const copied = await page.evaluate(() => String(Reflect.get(window, 'copied')));
    expect(copied).toContain('ARGUMENTS');
    expect(copied).not.toContain('{}');
    await main()
      .getByText(/without the arguments.*in place of ARGUMENTS/)
      .waitFor();
  });
});

it('a call that was cancelled before it was sent claims nothing of the client', async () => {
  const away = { userId: 'alice', clientId: 'away' };
  const waiting = { connectWithinMs: 60_000, waitFor: 'admitted' } as const;
  const { handle } = await bench.caller.invoke({ ...away, action: 'notes.add' }, {}, waiting);
  await bench.caller.cancel(handle);
  await goTo(page, `calls/alice/away/${handle.commandId}`);
  await main()
    .locator('.tl-body', { hasText: 'Cancellation requested' })
    .getByText('Nothing had been written')
    .waitFor();
  expect(await main().locator('.tl-body h3').allInnerTexts()).toEqual([
    ...['Admitted', 'Cancellation requested', 'Cancelled'],
  ]);
});

it('a call that expired says once why', async () => {
  const away = { userId: 'alice', clientId: 'away', action: 'notes.add' };
  const { handle, outcome } = await bench.caller.invoke(away, {}, { connectWithinMs: 1 });
  expect(outcome).toBe('expired');
  await goTo(page, `calls/alice/away/${handle.commandId}`);
  await main().locator('.tl-body', { hasText: 'connect_timeout' }).waitFor();
  expect(
    await main()
      .getByText(/Client did not connect in time/)
      .count(),
  ).toBe(1);
  expect(await main().getByText('connect_timeout').count()).toBe(1);
});

describe('axe finds no fault, in either theme,', () => {
  /** How each dialog is opened: from which page, and by what. */
  const DIALOGS: readonly (readonly [name: string, path: string, open: () => Promise<void>])[] = [
    ['Keyboard', 'nowhere', () => page.keyboard.press('?')],
    ['Go to', 'nowhere', () => page.keyboard.press('Control+k')],
    ['Disconnect kiosk-1', 'clients/alice/kiosk-1', () => page.getByRole('button', { name: 'Disconnect…' }).click()],
    ['Choose a span', '', () => page.getByRole('button', { name: 'Choose a span…' }).click()],
    ['Drain', 'nodes', () => page.getByRole('button', { name: /^Drain .*…$/ }).click()],
    ['Cancel notes.wait', 'calls/COMMAND', () => page.getByRole('button', { name: 'Cancel…' }).click()],
    ['Payload of', 'calls/COMMAND', () => page.getByRole('button', { name: 'Reveal…' }).first().click()],
  ];

  it.each(DIALOGS)('in the dialog %s', async (name, path, open) => {
    await using running = path.endsWith('COMMAND') ? await startRunning(bench) : null;
    page = await fresh(path.replace('COMMAND', `alice/kiosk-1/${running?.commandId}`));
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await open();
      await page.getByRole('dialog', { name: new RegExp(name, 'i') }).waitFor();
      expect([colorScheme, await axeViolations(page, colorScheme)]).toEqual([colorScheme, []]);
      await page.keyboard.press('Escape');
      await page.locator('dialog').waitFor({ state: 'detached' });
    }
  });

  it('in the form that asks for another token', async () => {
    page = await fresh('clients');
    const refusal = { errors: [{ message: 'The token has expired.', extensions: { code: 'unauthenticated' } }] };
    await page.route('**/graphql', (route) => route.fulfill({ status: 401, json: refusal }));
    await page.getByRole('dialog', { name: 'Sign in again to go on' }).waitFor();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      expect([colorScheme, await axeViolations(page, colorScheme)]).toEqual([colorScheme, []]);
    }
  });
});

it('an answer that does not come is told once', async () => {
  page = await fresh('users');
  await main().getByText('alice').first().waitFor();
  await page.route('**/graphql', (route) => route.abort());
  await main().getByRole('button', { name: 'Refresh' }).click();
  const outage = page.getByRole('alert').filter({ hasText: 'The relay has not answered' });
  await outage.waitFor();
  expect(await outage.count()).toBe(1);
  expect(await main().locator('.notice-error').count()).toBe(0);
});

// This test is the last one, because a drained node admits nothing more.
it('a drain of the only node says that the service stops, asks why, and is then seen everywhere', async () => {
  page = await fresh('nodes');
  await page.getByRole('button', { name: /^Drain .*…$/ }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(/This is the only node\./).waitFor();
  expect(await dialog.innerText()).not.toContain('connect to another node');
  const label = (await dialog.locator('label', { hasText: 'to drain it' }).innerText()).trim();
  await dialog.getByLabel('Reason').fill('the disk is full');
  await dialog.getByLabel(label).fill(label.replace(/^Type (.*) to drain it$/, '$1'));
  expect(await axeViolations(page)).toEqual([]);
  await page.keyboard.press('Enter');
  await main().getByText('Draining', { exact: true }).waitFor();
  await page.locator('.rail').getByText('1 draining').waitFor();
  await goTo(page, 'audit');
  await main().getByText('the disk is full').waitFor();
  await goTo(page, '');
  await main()
    .getByText(/drains: it admits no calls/)
    .waitFor();
  await page.keyboard.press('i');
  await page
    .locator('.drawer')
    .getByText(/drains: it admits no calls/)
    .waitFor();
});
