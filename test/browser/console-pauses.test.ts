/** Tests the red button of the console, which stops calls, and what lets them go on, by keyboard alone. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { launchChromium } from './kit/chromium.ts';
import { HAS_PAUSES } from '../kit/store.ts';
import { axeViolations, expectClean, openConsole, type ConsolePage } from './kit/console-page.ts';
import { startConsoleRelay, startRunning, type ConsoleRelay } from './kit/console-relay.ts';
import { tabAndEnter, tabAndType, tabTo } from './kit/keyboard.ts';

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
const button = (name: string) => page.getByRole('button', { name, exact: true });
const dialog = () => page.getByRole('dialog');
const main = () => page.locator('#main');

/** Invokes an action of alice's client, and returns the code with which it is refused; null if it is not. */
async function refusal(): Promise<string | null> {
  const target = { userId: 'alice', clientId: 'kiosk-1', action: 'notes.add' };
  return bench.caller.invoke(target, { text: 'milk' }).then(
    () => null,
    (error: { readonly code: string }) => error.code,
  );
}

/** Opens the dialog of the page at this path, and waits until it has counted. */
async function open(path: string): Promise<void> {
  await page.goto(address(path));
  await tabAndEnter(button('Stop calls…'));
  await dialog()
    .getByText(/connected clients?; /)
    .waitFor();
}

/** Ends the pause that the page shows. */
async function resume(): Promise<void> {
  await tabAndEnter(main().getByRole('button', { name: /^Resume: / }));
  await tabAndEnter(dialog().getByRole('button', { name: 'Resume', exact: true }));
  await main().getByText('are stopped').waitFor({ state: 'detached' });
}

it.runIf(!HAS_PAUSES)('says that the store of the deployment cannot stop calls', async () => {
  await open('');
  await tabAndType(page.getByLabel('Reason'), 'the agent runs wild');
  await page.keyboard.press('Enter');
  await dialog().getByRole('alert').getByText('The store of this deployment has no pauses.').waitFor();
  expect(await refusal()).toBeNull();
});

describe.runIf(HAS_PAUSES)('the red button', () => {
  it('stops everything from the overview in two acts, without a reason', async () => {
    await open('');
    await tabAndEnter(button('Stop them'));
    await dialog().getByText('Calls are stopped').waitFor();
    await tabAndEnter(button('Close'));
    await main().getByText('until somebody resumes: Stopped in the console').waitFor();
    expect(await refusal()).toBe('paused');
    await resume();
  });

  it('stops everything from the overview: counts first, says what it did, and resumes', async () => {
    await using _running = await startRunning(bench);
    await open('');
    await dialog().getByText('1 connected client; 0 calls wait, 1 runs now.').waitFor();
    await tabAndType(page.getByLabel('Reason'), 'the agent runs wild');
    await page.keyboard.press('Enter');
    await dialog().getByText('Calls are stopped').waitFor();
    await tabAndEnter(button('Close'));
    await main().getByText('All calls are stopped by administrator').waitFor();
    await main().getByText('until somebody resumes: the agent runs wild').waitFor();
    expect(await refusal()).toBe('paused');
    await resume();
    expect(await refusal()).toBeNull();
  });

  it('stops the calls of a user for a time, and asks to cancel what runs', async () => {
    await using running = await startRunning(bench);
    await open('users/alice');
    await tabAndType(page.getByLabel('Reason'), 'lunch');
    await tabTo(page.getByLabel('How long'));
    await page.keyboard.press('ArrowDown');
    await tabTo(page.getByRole('radio', { name: 'run on' }));
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await dialog().getByText('The clients of 1 call that runs were asked to stop.').waitFor();
    await tabAndEnter(button('Close'));
    await main().getByText('All calls to clients of alice are stopped').waitFor();
    await main()
      .getByText(/, until \d\d:\d\d/)
      .waitFor();
    const ended = await bench.caller.await(running.handle);
    expect(ended.outcome).toBe('cancelled');
    await resume();
  });

  it('stops the agents of one client, and refuses a time that is over', async () => {
    await open('clients/alice/kiosk-1');
    await tabTo(page.getByRole('radio', { name: 'all calls' }));
    await page.keyboard.press('ArrowRight');
    await dialog().getByText('all calls of agents to kiosk-1').waitFor();
    await tabAndType(page.getByLabel('Reason'), 'odd');
    await tabTo(page.getByLabel('How long'));
    await page.keyboard.press('End');
    await tabAndType(page.getByLabel('Until, in UTC'), '2001-01-01T00:00');
    await page.keyboard.press('Enter');
    await dialog().getByRole('alert').getByText('Write a time to come').waitFor();
    await tabAndType(page.getByLabel('Until, in UTC'), new Date(Date.now() + 7_200_000).toISOString().slice(0, 16));
    await page.keyboard.press('Enter');
    await dialog().getByText('Calls are stopped').waitFor();
    await tabAndEnter(button('Close'));
    await main().getByText('Calls of agents to alice / kiosk-1 are stopped').waitFor();
    // It concerns agents alone.
    expect(await refusal()).toBeNull();
    await page.goto(address('agents'));
    await main().getByText('Calls of agents to alice / kiosk-1 are stopped').waitFor();
    await resume();
  });

  it('shows what the person at a client has stopped; Escape leaves the dialog without a stop', async () => {
    await bench.runtime.pause('I type myself');
    await open('agents');
    await page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'detached' });
    await main().getByText('All calls to alice / kiosk-1 are stopped by the person at kiosk-1').waitFor();
    await resume();
    expect(await refusal()).toBeNull();
  });

  it('lets a user stop its own calls, and not end what an administrator has stopped', async () => {
    const token = await bench.relay.token('alice', 'invoke');
    const own = await openConsole(browser, address(''), { token });
    const ofUser = own.page;
    await tabAndEnter(ofUser.getByRole('button', { name: 'Stop calls…' }));
    await tabAndType(ofUser.getByLabel('Reason'), 'mine');
    await ofUser.keyboard.press('Enter');
    await ofUser.getByRole('dialog').getByText('Calls are stopped').waitFor();
    await open('users/alice');
    await tabAndType(page.getByLabel('Reason'), 'from above');
    await page.keyboard.press('Enter');
    await tabAndEnter(button('Close'));
    await ofUser.goto(address(''));
    await ofUser.getByText('by administrator').waitFor();
    expect(await ofUser.getByRole('button', { name: /^Resume: / }).count()).toBe(1);
    await ofUser.context().close();
    for (const reason of ['from above', 'mine']) {
      const notice = main().locator('.notice', { hasText: reason });
      await tabAndEnter(notice.getByRole('button', { name: /^Resume: / }));
      await tabAndEnter(dialog().getByRole('button', { name: 'Resume', exact: true }));
      await notice.waitFor({ state: 'detached' });
    }
  });

  describe.each([1280, 390])('at a width of %i', (width) => {
    it('axe finds no fault in the dialog and the notice, in either theme, and nothing is wider than the page', async () => {
      await page.setViewportSize({ width, height: 844 });
      await bench.runtime.pause('a reason that is long enough to need a second line on a phone');
      await open('clients/alice/kiosk-1');
      const shots: Readonly<Record<string, () => Promise<unknown>>> = {
        dialog: () => dialog().waitFor(),
        notice: async () => {
          await page.keyboard.press('Escape');
          await main().getByText('are stopped').waitFor();
        },
      };
      for (const show of Object.values(shots)) {
        await show();
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme });
          expect([colorScheme, await axeViolations(page, colorScheme)]).toEqual([colorScheme, []]);
        }
        expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
      }
      await bench.runtime.resume();
    });
  });
});
