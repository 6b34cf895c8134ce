/** Tests the acts of an operator in the console by keyboard alone: invoke, cancel, disconnect, drain and reveal. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { launchChromium } from './kit/chromium.ts';
import { expectClean, openConsole, type ConsolePage } from './kit/console-page.ts';
import { startConsoleRelay, startRunning, startDoomedClient, type ConsoleRelay } from './kit/console-relay.ts';
import { tabAndEnter, tabAndType, tabTo } from './kit/keyboard.ts';

/**
 * The browser that all tests of this file share. They use one tab, signed in as an administrator, by keyboard alone.
 * Each test loads its page again, so that no dialog is open.
 */
let browser: Browser;
let bench: ConsoleRelay;
let opened: ConsolePage;
let page: Page;
beforeAll(async () => {
  [browser, bench] = await Promise.all([launchChromium(), startConsoleRelay()]);
  opened = await openConsole(browser, address('nowhere'), { token: bench.relay.admin });
  ({ page } = opened);
});
afterEach(() => expectClean(opened));
afterAll(async () => {
  await browser?.close();
  await bench?.[Symbol.asyncDispose]();
});

const address = (path: string): string => `${bench.relay.url}/console/${path}`;
const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true });
const drawer = () => page.locator('.drawer');

/** Answers one operation of the page with this data, until `page.unroute`. */
async function answerInstead(operation: string, data: object): Promise<void> {
  await page.route('**/graphql', (route) => {
    const isIt = String(route.request().postDataJSON().query).includes(`query ${operation}`);
    return isIt ? route.fulfill({ json: { data } }) : route.fallback();
  });
}

/** Opens the drawer from anywhere with `i`, and chooses a client and one of its actions. */
async function choose(client: string, action: string): Promise<void> {
  await page.goto(address('actions'));
  await page.getByRole('heading', { name: 'Actions' }).waitFor();
  await page.keyboard.press('i');
  await tabAndEnter(drawer().getByRole('button', { name: new RegExp(`alice / ${client}`) }));
  await tabAndEnter(drawer().getByRole('button', { name: new RegExp(`^${action}`) }));
}

it('invokes an action: form, check when the field is left, completed with its result; Escape closes the drawer', async () => {
  await choose('kiosk-1', 'notes.add');
  const text = page.getByLabel('text', { exact: true });
  await tabAndType(text, 'a text that is longer than twenty');
  // Faults are named once the field is left.
  await page.keyboard.press('Tab');
  await page.getByText('The client would refuse its arguments.').waitFor();
  await tabAndType(text, 'milk');
  await page.getByText('The client would refuse its arguments.').waitFor({ state: 'detached' });
  await page.getByText('The relay would admit it.').waitFor();
  await page.keyboard.press('Control+Enter');
  await drawer().getByText('{"added":"milk"}').waitFor();
  await page.keyboard.press('Escape');
  await drawer().waitFor({ state: 'detached' });
});

it('shows with which code the client failed', async () => {
  await choose('kiosk-1', 'notes.fail');
  await tabAndEnter(button('Invoke'));
  await drawer().getByText('handler_failed').waitFor();
  await drawer().getByText('no paper').waitFor();
});

it('shows which layer of the relay would refuse a call, and which one refused it', async () => {
  await choose('kiosk-1', 'notes.wipe');
  await page.getByText('The relay would refuse it.').waitFor();
  await tabAndEnter(button('Invoke'));
  await drawer().getByText('Refused by policy.').waitFor();
  await drawer().getByRole('alert').getByText('policy_denied').waitFor();
});

it('says that a call may have run when its client is lost after the dispatch', async () => {
  await using doomed = await startDoomedClient(bench.relay);
  await choose('kiosk-2', 'notes.print');
  await tabAndEnter(drawer().locator('.budgets summary'));
  await tabAndType(page.getByLabel('Time to answer, seconds'), '5');
  await page.keyboard.press('Control+Enter');
  await doomed.entered;
  doomed.kill();
  await drawer().getByText('Outcome unknown').first().waitFor();
  await drawer().getByText('It may have run.').waitFor();
});

it('cancels a call that runs', async () => {
  await using running = await startRunning(bench);
  const { handle } = running;
  await page.goto(address(`calls/alice/kiosk-1/${handle.commandId}`));
  await tabAndEnter(button('Cancel…'));
  await page.keyboard.type('wrong till');
  await page.keyboard.press('Enter');
  await page.locator('.case-head').getByText('Cancelled', { exact: true }).waitFor();
});

it('keeps the dialog that cancels a call, and its text, when the call ends and its record goes meanwhile', async () => {
  await using running = await startRunning(bench);
  const { handle } = running;
  await page.goto(address(`calls/alice/kiosk-1/${handle.commandId}`));
  await page.getByText('Live', { exact: true }).waitFor();
  await tabAndEnter(button('Cancel…'));
  await page.keyboard.type('wrong till');
  await answerInstead('CallPage', { command: null });
  await bench.caller.cancel(handle);
  await page.getByText('no longer has a record of this call').waitFor();
  expect(await page.getByLabel('Reason').inputValue()).toBe('wrong till');
  await page.unroute('**/graphql');
  await page.keyboard.press('Enter');
  await page.getByText('Too late to cancel').waitFor();
  await page.locator('.case-head').getByText('Cancelled', { exact: true }).waitFor();
});

