/**
 * Tests the pages of the relay that are not the console: the start page, the reference of the routes, and the form that
 * signs in to the GraphQL editor. They look like the console, and fit a phone.
 */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startHttpRelay, type HttpRelay } from '../http/kit/http-relay.ts';
import { launchChromium } from './kit/chromium.ts';
import { axeViolations, expectClean, openConsole } from './kit/console-page.ts';

let browser: Browser;
let relay: HttpRelay;
beforeAll(async () => void ([browser, relay] = await Promise.all([launchChromium(), startHttpRelay()])));
afterAll(async () => {
  await browser?.close();
  await relay?.[Symbol.asyncDispose]();
});

/** The look of a page: what a person sees first. */
const lookOf = (): readonly string[] => {
  const { backgroundColor, color, fontFamily } = getComputedStyle(document.body);
  const head = getComputedStyle(document.querySelector('h1') ?? document.body);
  const ground = getComputedStyle(document.documentElement).backgroundColor;
  const isClear = backgroundColor === 'rgba(0, 0, 0, 0)';
  return [isClear ? ground : backgroundColor, color, fontFamily, head.fontSize, head.fontWeight];
};

const PAGES: readonly (readonly [path: string, heading: string])[] = [
  ['/', 'Callboard'],
  ['/reference', 'REST reference'],
  ['/graphql', 'Sign in'],
];

/** A path of the console whose look is compared: its form for a token has the same heads and ground as its pages. */
const CONSOLE = '/console/';

it.each(PAGES)(
  '%s has the console’s look in both themes and widths, and no fault that axe finds',
  async (path, heading) => {
    const other = await openConsole(browser, `${relay.url}${CONSOLE}`);
    await other.page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    const opened = await openConsole(browser, `${relay.url}${path}`);
    const { page } = opened;
    await page.getByRole('main').getByRole('heading', { level: 1, name: heading }).waitFor();
    for (const width of [390, 1280])
      for (const colorScheme of ['light', 'dark'] as const) {
        for (const one of [page, other.page]) {
          await one.setViewportSize({ width, height: 900 });
          await one.emulateMedia({ colorScheme });
        }
        expect(await page.evaluate(lookOf)).toEqual(await other.page.evaluate(lookOf));
        expect(await page.evaluate(() => [innerWidth, document.documentElement.scrollWidth])).toEqual([width, width]);
        expect([width, colorScheme, await axeViolations(page)]).toEqual([width, colorScheme, []]);
      }
    await page.setViewportSize({ width: 390, height: 900 });
    await page.evaluate(() => document.querySelectorAll('details').forEach((one) => one.setAttribute('open', '')));
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
    expectClean(opened);
    await page.context().close();
    await other.page.context().close();
  },
);

it('a fault of the form that signs in to the editor is told beside its field', async () => {
  const { page } = await openConsole(browser, `${relay.url}/graphql`, { width: 390 });
  await page.getByLabel('Token').fill('not-a-token');
  await page.getByRole('button', { name: 'Open the editor' }).click();
  await page.getByRole('alert').getByText('The relay does not accept this token.').waitFor();
  expect(await page.getByLabel('Token').getAttribute('aria-invalid')).toBe('true');
  expect(await axeViolations(page)).toEqual([]);
  await page.context().close();
});
