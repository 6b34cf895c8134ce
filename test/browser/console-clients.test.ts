/**
 * Tests the pages of clients, of an action and of nodes in a real browser, over a relay whose clock the test moves: the
 * views of clients, a client that is gone, what an action does, and the facts of nodes.
 */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import { NODE_BEAT_MS, NODE_LEASE_MS, PING_MS } from '../../src/core/limits.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { VERSION } from '../../src/version.ts';
import { ADMIN } from '../http/kit/http-relay.ts';
import { FakeClock } from '../kit/clock.ts';
import { startTestRelay, type TestRelay } from '../relay/kit/test-relay.ts';
import { launchChromium } from './kit/chromium.ts';
import { axeViolations, expectClean, goTo, openConsole, type ConsolePage } from './kit/console-page.ts';
import { eventually } from '../kit/patience.ts';

const SCHEMA = { type: 'object', properties: { copies: { type: 'integer' } } };
/** The number of elements of a page that stays quick. A page with 40 rows has about 1,000. */
const ELEMENTS_MAX = 1_300;
/** The time after which the relay has forgotten a lost link, in milliseconds. */
const FORGOTTEN_MS = 61_000;

const clock = new FakeClock(Date.now());
const { sha256 } = createCrypto('test');
/** The store of the relay, in which the tests register another node. */
const backend = createMemoryBackend({
  markSecret: 'x',
  clock,
  log: silentLog,
  sha256,
  shares: createShares(),
  history: {},
});

let browser: Browser;
let relay: TestRelay;
let opened: ConsolePage;
let page: Page;
beforeAll(async () => {
  [browser, relay] = await Promise.all([launchChromium(), startTestRelay({ nodeId: 'relay-a' }, { clock, backend })]);
  opened = await openConsole(browser, `${relay.url}/console/nowhere`, { token: ADMIN });
  ({ page } = opened);
});
afterAll(async () => {
  expectClean(opened);
  await browser?.close();
  await relay?.[Symbol.asyncDispose]();
});

const main = () => page.locator('#main');
const views = () => main().getByRole('navigation', { name: 'Views' });
/** The row of a client, such as `alice/tab`, or of a node. */
const row = (key: string) => main().locator(`tr[data-key="${key}"]`);

async function expectAccessible(): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    expect([colorScheme, await axeViolations(page, colorScheme)]).toEqual([colorScheme, []]);
  }
}

/** Waits for a row, and returns its cells by the headings of their columns. */
async function cellsOf(key: string): Promise<Readonly<Record<string, string>>> {
  await row(key).waitFor();
  const heads = await row(key).locator('xpath=ancestor::table').getByRole('columnheader').allInnerTexts();
  const cells = await row(key).locator('th, td').allInnerTexts();
  return Object.fromEntries(heads.map((head, at) => [head.trim(), (cells[at] ?? '').trim()]));
}

