/** Tests that no page cuts a name, however long the ids of users, clients and actions are. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createAdmin } from '../../src/clients/admin/index.ts';
import { createHttpCaller, type Caller } from '../../src/clients/caller/index.ts';
import { createRuntime, type Runtime } from '../../src/clients/runtime/index.ts';
import { startRealRelay, type RealRelay } from '../clients/kit/real-relay.ts';
import { AWAIT_WITHIN_MS, RESPOND_WITHIN_MS } from '../../src/core/limits.ts';
import { launchChromium } from './kit/chromium.ts';
import { axeViolations, goTo, openConsole } from './kit/console-page.ts';

/** Ids of 100 characters: as a tenant, an address and a place make them, and without a place for a line break. */
const USER = `depot-07.${'some-rather-long-tenant-name-'.repeat(3)}`.slice(0, 88) + '@example.com';
const CLIENTS = [
  `scanner-04-${'in-the-back-of-the-warehouse-hall-b-'.repeat(3)}`.slice(0, 100),
  'X'.repeat(100),
] as const;
/** The id of a place and of a site. */
const LONG = `board-${'of-the-second-floor-'.repeat(5)}`.slice(0, 100);
const ACTION = `receipt.${'print-again-'.repeat(9)}`.slice(0, 100);

let browser: Browser;
let relay: RealRelay;
let runtimes: readonly Runtime[];
let page: Page;
let commandId: string;
let caller: Caller;
/** Each ends a call of the action `wait`. */
const waiting: (() => void)[] = [];
const TARGETS = CLIENTS.map((clientId) => ({ userId: USER, clientId }));

beforeAll(async () => {
  [browser, relay] = await Promise.all([launchChromium(), startRealRelay()]);
  const token = await relay.token(USER, 'connect', 'invoke', 'host');
  runtimes = await Promise.all(
    CLIENTS.map(async (clientId) => {
      const runtime = createRuntime({ url: relay.link, token, clientId, clientType: 'console' });
      runtime.handle(ACTION, { summary: 'Prints it again' }, () => ({ done: true }));
      runtime.handle('wait', { summary: 'Waits' }, () => new Promise<void>((done) => void waiting.push(done)));
      runtime.connect();
      await runtime.ready();
      return runtime;
    }),
  );
  caller = createHttpCaller({ url: relay.url, token });
  const answers = await Promise.all(TARGETS.map((target) => caller.invoke({ ...target, action: ACTION }, {})));
  commandId = answers[0]?.handle.commandId ?? '';
  reportPlaces();
  await registerSite(token);
  // The client connects again by itself, so that it is also listed among those that reconnect most.
  const [first] = runtimes;
  const connected = new Promise((done) => first?.onStatus(({ state }) => state === 'connected' && done(state)));
  const reason = `${USER} asked for it: ${CLIENTS[1]}`;
  await createAdmin({ url: relay.url, token: relay.admin }).disconnect({ userId: USER, clientId: CLIENTS[0], reason });
  await connected;
  ({ page } = await openConsole(browser, `${relay.url}/console/nowhere`, { token: relay.admin }));
});
/** Each test has calls of its own with callers that wait, so that none ends by its budget before it is looked at. */
beforeEach(async () => {
  const acknowledged = { waitFor: 'acknowledged', respondWithinMs: RESPOND_WITHIN_MS.max } as const;
  for (const target of TARGETS) {
    const { handle } = await caller.invoke({ ...target, action: 'wait' }, {}, acknowledged);
    void caller.await(handle, { withinMs: AWAIT_WITHIN_MS.max }).catch(() => undefined);
  }
});
afterEach(() => waiting.splice(0).forEach((done) => done()));
afterAll(async () => {
  await browser?.close();
  await Promise.all((runtimes ?? []).map((runtime) => runtime.close({ withinMs: 0 })));
  await relay?.[Symbol.asyncDispose]();
});

/** Reports a worker with a task, in a window, under ids of 100 characters. */
function reportPlaces(): void {
  const place = { windowId: LONG, ownership: 'worker' } as const;
  const window = { type: 'normal', state: 'normal', status: 'open', focused: true, incognito: false } as const;
  runtimes[0]?.reportWindows([{ ...place, ...window, draining: false, tabCount: 2 }]);
  runtimes[0]?.reportContexts([{ ...place, contextId: LONG, status: 'active', taskId: LONG }]);
}

/** Registers a site with an id of 100 characters, and opens a session of it. */
async function registerSite(token: string): Promise<void> {
  const site = { siteId: LONG, eventNames: [LONG], actions: [ACTION], capabilityProfile: { actionInvocation: true } };
  await runtimes[0]?.site(site).registered;
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const opened = await fetch(`${relay.url}/sites/${LONG}/sessions`, { method: 'POST', headers, body: '{}' });
  expect(opened.status).toBe(200);
}

