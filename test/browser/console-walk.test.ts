/**
 * Tests how many acts of the mouse an operator needs for the questions of a day, from the overview: each click counts,
 * and each choice in a list. Typing and the Enter key do not count.
 */
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { ADMIN } from '../http/kit/http-relay.ts';
import { FakeClock } from '../kit/clock.ts';
import { startTestRelay, type TestRelay, type Welcomed } from '../relay/kit/test-relay.ts';
import { launchChromium } from './kit/chromium.ts';
import { expectClean, goTo, openConsole, type ConsolePage } from './kit/console-page.ts';

/** The age of the wait: over ten seconds, and less than the time after which the relay asks a silent client. */
const WAITED_MS = 11_000;
const FAILED_ID = '01999999-aaaa-7bbb-8ccc-ddddeeeeffff';
const TAB = { context_id: 'tab-7', title: 'Orders', status: 'active', ownership: 'worker' };
const SCHEMA = { type: 'object', required: ['text'], properties: { text: { type: 'string', title: 'Text' } } };
const ACTIONS = { actions: [{ name: 'note.add', summary: 'Adds a note', schema: SCHEMA }] };

const clock = new FakeClock(Date.now());

let browser: Browser;
let relay: TestRelay;
let opened: ConsolePage;
let page: Page;
let kiosk: Welcomed;

beforeAll(async () => {
  [browser, relay] = await Promise.all([launchChromium(), startTestRelay({ nodeId: 'relay-a' }, { clock })]);
  for (let at = 0; at < 8; at++) await relay.client({ client_id: 'flaps', instance_id: `i${at}` });
  await relay.client({ client_id: 'steady' });
  kiosk = await relay.client({ client_id: 'kiosk', payload: ACTIONS });
  void relay.post('/connections/alice/kiosk/actions/note.add', { command_id: FAILED_ID, params: { text: 'a' } });
  await kiosk.next('command');
  kiosk.send({ type: 'error', command_id: FAILED_ID, code: 'handler_failed', message: 'The paper is out.' });
  const waiting = { command_id: 'waits', params: { text: 'b' }, respond_within_ms: 120_000 };
  void relay.post('/connections/alice/kiosk/actions/note.add', waiting);
  await kiosk.next('command');
  await clock.advance(WAITED_MS);
  opened = await openConsole(browser, `${relay.url}/console/`, { token: ADMIN });
  ({ page } = opened);
});
afterAll(async () => {
  expectClean(opened);
  await browser?.close();
  await relay?.[Symbol.asyncDispose]();
});

/** The acts of the mouse since the walk began. */
let acts = 0;
beforeEach(async () => {
  await goTo(page, '');
  await main().getByRole('heading', { name: 'Overview' }).waitFor();
  acts = 0;
});

const main = () => page.locator('#main');
const rail = (name: string) => page.locator('.rail').getByText(name, { exact: true });

async function click(target: Locator): Promise<void> {
  acts += 1;
  await target.click();
}

it('why did the call with this id of a log fail: one act', async () => {
  await click(page.getByRole('button', { name: /^Go to a user/ }));
  await page.keyboard.insertText(FAILED_ID);
  await page.getByRole('dialog').getByText('note.add').waitFor();
  await page.keyboard.press('Enter');
  await main().getByText('The paper is out.').first().waitFor();
  expect(acts).toBe(1);
});

it('who has waited for over ten seconds, and who called: two acts', async () => {
  await click(rail('Waits'));
  acts += 1;
  await page.getByRole('combobox', { name: 'Older than' }).selectOption('10s');
  const row = main().locator('tbody tr');
  await row.getByRole('link', { name: 'note.add' }).waitFor();
  await row.getByTitle('User alice: show all waits of this caller').waitFor();
  expect(acts).toBe(2);
});

it('which client flaps, and why: two acts, and none on the overview, which names it', async () => {
  const unstable = main().getByRole('table', { name: 'Unstable clients' }).locator('tbody tr');
  await unstable.getByText('flaps').waitFor();
  await unstable.getByText(/^7 in the last hour/).waitFor();
  await unstable.getByText('another instance took its place').waitFor();
  await click(rail('Clients'));
  await main().locator('tr[data-key="alice/flaps"]').getByText('Connected, unstable').waitFor();
  await click(main().getByRole('link', { name: 'Most reconnects' }));
  const first = main().locator('tbody tr').first();
  await first.getByText('flaps').waitFor();
  await first.getByRole('cell', { name: '7', exact: true }).waitFor();
  await first.getByText('another instance took its place').first().waitFor();
  expect(acts).toBe(2);
});

it('what runs on this tab, who called it, and since when: two acts', async () => {
  kiosk.send({ type: 'report' }, { contexts: { set: [{ ...TAB, task_id: 'waits' }] } });
  await click(rail('Workers and windows'));
  await click(main().getByRole('link', { name: 'Orders tab-7' }));
  await main()
    .locator('.case-head')
    .getByText(/Runs note\.add, called by alice, for .* as kiosk reports/)
    .waitFor();
  expect(acts).toBe(2);
});

it('all that a user did today: two acts', async () => {
  await click(rail('Users'));
  await click(main().getByRole('link', { name: 'alice', exact: true }));
  const line = main().getByRole('table', { name: 'Time line of this user' }).locator('tbody tr');
  await line.getByText('Call by it').first().waitFor();
  expect(await line.getByRole('link', { name: 'note.add' }).count()).toBe(2);
  await line.getByText('Opened by another instance').first().waitFor();
  expect(acts).toBe(2);
});

it('invoke an action and see its result: three acts', async () => {
  await click(rail('Actions'));
  await click(main().getByRole('button', { name: 'Invoke note.add…' }));
  const drawer = page.locator('.drawer');
  await drawer.getByLabel('Text', { exact: true }).fill('milk');
  await click(drawer.getByRole('button', { name: 'Invoke', exact: true }));
  const { command_id } = await kiosk.next('command');
  kiosk.send({ type: 'result', command_id }, { added: 'milk' });
  const result = drawer.getByText('{"added":"milk"}');
  await result.waitFor();
  const box = await result.boundingBox();
  expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThan(page.viewportSize()?.height ?? 0);
  expect(acts).toBe(3);
});