describe('an overview', () => {
  it('of a relay without clients says how to connect one, in place of empty plots', async () => {
    await goTo(page, '');
    await main().getByRole('heading', { name: 'No client is connected' }).waitFor();
    await main().getByText('callboard token --user').waitFor();
    expect(await main().locator('.plot').count()).toBe(0);
    await expectAccessible();
  });

  it('has one window: figures, ends and plots follow it, and its links lead to the calls of that window', async () => {
    const till = await relay.client({ user: 'shop', client_id: 'till-1', payload: { actions: [{ name: 'print' }] } });
    void relay.post('/connections/shop/till-1/actions/print', { command_id: 'c1' }, 'shop');
    await till.next('command');
    till.send({ type: 'error', command_id: 'c1', code: 'handler_failed', message: 'The paper is out.' });
    await main().locator('.plot').first().waitFor();
    const failed = main().getByRole('link', { name: /^Failed 1/ });
    await failed.waitFor();
    expect(await failed.getAttribute('href')).toBe('/console/calls?outcome=failed&since=15m');
    await main().getByRole('link', { name: 'Last hour' }).click();
    await expect.poll(() => failed.getAttribute('href')).toBe('/console/calls?outcome=failed&since=60m');
    await main().getByText('1 in this window').first().waitFor();
    await main().getByRole('link', { name: 'Last 24 h' }).click();
    await expect.poll(() => failed.getAttribute('href')).toBe('/console/calls?outcome=failed');
    await expectAccessible();
  });

  it('moves nothing while the pointer is over a plot, and shows the values there; so do the arrow keys', async () => {
    await goTo(page, '');
    const plot = main().getByRole('img', { name: /^Ends by outcome/ });
    await main().locator('summary[aria-label="As a table: Ends by outcome"]').waitFor();
    const times = (await plot.locator('text').allTextContents()).filter((text) => text.includes(':'));
    expect(times.length).toBeGreaterThan(1);
    for (const time of times) expect(time).toMatch(/^\d\d:\d[05]$/);
    await plot.scrollIntoViewIfNeeded();
    const place = async () => JSON.stringify(await main().locator('.plot-svg').last().boundingBox());
    const before = await place();
    await plot.hover();
    await main().locator('.plot-at').first().waitFor();
    expect(await place()).toBe(before);
    await page.mouse.move(0, 0);
    await main().locator('.plot-at').first().waitFor({ state: 'detached' });
    await plot.focus();
    await page.keyboard.press('ArrowLeft');
    await main().locator('.plot-at', { hasText: 'failed 4' }).waitFor();
    await page.keyboard.press('ArrowLeft');
    await main().locator('.plot-at', { hasText: 'failed not known' }).waitFor();
  });
});

describe('the views of clients', () => {
  it('show those with a backlog, connected or not, and how many callers wait for each', async () => {
    await relay.client({ user: 'shop', client_id: 'idle' });
    const tab = await relay.client({ client_id: 'tab' });
    void relay.post('/connections/alice/tab/actions/open', { command_id: 'o1' });
    await tab.next('command');
    for (const id of ['a1', 'a2'])
      void relay.post('/connections/alice/away/actions/open', { command_id: id, connect_within_ms: 200_000 });
    await eventually(async () =>
      expect((await relay.rest('/rpc/pending')).text.match(/"command_id"/g)).toHaveLength(3),
    );
    await goTo(page, 'clients');
    expect(await cellsOf('alice/tab')).toMatchObject({ 'In flight': '1', Waiting: '1' });
    await views().getByRole('link', { name: 'With a backlog 2' }).click();
    await main().getByRole('heading', { name: 'Clients with a backlog' }).waitFor();
    await row('alice/away').waitFor();
    expect(await cellsOf('alice/away')).toMatchObject({ Status: 'Not connected', Queued: '2', Waiting: '2' });
    expect(await cellsOf('alice/tab')).toMatchObject({ Status: 'Connected', 'In flight': '1', Waiting: '1' });
    expect(await row('shop/idle').count()).toBe(0);
    await expectAccessible();
  });

  it('show those that reconnect most, and those that were silent longest', async () => {
    for (const instance of ['i1', 'i2', 'i3']) await relay.client({ client_id: 'flaps', instance_id: instance });
    await clock.advance(PING_MS / 2);
    await goTo(page, 'clients?view=reconnects');
    await row('alice/flaps').waitFor();
    expect(await cellsOf('alice/flaps')).toMatchObject({ Reconnects: '2' });
    await views().getByRole('link', { name: 'Silent longest' }).click();
    await main().getByRole('heading', { name: 'Clients that were silent longest' }).waitFor();
    await row('alice/flaps').waitFor();
    await goTo(page, 'clients/alice/flaps');
    await main().getByText('2 in the last hour').waitFor();
    const links = main().getByRole('table', { name: /^Links of this client/ });
    await links.getByText('It is up').waitFor();
    expect(await links.getByText('A newer link replaced it').count()).toBe(2);
    await expectAccessible();
  });
});

