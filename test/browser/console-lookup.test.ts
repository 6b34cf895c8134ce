/**
 * Tests how an operator finds calls: one by an id of a log, those that failed in groups, and those that wait with who
 * called.
 */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { launchChromium } from './kit/chromium.ts';
import { axeViolations, goTo, openConsole } from './kit/console-page.ts';
import { startConsoleRelay, startRunning, type ConsoleRelay } from './kit/console-relay.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const target = { userId: 'alice', clientId: 'kiosk-1' };

let browser: Browser;
let bench: ConsoleRelay;
let page: Page;
/** The ids of a call that completed, and of two in one trace. */
let ids: Readonly<Record<'done' | 'traced' | 'alsoTraced', string>>;

beforeAll(async () => {
  [browser, bench] = await Promise.all([launchChromium(), startConsoleRelay()]);
  const { handle } = await bench.caller.invoke({ ...target, action: 'notes.add' }, { text: 'milk' });
  const [traced, alsoTraced] = [await invokeTraced(), await invokeTraced()];
  ids = { done: handle.commandId, traced, alsoTraced };
  page = await fresh('nowhere', bench.relay.admin);
});
afterAll(async () => {
  await browser?.close();
  await bench?.[Symbol.asyncDispose]();
});

/** Adds a note in the trace, as an administrator, and returns the id of the call. */
async function invokeTraced(): Promise<string> {
  const headers = { authorization: `Bearer ${bench.relay.admin}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ params: { text: 'traced' }, trace_id: TRACE });
  const path = '/connections/alice/kiosk-1/actions/notes.add';
  const answer = await fetch(bench.relay.url + path, { method: 'POST', headers, body });
  const { command_id } = await answer.json();
  return command_id;
}

async function fresh(path: string, token: string): Promise<Page> {
  const opened = await openConsole(browser, `${bench.relay.url}/console/${path}`, { token });
  await opened.page.locator('#main h1').waitFor();
  return opened.page;
}

const main = (of = page) => of.locator('#main');

async function expectNoAxeFault(of = page): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await of.emulateMedia({ colorScheme });
    expect([colorScheme, await axeViolations(of, colorScheme)]).toEqual([colorScheme, []]);
  }
}

describe('the search box', () => {
  const box = (of = page) => of.getByRole('dialog', { name: 'Go to' });

  async function search(text: string, of = page): Promise<void> {
    await goTo(of, 'nowhere');
    await main(of).getByText('no page at this address').waitFor();
    await of.keyboard.press('Control+k');
    await box(of).getByRole('textbox').fill(text);
  }

  it('lists all commands of a trace, and opens the chosen one', async () => {
    await search(TRACE);
    await expect.poll(() => box().getByRole('link').count()).toBe(2);
    const links = await box().getByRole('link').allInnerTexts();
    for (const id of [ids.traced, ids.alsoTraced]) expect(links.join()).toContain(id.slice(-8));
    await expectNoAxeFault();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await main().getByText(ids.traced).first().waitFor();
  });

  it.each([
    ['the end of an id', (id: string) => id.slice(-8)],
    ['a whole id', (id: string) => id],
  ])('opens the only match of %s when Enter is pressed before the relay has answered', async (_, partOf) => {
    await search(partOf(ids.done));
    await page.keyboard.press('Enter');
    await main().getByRole('heading', { name: 'notes.add' }).waitFor();
    await main().getByText(ids.done).first().waitFor();
  });

  it('finds the own commands of a user, and says the same of foreign commands and of those that do not exist', async () => {
    const [alice, bob] = await Promise.all(
      ['alice', 'bob'].map(async (user) => fresh('nowhere', await bench.relay.token(user, 'invoke'))),
    );
    if (!alice || !bob) throw new Error('no page');
    await search(ids.traced.slice(-8), alice);
    await box(alice)
      .getByRole('link', { name: /notes\.add/ })
      .waitFor();
    const said: string[] = [];
    for (const id of [ids.traced, ids.traced.replace(/.{8}$/, '00000000')]) {
      await search(id, bob);
      const why = box(bob).getByText(/No command with a record/);
      await why.waitFor();
      said.push(await why.innerText());
      expect(await box(bob).getByRole('link').count()).toBe(0);
    }
    expect(said[0]).toBe(said[1]);
    await alice.context().close();
    await bob.context().close();
  });
});

describe('failures', () => {
  beforeAll(async () => {
    for (let i = 0; i < 3; i++) await bench.caller.invoke({ ...target, action: 'notes.fail' }, {});
  });

  it('are counted in groups on the overview, which lead to their calls and to the last one', async () => {
    await goTo(page, '');
    const failures = page.getByRole('region', { name: 'Not completed' });
    await failures.getByText('in the last 15 min').waitFor();
    await failures.getByRole('link', { name: /^notes\.fail: / }).waitFor();
    await expectNoAxeFault();
    await failures.getByRole('link', { name: 'Client', exact: true }).click();
    await failures.getByRole('link', { name: 'alice / kiosk-1' }).click();
    await main().getByRole('heading', { level: 1, name: 'Calls' }).waitFor();
    await expect.poll(() => main().locator('.two-lines tbody tr').count()).toBe(3);
    const url = new URL(page.url());
    expect(Object.fromEntries(url.searchParams)).toEqual({ ...{ outcome: 'failure', since: '15m' }, ...CLIENT });
    const row = page.getByRole('region', { name: 'Not completed' }).locator('tbody tr').first();
    await row.getByRole('link').last().click();
    await main().getByRole('heading', { name: 'notes.fail' }).waitFor();
  });

  const CLIENT = { user: 'alice', client: 'kiosk-1' };

  it('have their counts on the tabs of Calls, which keep the other filters', async () => {
    await goTo(page, 'calls?user=alice');
    const tabs = page.getByRole('navigation', { name: 'Views' });
    await tabs.getByRole('link', { name: 'Failed 3' }).waitFor();
    await tabs.getByRole('link', { name: 'Expired 0' }).waitFor();
    expect(await page.getByRole('region', { name: 'Not completed' }).count()).toBe(0);
    await tabs.getByRole('link', { name: 'Failed 3' }).click();
    await page
      .getByRole('region', { name: 'Not completed' })
      .getByRole('link', { name: /^notes\.fail: / })
      .waitFor();
    await expect.poll(() => main().locator('.two-lines tbody tr').count()).toBe(3);
    expect(new URL(page.url()).search).toBe('?user=alice&outcome=failed');
    expect(await tabs.locator('[aria-current]').innerText()).toContain('Failed');
    await expectNoAxeFault();
  });

  it('are said to be counted in part when the relay could not read all calls', async () => {
    await page.route('**/graphql', async (route) => {
      const answer = await route.fetch();
      const json = await answer.json();
      const failures = json.data?.delivery?.failures;
      for (const source of failures?.completeness.sources ?? [])
        Object.assign(source, { complete: false, reason: 'LIMIT_REACHED', limit: 10_000 });
      await route.fulfill({ response: answer, json });
    });
    await goTo(page, 'calls?outcome=failure');
    await main()
      .getByText(/Counted among the newest 10.000 calls/)
      .waitFor();
    await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'Failed 3+' }).waitFor();
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  });
});

describe('the list of calls', () => {
  const filterBox = () => page.getByRole('searchbox', { name: 'Filter calls' });

  it('stays on its tab while it follows new calls', async () => {
    await goTo(page, 'calls');
    await page.getByRole('link', { name: 'Follow' }).click();
    await page.getByRole('link', { name: 'Stop following' }).waitFor();
    expect(await page.getByRole('navigation', { name: 'Views' }).locator('[aria-current]').innerText()).toBe('All');
  });

  it('takes an id that is pasted into its filter, and names the caller of each call', async () => {
    await using _running = await startRunning(bench);
    await goTo(page, 'calls');
    await filterBox().fill(`…${ids.traced.slice(-8)}`);
    await page.keyboard.press('Enter');
    await expect.poll(() => main().locator('tbody tr').count()).toBe(1);
    await main()
      .locator('tbody')
      .getByTitle(/^Administrator .*: show all calls of this caller$/)
      .click();
    await expect.poll(() => main().locator('tbody tr').count()).toBe(2);
    await goTo(page, 'calls?caller=alice');
    await main().locator('tbody').getByRole('link', { name: 'notes.wait' }).waitFor();
    expect(await main().locator('tbody').getByText(ids.traced.slice(-8)).count()).toBe(0);
    await expectNoAxeFault();
  });

  it('takes any duration, and says what a duration is', async () => {
    await goTo(page, 'calls');
    await filterBox().fill('since:90s');
    await page.keyboard.press('Enter');
    await main().getByText('since 90 s').waitFor();
    await filterBox().fill('since:soon');
    await page.keyboard.press('Enter');
    await main().getByText('Since is a duration such as 30s, 5m or 2h.').waitFor();
  });

  it('has rows of one height, and the whole reason of an end as title', async () => {
    await goTo(page, 'calls?outcome=failed');
    await expect.poll(() => main().locator('.two-lines tbody tr').count()).toBe(3);
    const heights = await main()
      .locator('.two-lines tbody tr')
      .evaluateAll((rows) => rows.map((row) => row.getBoundingClientRect().height));
    expect(Math.max(...heights)).toBeLessThan(48);
    const why = main().locator('.two-lines .why span').first();
    expect(await why.getAttribute('title')).toBe(await why.innerText());
  });
});

it('the task of a context leads to its call', async () => {
  await using running = await startRunning(bench);
  const { commandId } = running;
  bench.runtime.reportContexts([{ contextId: 'tab-1', ownership: 'worker', status: 'active', taskId: commandId }]);
  await goTo(page, 'places');
  // The page reads what clients report again by itself.
  const task = main().getByRole('table', { name: 'Execution contexts' }).getByRole('link', { name: 'notes.wait' });
  await task.click();
  await main().getByRole('heading', { name: 'notes.wait' }).waitFor();
});

it('who waits, and who called: two acts from any page', async () => {
  await using _running = await startRunning(bench);
  await goTo(page, 'nowhere');
  await page.locator('.rail').getByText('Waits').click();
  await page.getByRole('combobox', { name: 'Older than' }).selectOption('1s');
  const row = main().locator('tbody tr');
  await row.getByRole('link', { name: 'notes.wait' }).waitFor();
  await row.getByTitle('User alice: show all waits of this caller').waitFor();
  await expectNoAxeFault();
  await goTo(page, 'waits?caller=nobody');
  await main().getByText('No wait matches').waitFor();
});
