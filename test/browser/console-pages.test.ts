/**
 * Tests every page of the console in a real browser: data, requests, content security policy, accessibility, and narrow
 * screens.
 */
import { join } from 'node:path';
import type { Browser, Page, Request, Response } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { launchChromium } from './kit/chromium.ts';
import { axeViolations, type ConsolePage, expectClean, goTo, openConsole } from './kit/console-page.ts';
import { type ConsoleRelay, startConsoleRelay, startCrowd } from './kit/console-relay.ts';

// Takes the pictures of the console for the documentation.

const FOLDER = join(import.meta.dirname, '..', '..', 'docs', 'console');

/**
 * The pictures to take, each with the path and the heading of its page. The picture `call` shows the newest call that
 * ended `outcome_unknown`.
 */
const PICTURES: readonly (readonly [name: string, path: string, heading: string])[] = [
  ['overview', '', 'Overview'],
  ['calls', 'calls', 'Calls'],
  ['call', 'calls?outcome=outcome_unknown', 'Calls'],
];

type PicturesOf = { readonly url: string; readonly token: string };

/** Writes docs/console/*.png in both themes from a running relay, and resolves with their names. */
async function takePictures(browser: Browser, { url, token }: PicturesOf): Promise<readonly string[]> {
  const written: string[] = [];
  const { page } = await openConsole(browser, `${url}/console/nowhere`, { token });
  for (const [name, path, heading] of PICTURES) {
    await page.goto(`${url}/console/${path}`);
    await page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor();
    if (name === 'call') await page.locator('tbody .id').first().click();
    await page
      .locator({ overview: '.plots', calls: 'tbody tr', call: '.tl li' }[name] ?? 'h1')
      .first()
      .waitFor();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: join(FOLDER, `${name}-${colorScheme}.png`) });
      written.push(`${name}-${colorScheme}.png`);
    }
  }
  await page.context().close();
  return written;
}

const WIDE = { width: 1280, height: 900 };
const PHONE = { width: 390, height: 844 };

let browser: Browser;
let bench: ConsoleRelay;
let crowd: AsyncDisposable;
let commandId: string;
let opened: ConsolePage;
let page: Page;
/** The names of the operations that the page sent since they were last read. */
const sent: string[] = [];

beforeAll(async () => {
  [browser, bench] = await Promise.all([launchChromium(), startConsoleRelay()]);
  crowd = await startCrowd(bench);
  const { caller, relay } = bench;
  const { handle } = await caller.invoke(
    { userId: 'alice', clientId: 'kiosk-1', action: 'notes.add' },
    { text: 'milk' },
  );
  commandId = handle.commandId;
  await caller.invoke({ userId: 'alice', clientId: 'kiosk-1', action: 'notes.fail' }, {});
  opened = await openConsole(browser, `${relay.url}/console/nowhere`, { token: relay.admin });
  ({ page } = opened);
  page.on('request', (request) => void sent.push(...operationsOf(request)));
});
afterAll(async () => {
  await browser?.close();
  await crowd?.[Symbol.asyncDispose]();
  await bench?.[Symbol.asyncDispose]();
});

function operationsOf(request: Request): readonly string[] {
  const { query = '' } = /\/graphql(\/stream)?$/.test(request.url()) ? request.postDataJSON() : {};
  return [/^\s*(?:query|mutation|subscription) (\w+)/m.exec(query)?.[1] ?? []].flat();
}

/**
 * The pages of the console, each with its heading, a text that only its data shows, and all operations that it may
 * send. What is not on the screen is not requested. `COMMAND` is replaced by the id of a call.
 */