it('keeps the dialog that reveals a payload, and its text, when the page is read again', async () => {
  await using running = await startRunning(bench);
  const { handle } = running;
  await page.goto(address(`calls/alice/kiosk-1/${handle.commandId}`));
  await page.getByText('Live', { exact: true }).waitFor();
  await tabAndEnter(button('Reveal…').first());
  await page.keyboard.type('asked for by');
  await bench.caller.cancel(handle);
  await page.locator('.case-head').getByText('Cancelled', { exact: true }).waitFor();
  expect(await page.getByLabel('Reason').inputValue()).toBe('asked for by');
});

it('reveals a payload for a reason, which the audit log then shows', async () => {
  await bench.caller.invoke({ userId: 'alice', clientId: 'kiosk-1', action: 'notes.add' }, { text: 'bread' });
  await page.goto(address('history?stream=alice%2Fclients%2Fkiosk-1&kind=command'));
  await tabAndEnter(button('Reveal…').first());
  await page.keyboard.type('short');
  await page.keyboard.press('Enter');
  await page.getByText('at least 8 characters').waitFor();
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type('asked for by the shop');
  await page.keyboard.press('Enter');
  await page.locator('.payload-text').waitFor();
  expect(JSON.parse(await page.locator('.payload-text').innerText())).toEqual({ text: 'bread' });
  await tabAndEnter(button('Hide'));
  await page.locator('.payload-text').waitFor({ state: 'detached' });
  await page.keyboard.press('g');
  await page.keyboard.press('t');
  await page.getByText('asked for by the shop').waitFor();
});

it('keeps the dialog that disconnects a client, and its text, when the relay forgets the client meanwhile', async () => {
  await using flaps = await startDoomedClient(bench.relay);
  await page.goto(address('clients/alice/kiosk-2'));
  await page.getByText('Live', { exact: true }).waitFor();
  await tabAndEnter(button('Disconnect…'));
  await page.keyboard.type('it flaps');
  await answerInstead('ClientPage', { connection: null });
  flaps.kill();
  await page.getByText('The relay has forgotten this client').waitFor();
  expect(await page.getByLabel('Reason').inputValue()).toBe('it flaps');
  await page.unroute('**/graphql');
  await page.keyboard.press('Escape');
  await page.locator('dialog').waitFor({ state: 'detached' });
  await page.keyboard.press('r');
  await page.locator('.case-head').getByText('The link went down').waitFor();
});

it('disconnects a client, which comes back', async () => {
  await page.goto(address('clients/alice/kiosk-1'));
  await tabAndEnter(button('Disconnect…'));
  await page.keyboard.type('it sends nonsense');
  await tabAndEnter(button('Disconnect kiosk-1'));
  await page.locator('dialog').waitFor({ state: 'detached' });
  await bench.runtime.ready();
  await page.locator('.case-head').getByText('Connected', { exact: true }).waitFor();
  await page.goto(address('audit'));
  await page.getByText('it sends nonsense').waitFor();
});

it.each([
  ['?', 'Keyboard'],
  ['Control+k', 'Go to'],
])('the key %s opens one dialog, which Escape closes', async (key, title) => {
  await page.goto(address('nowhere'));
  await page.getByText('no page at this address').waitFor();
  await page.keyboard.press(key);
  await page.getByRole('dialog', { name: title }).waitFor();
  expect(await page.locator('dialog').count()).toBe(1);
  await page.keyboard.press('Escape');
  await page.locator('dialog').waitFor({ state: 'detached' });
});

// This test is the last one, because a drained node admits nothing more.
it('drains a node only after its name was typed', async () => {
  await page.goto(address('nodes'));
  const drain = page.getByRole('button', { name: /^Drain .*…$/ }).first();
  const name = (await drain.getAttribute('aria-label'))?.replace(/^Drain (.*)…$/, '$1') ?? '';
  await tabAndEnter(drain);
  await page.keyboard.type('another');
  await page.keyboard.press('Enter');
  expect(await page.locator('dialog').count()).toBe(1);
  // The page reads its nodes again by itself. An answer without the node must neither close the dialog nor clear its
  // field.
  const completeness = { complete: true, sources: [] };
  const server = { durability: null };
  await answerInstead('Nodes', { delivery: { nodes: { nodes: [], completeness } }, server });
  await page.getByText('0 nodes reported recently').waitFor();
  expect(await page.getByLabel(`Type ${name} to drain it`).inputValue()).toBe('another');
  await page.unroute('**/graphql');
  await tabTo(page.getByLabel(`Type ${name} to drain it`));
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type(name);
  await page.keyboard.press('Enter');
  await page.getByText('Draining', { exact: true }).waitFor();
});