const client = `${encodeURIComponent(USER)}/${CLIENTS[0]}`;
/** The pages that name a user, a client or an action, each with a text that its data shows. */
const PAGES: readonly (readonly [path: string, text: string])[] = [
  ['', CLIENTS[0]],
  ['calls', CLIENTS[1]],
  ['calls/COMMAND', 'What is proven'],
  ['waits', CLIENTS[1]],
  ['clients', CLIENTS[1]],
  ['clients?view=reconnects', CLIENTS[0]],
  ['clients?view=backlog', CLIENTS[0]],
  ['clients?view=silence', CLIENTS[1]],
  [`clients/${client}`, ACTION],
  ['actions', ACTION],
  [`actions/${ACTION}`, CLIENTS[0]],
  ['users', USER],
  [`users/${encodeURIComponent(USER)}`, CLIENTS[1]],
  ['history', 'Newest streams'],
  [`history?user=${encodeURIComponent(USER)}`, CLIENTS[1]],
  [`history?stream=${encodeURIComponent(`${USER}/links`)}`, 'on this page'],
  [`history?stream=${encodeURIComponent(`${USER}/clients/${CLIENTS[0]}`)}`, 'on this page'],
  ['capacity', USER],
  ['places', LONG],
  ['sites', LONG],
  [`sites/${encodeURIComponent(USER)}/${LONG}`, ACTION],
  ['nodes', 'Reporting'],
  ['audit', CLIENTS[0]],
];

/**
 * Returns what a reader cannot see of the page, without scrolling sideways: texts that their box or a box around it cuts,
 * texts outside the window, texts of cells that lie upon each other, and tables that are wider than their place.
 */
async function unseen(): Promise<readonly string[]> {
  return page.evaluate(() => {
    const main = document.querySelector('#main');
    if (!main) return ['no page'];
    const faults: string[] = [];
    /** Texts that are for screen readers, or that a person opens, and tabs and filters, which scroll. */
    const HIDDEN = `.sr, svg, option, .views, .filters, details:not([open]), ${innerWidth < 736 ? '.cards thead, .pause span' : '.none'}`;
    const about = (element: Element): string =>
      `${element.tagName.toLowerCase()}.${element.className}: ${(element.textContent ?? '').slice(0, 60)}`;
    for (const place of main.querySelectorAll('.scroll'))
      if (!place.closest('details:not([open])') && place.scrollWidth > place.clientWidth + 1)
        faults.push(`wider than its place: ${about(place)}`);
    const texts = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      const parent = node.parentElement;
      if (!parent || (node.textContent ?? '').trim() === '' || parent.closest(HIDDEN)) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      const box = range.getBoundingClientRect();
      if (box.width === 0) continue;
      if (box.right > innerWidth + 1 || box.left < -1) faults.push(`outside the window: ${about(parent)}`);
      for (let around: Element | null = parent; around && around !== main; around = around.parentElement) {
        const clip = getComputedStyle(around).overflowX;
        const edge = around.getBoundingClientRect();
        if (clip !== 'visible' && (box.right > edge.right + 1 || box.left < edge.left - 1))
          faults.push(`cut by ${around.className}: ${about(parent)}`);
      }
    }
    for (const row of main.querySelectorAll('tbody tr')) {
      const boxes = [...row.children].map((cell) => {
        const range = document.createRange();
        const shown = cell.querySelector('[aria-hidden]') ?? cell;
        range.selectNodeContents(shown);
        return { cell, box: range.getBoundingClientRect() };
      });
      boxes.forEach(({ cell, box }, at) => {
        for (const other of boxes.slice(at + 1)) {
          const overlap =
            Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left) > 1 &&
            Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top) > 1;
          if (overlap && box.width > 0 && other.box.width > 0)
            faults.push(`${about(cell)} lies upon ${about(other.cell)}`);
        }
      });
    }
    return [...new Set(faults)];
  });
}

describe.each([
  [1280, 800],
  [390, 844],
])('at %i pixels', (width, height) => {
  it.each(PAGES)('%s shows every name whole', async (path, text) => {
    await page.setViewportSize({ width, height });
    await goTo(page, path.replace('COMMAND', `${client}/${commandId}`));
    await page.locator('#main').getByText(text).first().waitFor();
    // A part of the page may still be read, which moves the others.
    await expect.poll(unseen).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      expect([colorScheme, await axeViolations(page, colorScheme)]).toEqual([colorScheme, []]);
    }
  });
});

it('the drawer shows whole which client it invokes', async () => {
  for (const [width, height] of [
    [1280, 800],
    [390, 844],
  ] as const) {
    await page.setViewportSize({ width, height });
    await page.goto(`${relay.url}/console/clients/${client}`);
    await page.getByRole('button', { name: `Invoke ${ACTION}…` }).click();
    const name = page.locator('.drawer-head').getByText(CLIENTS[0]);
    await name.waitFor();
    const box = await name.boundingBox();
    expect(box && box.x >= 0 && box.x + box.width <= width).toBe(true);
    expect(await page.evaluate(() => document.querySelector('.drawer')?.scrollWidth)).toBeLessThanOrEqual(width);
  }
});