const PAGES: readonly (readonly [path: string, heading: string, text: string, operations: string])[] = [
  ['', 'Overview', 'How calls ended', 'Overview OverviewSeries Failures Pauses'],
  ['calls', 'Calls', 'notes.fail', 'Calls CallEvents Failures'],
  ['calls/alice/kiosk-1/COMMAND', 'notes.add', 'What is proven', 'CallPage'],
  ['waits', 'Waits', 'No caller waits', 'Waits CallEvents'],
  ['clients', 'Clients', 'kiosk-1', 'Clients BacklogCount ClientChanges'],
  ['clients/alice/kiosk-1', 'kiosk-1', 'Adds a note', 'ClientPage Calls Messages ClientChanges Pauses'],
  ['clients?view=backlog', 'Clients with a backlog', 'No client has a call', 'TopClients BacklogCount ClientChanges'],
  ['clients?view=silent', 'Clients', 'No client is on a silent node', 'Clients BacklogCount ClientChanges'],
  [
    'clients?view=reconnects',
    'Clients that reconnect most',
    'No client reconnected in the last hour',
    'TopClients BacklogCount ClientChanges',
  ],
  ['clients?view=silence', 'Clients that were silent longest', 'till-', 'TopClients BacklogCount ClientChanges'],
  ['clients/alice/nobody', 'nobody', 'no call and no link of it', 'ClientPage Calls Messages ClientChanges Pauses'],
  ['actions', 'Actions', 'notes.add', 'ActionSample'],
  [
    'actions/notes.add',
    'notes.add',
    'The client checks them',
    'ActionSample ActionCalls Failures ActionDetails ActionPermissions',
  ],
  ['users', 'Users', 'alice', 'Users'],
  ['users/alice', 'alice', 'notes.fail', 'UserPage UserTimeLine Messages ActionPermissions ClientChanges Pauses'],
  ['devices', 'Devices', 'No device is enrolled', 'Devices ClientChanges'],
  ['revocations', 'Revocations', 'No token is revoked', 'Revocations'],
  ['history', 'History', 'Newest streams', 'NewestStreams'],
  ['history?user=alice', 'History', 'clients/kiosk-1', 'Streams'],
  ['history?stream=alice%2Fclients%2Fkiosk-1', 'clients/kiosk-1', 'messages on this page', 'Messages'],
  ['history?stream=alice%2Flinks', 'links', 'on this page', 'Messages'],
  ['places', 'Workers and windows', 'No client reports a context', 'Contexts Windows'],
  ['places/alice/kiosk-1/nowhere', 'nowhere', 'does not report this context', 'PlacePage'],
  ['nodes', 'Nodes', 'What a restart keeps', 'Nodes Dedup'],
  ['dedup', 'Nodes', 'Implementation', 'Nodes Dedup'],
  ['limits', 'Limits', 'Commands with a record', 'Capacity'],
  ['sites', 'Sites', 'No site is registered', 'Sites'],
  ['audit', 'Audit', 'No operator did anything yet', 'Audit AuditCheck'],
  ['agents', 'Agents', 'This relay does not serve agents', 'AgentCalls Pauses'],
  ['nowhere', 'No such page', 'no page at this address', ''],
];

/** The operations that the frame around every page requests. */
const FRAME = ['Viewer', 'Shell'];

describe('every page', () => {
  it.each(PAGES)(
    '%s shows its data and requests nothing else, has no fault that axe finds in either theme, is short, and fits a phone',
    async (path, heading, text, operations) => {
      const before = new Set(sent.splice(0));
      await goTo(page, path.replace('COMMAND', commandId));
      const main = page.locator('#main');
      await main.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor();
      await main.getByText(text).first().waitFor();
      // The previous page repeats its requests until the new page replaces it.
      const own = operations === '' ? [] : operations.split(' ');
      await expect.poll(() => own.filter((name) => !sent.includes(name))).toEqual([]);
      expect(sent.filter((name) => !own.includes(name) && !FRAME.includes(name) && !before.has(name))).toEqual([]);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        expect([colorScheme, await axeViolations(page, colorScheme)]).toEqual([colorScheme, []]);
      }
      expect(await page.evaluate(() => document.querySelectorAll('*').length)).toBeLessThan(1500);
      await page.setViewportSize(PHONE);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(PHONE.width);
      await page.setViewportSize(WIDE);
      expectClean(opened);
    },
  );

  it('has an address that the relay answers with the same file', async () => {
    const htmlOf = async (path: string): Promise<string> => (await fetch(`${bench.relay.url}/console/${path}`)).text();
    const html = await htmlOf('');
    for (const [path] of PAGES) expect([path, await htmlOf(path)]).toEqual([path, html]);
  });
});