describe('a long ranking of clients', () => {
  const count = 70;
  const rows = () => main().locator('tbody tr');
  const keys = () => rows().evaluateAll((shown) => shown.map((one) => one.getAttribute('data-key')));

  beforeAll(async () => {
    for (let at = 0; at < count; at++) await relay.client({ user: 'crowd', client_id: `till-${at}` });
  });

  it('has pages with as many rows as other lists, and shows each client on one of them', async () => {
    await goTo(page, 'clients?view=silence');
    const about = main().locator('.pager');
    await about.getByText(/^1 to 40 of \d+ clients, lost links first\.$/).waitFor();
    expect(await page.evaluate(() => document.querySelectorAll('*').length)).toBeLessThan(ELEMENTS_MAX);
    const first = await keys();
    expect(first).toHaveLength(40);
    await about.getByRole('link', { name: /^Next \d+$/ }).click();
    await about.getByText(/^41 to (\d+) of \1 clients/).waitFor();
    const both = [...first, ...(await keys())];
    expect(new Set(both).size).toBe(both.length);
    expect(both.filter((key) => key?.startsWith('crowd/'))).toHaveLength(count);
    expect(await about.getByRole('link', { name: /^Next/ }).count()).toBe(0);
    await about.getByRole('link', { name: 'First page' }).click();
    await expect.poll(keys).toEqual(first);
  });

  it('shows its last page if it has become shorter than the URL says', async () => {
    await goTo(page, 'clients?view=silence&after=4000');
    await main()
      .getByText(/^41 to (\d+) of \1 clients/)
      .waitFor();
    await goTo(page, 'clients?view=silence&after=nonsense');
    await main()
      .getByText(/^1 to 40 of/)
      .waitFor();
    await expectAccessible();
  });
});

describe('a client that is gone', () => {
  it('keeps its calls and its links on its page, and leads to its calls', async () => {
    const gone = await relay.client({ user: 'depot', client_id: 'scanner', payload: { actions: [{ name: 'scan' }] } });
    void relay.post('/connections/depot/scanner/actions/scan', { command_id: 's1' }, 'depot');
    await gone.next('command');
    gone.send({ type: 'error', command_id: 's1', code: 'handler_failed', message: 'The lamp is broken.' });
    await eventually(async () =>
      expect((await relay.rest('/delivery/commands?user_id=depot')).text).toContain('The lamp is broken.'),
    );
    gone.ws.terminate();
    await eventually(async () =>
      expect((await relay.rest('/connections?user_id=depot')).text).toContain('disconnected'),
    );
    await clock.advance(FORGOTTEN_MS);
    await goTo(page, 'clients/depot/scanner');
    await main().getByText('Its links are still known.').waitFor();
    await main().getByText('The lamp is broken.').waitFor();
    await main()
      .getByRole('table', { name: /^Links of this client/ })
      .waitFor();
    await expectAccessible();
    await main().getByRole('link', { name: 'Calls of scanner' }).click();
    await main().getByRole('heading', { name: 'Calls', exact: true }).waitFor();
    await main().getByText('The lamp is broken.').waitFor();
  });
});

describe('the page of an action', () => {
  it('shows how its calls ended, who advertises it, in which versions, and what it takes', async () => {
    const advertise = (version: string, more: object = {}) => ({
      actions: [{ name: 'receipt.print', version, ...more }],
    });
    const printer = await relay.client({ user: 'hall', client_id: 'p1', payload: advertise('2', { schema: SCHEMA }) });
    await relay.client({ user: 'hall', client_id: 'p2', payload: advertise('2') });
    await relay.client({ user: 'hall', client_id: 'old', payload: advertise('1') });
    for (const id of ['r1', 'r2', 'r3', 'r4']) {
      const done = relay.post('/connections/hall/p1/actions/receipt.print', { command_id: id }, 'hall');
      await printer.next('command');
      printer.send(
        id === 'r4'
          ? { type: 'error', command_id: id, code: 'handler_failed', message: 'The paper is out.' }
          : { type: 'result', command_id: id },
      );
      await done;
    }
    await goTo(page, 'actions');
    await main().getByRole('link', { name: 'receipt.print', exact: true }).click();
    await main().getByRole('heading', { level: 1, name: 'receipt.print' }).waitFor();
    await main().getByText('1 of 4 ends').waitFor();
    await main().getByText('25 %').waitFor();
    const code = main().getByRole('link', { name: /The handler of the client failed/ });
    expect(await code.getAttribute('href')).toBe(
      '/console/calls?outcome=failure&action=receipt.print&since=60m&code=handler_failed',
    );
    const versions = main().getByRole('navigation', { name: 'Versions' });
    expect(await versions.getByRole('link').allInnerTexts()).toEqual(['Version 2\n2', 'Version 1\n1']);
    await main().getByLabel('Schema of receipt.print').getByText('"copies"').waitFor();
    await expectAccessible();
    await versions.getByRole('link', { name: 'Version 1' }).click();
    await main().getByText('It advertises no schema').waitFor();
    await row('hall/old').waitFor();
    expect(await row('hall/p1').count()).toBe(0);
  });

  it('is reached from a call and from a client, and says when nobody advertises it', async () => {
    await goTo(page, 'calls/hall/p1/r4');
    await main().getByRole('link', { name: 'receipt.print', exact: true }).click();
    await main().getByText('1 of 4 ends').waitFor();
    await goTo(page, 'clients/hall/p2');
    await main().getByRole('link', { name: 'receipt.print', exact: true }).first().click();
    await main().getByText('1 of 4 ends').waitFor();
    await goTo(page, 'actions/never.heard');
    await main().getByText('No connected client advertises this action').waitFor();
    await main().getByText('No call of this action was admitted in this window.').waitFor();
  });
});

