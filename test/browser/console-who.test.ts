/**
 * Tests the pages that say who and where: a tab with what runs in it, the time line of a user, who may call an action,
 * the agents that called, running calls with their progress, and unstable clients.
 */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createHttpCaller } from '../../src/clients/caller/index.ts';
import { createRuntime, type Runtime } from '../../src/clients/runtime/index.ts';
import { RESPOND_WITHIN_MS } from '../../src/core/limits.ts';
import { eventually } from '../kit/patience.ts';
import { connectClient, overHttp } from '../mcp/kit/agents.ts';
import { launchChromium } from './kit/chromium.ts';
import { axeViolations, expectClean, goTo, openConsole, type ConsolePage } from './kit/console-page.ts';
import { startConsoleRelay, type ConsoleRelay } from './kit/console-relay.ts';

let browser: Browser;
let bench: ConsoleRelay;
let opened: ConsolePage;
let page: Page;
let tab: Runtime;
let other: Runtime;
/** Makes the action `page.read` report progress, or end. */
let report: (payload: unknown) => void;
let end: () => void;

beforeAll(async () => {
  [browser, bench] = await Promise.all([launchChromium(), startConsoleRelay({ mcp: 'on' })]);
  const { relay } = bench;
  const started = Promise.withResolvers<void>();
  const handlers = (runtime: Runtime): void => {
    runtime.handle('page.read', { summary: 'Reads the page' }, (_, call) => {
      report = (payload) => call.progress(payload);
      runtime.reportContexts([
        { ...TAB, taskId: call.commandId },
        { ...TAB, contextId: 'tab-8', title: 'Orders' },
      ]);
      started.resolve();
      return new Promise((resolve) => (end = () => resolve({ read: true })));
    });
  };
  tab = await connectClient(relay, handlers, { clientId: 'browser-1' });
  const token = await relay.token('bob', 'connect', 'invoke');
  other = createRuntime({ url: relay.link, token, clientId: 'phone', clientType: 'mobile' });
  other.handle('ring', { summary: 'Rings' }, () => ({ rang: true }));
  other.connect();
  await other.ready();
  tab.reportContexts([TAB, { ...TAB, contextId: 'tab-8', title: 'Orders' }]);
  const ofAdmin = { headers: { authorization: `Bearer ${relay.admin}` } };
  await eventually(async () => expect(await (await fetch(`${relay.url}/contexts`, ofAdmin)).text()).toContain('tab-8'));
  // The greatest budget, so that the call does not end before the tests.
  const budget = { contextId: 'tab-7', waitFor: 'acknowledged', respondWithinMs: RESPOND_WITHIN_MS.max } as const;
  const call = bench.caller.invoke({ userId: 'alice', clientId: 'browser-1', action: 'page.read' }, {}, budget);
  const ofBob = createHttpCaller({ url: relay.url, token });
  await ofBob.invoke({ userId: 'bob', clientId: 'phone', action: 'ring' }, {});
  await Promise.all([call, started.promise]);
  opened = await openConsole(browser, `${relay.url}/console/nowhere`, { token: relay.admin });
  ({ page } = opened);
});
afterAll(async () => {
  await browser?.close();
  if (opened) expectClean(opened);
  await Promise.all([tab?.close({ withinMs: 0 }), other?.close({ withinMs: 0 })]);
  await bench?.[Symbol.asyncDispose]();
});

const TAB = { contextId: 'tab-7', title: 'Orders', status: 'active', ownership: 'worker' } as const;
const main = () => page.locator('#main');
const rowOf = (table: string, text: string | RegExp) =>
  main().getByRole('table', { name: table, exact: true }).locator('tbody tr', { hasText: text });