it.each([
  ['calls', 'Calls', 'Next 40'],
  ['clients', 'Clients', 'Next 40'],
  ['clients?user=shop', 'Clients', 'Next 40'],
])('%s reads and shows one page of a longer list', async (path, heading, next) => {
  const answers: Promise<number | null>[] = [];
  // The page may give up a request for a newer one, whose answer it shows.
  const count = async (response: Response): Promise<number | null> => {
    const text = await response.text().catch(() => null);
    return text === null ? null : text.split('"clientId"').length - 1;
  };
  const keep = (response: Response): void => {
    if (operationsOf(response.request()).includes(heading)) answers.push(count(response));
  };
  page.on('response', keep);
  await goTo(page, 'nowhere');
  await page.locator('#main').getByText('no page at this address').waitFor();
  await goTo(page, path);
  await page.getByRole('link', { name: next }).waitFor();
  expect(await page.locator('tbody tr').count()).toBe(40);
  page.off('response', keep);
  const counts = (await Promise.all(answers)).filter((found) => found !== null);
  expect(new Set(counts)).toEqual(new Set([40]));
});

it('the page needs no token, allows no inline code, and its files are kept by the browser', async () => {
  const answer = await fetch(`${bench.relay.url}/console/calls/a/b/c`);
  const policy = answer.headers.get('content-security-policy') ?? '';
  expect(policy).not.toContain('unsafe');
  expect(policy).toContain("require-trusted-types-for 'script'");
  const html = await answer.text();
  expect(html).not.toContain(bench.relay.admin);
  const script = /src="([^"]+)"/.exec(html)?.[1] ?? '';
  const file = await fetch(new URL(script, bench.relay.url));
  expect(file.headers.get('cache-control')).toContain('immutable');
  const again = await fetch(answer.url, { headers: { 'if-none-match': answer.headers.get('etag') ?? '' } });
  expect(again.status).toBe(304);
  const moved = await fetch(`${bench.relay.url}/console?window=60m`, { redirect: 'manual' });
  expect([moved.status, moved.headers.get('location')]).toEqual([308, '/console/?window=60m']);
  expect((await fetch(`${bench.relay.url}/console/assets/..%2f..%2fbin.js`)).status).toBe(404);
});

it('before sign-in only its own files are requested; the overview then takes at most 80 kB of files', async () => {
  const { page: fresh } = await openConsole(browser, 'about:blank');
  const asked: string[] = [];
  fresh.on('request', (request) => void asked.push(new URL(request.url()).pathname));
  await fresh.goto(`${bench.relay.url}/console/`);
  await fresh.getByLabel('Token').waitFor();
  expect(asked.filter((path) => !path.startsWith('/console/'))).toEqual([]);
  for (const colorScheme of ['light', 'dark'] as const) {
    await fresh.emulateMedia({ colorScheme });
    expect([colorScheme, await axeViolations(fresh, colorScheme)]).toEqual([colorScheme, []]);
  }
  await fresh.getByLabel('Token').fill(bench.relay.admin);
  await fresh.keyboard.press('Enter');
  await fresh.getByText('How calls ended').waitFor();
  const sizes = await fresh.evaluate(() =>
    performance
      .getEntriesByType('resource')
      .flatMap((entry) => (entry instanceof PerformanceResourceTiming ? [entry] : []))
      .filter(({ name }) => name.includes('/console/assets/'))
      .map(({ encodedBodySize }) => encodedBodySize),
  );
  expect(sizes.length).toBeGreaterThan(3);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(80_000);
  await fresh.context().close();
});

it('keeps the chosen theme when the page is loaded again', async () => {
  await page.emulateMedia({ colorScheme: 'light' });
  const ground = (): Promise<string> => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await ground();
  await page.getByRole('radio', { name: 'Dark' }).check({ force: true });
  const dark = await ground();
  expect(dark).not.toBe(light);
  await page.reload();
  await page.getByRole('radio', { name: 'Dark' }).waitFor({ state: 'attached' });
  expect(await ground()).toBe(dark);
});

/**
 * The URL of a running relay with some traffic, such as that of the demo. The URL's password is an administrator's
 * token.
 */
const pictured = process.env['CALLBOARD_PICTURES'];

it.runIf(pictured)('writes the pictures of the documentation', async () => {
  const { origin: url, password: token } = new URL(pictured ?? '');
  expect(await takePictures(browser, { url, token })).toHaveLength(6);
});