describe('the facts of nodes', () => {
  const report = {
    ...{ listenerAlive: true, reconciliationAlive: true, activeDrainers: 0, connectionWaiters: 0, links: 3 },
    ...{ unfinishedCommands: 0, draining: false, counters: new Map([['requests:builtin', 5]]) },
  };

  beforeAll(async () => {
    await backend.nodes.attach('relay-b', {
      deliver: () => {},
      lost: () => Promise.resolve(),
      linksLost: () => {},
      revived: () => {},
    });
  });

  it('are their version, uptime, memory and delay; versions that differ are told, and counters are in words', async () => {
    const process = { version: '9.8.7', startedAt: Date.now() - 90_000, memoryBytes: 93_240_000, loopDelayMs: 1.25 };
    await backend.nodes.beat('relay-b', { ...report, process });
    for (const path of ['nodes', '']) {
      await goTo(page, path);
      await main().getByText('The nodes run different versions.').waitFor();
      await main().getByText(`relay-a: ${VERSION}; relay-b: 9.8.7.`).waitFor();
    }
    await goTo(page, 'nodes');
    const shown = { Version: '9.8.7', Memory: '93.2 MB', 'Loop delay': '1.25 ms', Background: 'Runs' };
    expect(await cellsOf('relay-b')).toMatchObject({ ...shown, 'Up for': expect.stringMatching(/^\d+ m \d+ s$/) });
    expect((await cellsOf('relay-a'))['Version']).toBe(VERSION);
    await clock.advance(NODE_BEAT_MS);
    const counters = new Map([['requests:builtin', 8]]);
    await backend.nodes.beat('relay-b', { ...report, counters, process: { ...process, loopDelayMs: 3.5 } });
    await row('relay-b').getByRole('img', { name: 'Loop delay of the last minute: at most 3.5 ms' }).waitFor();
    const counted = main().getByRole('row', { name: /Requests: console and fixed pages/ });
    await counted.getByRole('cell', { name: '+3 8', exact: true }).waitFor();
    expect(await main().getByText(/_/).count()).toBe(0);
    await expectAccessible();
  });

  it('are absent of a node of an older version, which is told too', async () => {
    await backend.nodes.beat('relay-b', { ...report, process: null });
    await main().getByText(`relay-a: ${VERSION}; relay-b: an older one.`).waitFor();
    expect((await cellsOf('relay-b'))['Memory']).toContain('does not report it');
    await expectAccessible();
  });

  it('show the clients of a silent node by themselves', async () => {
    await clock.advance(NODE_LEASE_MS);
    await goTo(page, 'clients');
    await views().getByRole('link', { name: 'On silent nodes 3' }).click();
    await main()
      .getByText(/relay-b has been silent/)
      .waitFor();
    await main().getByText('No client is on a silent node').waitFor();
  });
});