async function expectAccessible(): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    expect([colorScheme, await axeViolations(page, colorScheme)]).toEqual([colorScheme, []]);
  }
  await page.setViewportSize({ width: 390, height: 844 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
  await page.setViewportSize({ width: 1280, height: 900 });
}

it('two tabs of one title differ by their ids, and a row says what runs there', async () => {
  await goTo(page, 'places');
  await rowOf('Execution contexts', 'tab-8').getByText('Orders').waitFor();
  await rowOf('Execution contexts', 'tab-7').getByRole('link', { name: 'page.read' }).waitFor();
  await page.locator('.live').getByText('Live').waitFor();
  await expectAccessible();
});

it('the page of a tab says what runs there, who called it and since when, and follows what the client reports', async () => {
  await goTo(page, 'places/alice/browser-1/tab-7');
  const head = main().locator('.case-head');
  await head.getByText(/Runs page\.read, called by alice, for .*, as browser-1 reports\./).waitFor();
  await rowOf('Calls that named this context', 'page.read').waitFor();
  await expectAccessible();
  tab.reportContexts([{ ...TAB, title: 'Invoices', taskId: 'not-a-command' }]);
  await main().getByRole('heading', { level: 1, name: 'Invoices' }).waitFor();
  await head.getByText(/Runs …-command/).waitFor();
  // The call was written for this context, whatever the client says of its task.
  await head.getByText(/page\.read, called by alice .* was written for this context/).waitFor();
  await goTo(page, 'places/alice/browser-1/never');
  await main().getByText('browser-1 does not report this context.').waitFor();
  await expectAccessible();
});

it('running calls show how often and when their client reported progress, and nothing of the reports', async () => {
  report({ done: 1, secret: 'milk' });
  await goTo(page, 'calls?stage=acknowledged');
  await rowOf('Calls', 'page.read')
    .getByText(/1 report, .* ago/)
    .waitFor();
  expect(await main().getByText('milk').count()).toBe(0);
  await expectAccessible();
});

it('the time line of a user has calls to it and by it, acts and messages, each by itself and by client', async () => {
  const { relay } = bench;
  await fetch(`${relay.url}/connections/alice/browser-1/disconnect`, {
    method: 'POST',
    headers: { authorization: `Bearer ${relay.admin}` },
  }).then((answer) => answer.text());
  await goTo(page, 'users/alice');
  const line = 'Time line of this user';
  await rowOf(line, 'Call by it').getByRole('link', { name: 'page.read' }).waitFor();
  await rowOf(line, 'Act').getByText('Disconnect').waitFor();
  await rowOf(line, 'Message')
    .getByText(/Opened/)
    .first()
    .waitFor();
  await expectAccessible();
  const view = (name: string) =>
    main().getByRole('navigation', { name: 'Time line' }).getByRole('link', { name, exact: true });
  await view('To').click();
  await rowOf(line, 'Call to it').getByRole('link', { name: 'page.read' }).waitFor();
  expect(await rowOf(line, 'Message').count()).toBe(0);
  await view('Messages').click();
  await rowOf(line, 'Command').first().waitFor();
  await main().getByRole('searchbox').fill('client:kiosk-1');
  await page.keyboard.press('Enter');
  await main().getByText('client kiosk-1').waitFor();
  await expect.poll(() => rowOf(line, 'browser-1').count()).toBe(0);
  await goTo(page, 'users/alice?view=by&to=2000-01-01');
  await main().getByText('Nothing that matches is retained').waitFor();
});

it('who may call is told by the rules of the policy, for an action and for a user, with what is not known', async () => {
  await goTo(page, 'actions/notes.wipe');
  const about = main().locator('section', { hasText: 'Who may call it' });
  await about.getByText('The policy rule "no-wiping" denies it.').first().waitFor();
  expect(await about.getByText('May not', { exact: true }).count()).toBe(4);
  await goTo(page, 'users/alice');
  const row = rowOf('Who may call the actions of this user', 'notes.add');
  await row.getByText('Not known').waitFor();
  expect(await row.getByText('May', { exact: true }).count()).toBe(3);
  expect(await rowOf('Who may call the actions of this user', 'notes.wipe').getByText('May not').count()).toBe(4);
  await expectAccessible();
});

it('the history of all users begins with the newest streams', async () => {
  await goTo(page, 'history');
  const rows = main().getByRole('table', { name: 'Newest streams of all users' }).locator('tbody tr');
  await rows.getByText('clients/phone').waitFor();
  await rows.getByText('clients/browser-1').waitFor();
  await expectAccessible();
});

it('agents that called come first on the page of agents', async () => {
  await goTo(page, 'agents');
  await main().getByText('No agent has called in the last hour.').waitFor();
  const token = await bench.relay.token('alice', 'mcp');
  await using agent = await overHttp('SDK 2 at 2026-07-28', { url: bench.relay.url, token });
  const tools = await agent.list();
  const tool = tools.find(({ name }) => name.includes('notes') && name.includes('add'));
  await agent.call(tool?.name ?? '', { text: 'milk' });
  await main().getByRole('button', { name: 'Refresh' }).click();
  const row = rowOf('Agents that called', 'new-host 2.0');
  await row.getByRole('link', { name: 'notes.add' }).waitFor();
  await row.getByText('Completed').waitFor();
  await expectAccessible();
  end();
});

it('lists that are cut say so: calls of agents, and the streams and messages of a time line', async () => {
  await page.route('**/graphql', async (route) => {
    const { query } = route.request().postDataJSON();
    const answer = await route.fetch();
    const body = await answer.json();
    const more = { hasNextPage: true };
    if (/query AgentCalls\b/.test(query)) Object.assign(body.data.commands.pageInfo, more);
    if (/query UserTimeLine\b/.test(query)) {
      const { streams } = body.data;
      Object.assign(streams.pageInfo, more);
      const one = { ...streams.nodes[0], lastAt: '2026-01-01T00:00:00.000Z' };
      streams.nodes = [...streams.nodes, ...Array.from({ length: 7 }, () => one)];
    }
    if (/query Messages\b/.test(query)) {
      const source = { nodeId: null, observed: 1, limit: null, complete: false, reason: 'EVICTED' };
      body.data.messages.completeness = { complete: false, sources: [source] };
    }
    await route.fulfill({ response: answer, json: body });
  });
  await goTo(page, 'history');
  await goTo(page, 'agents');
  await main().getByText('latest calls are counted. An agent that called before them is not listed.').waitFor();
  await goTo(page, 'users/alice?view=messages');
  await main()
    .getByText(/^Messages of the 6 newest of the first \d+ streams are shown\./)
    .waitFor();
  await main().getByText('Older rows were dropped to make room for newer ones.').waitFor();
  await page.unrouteAll();
});

it('copies the address of a view, with its filters', async () => {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await goTo(page, 'calls?outcome=failed&user=alice');
  await page.getByRole('button', { name: 'Copy link' }).click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(page.url());
  expect(page.url()).toContain('outcome=failed&user=alice');
});
