/** Tests the drawer that invokes an action: what it names, what it sends, and where it shows the result. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../src/clients/runtime/index.ts';
import { launchChromium } from './kit/chromium.ts';
import { axeViolations, expectClean, openConsole, type ConsolePage } from './kit/console-page.ts';
import { startConsoleRelay, type ConsoleRelay } from './kit/console-relay.ts';

const WIDE = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };

/** A schema as tills have one: closed, with an optional choice of objects, a constant and a list. */
const RECEIPT = {
  type: 'object',
  additionalProperties: false,
  required: ['order', 'version'],
  properties: {
    order: { type: 'string', title: 'Order', minLength: 2 },
    copies: { type: 'integer', minimum: 1, maximum: 20, title: 'Copies' },
    paper: { enum: ['80 mm roll', '58 mm roll', 'A4'], title: 'Paper' },
    deliver: {
      title: 'Deliver by',
      oneOf: [
        {
          title: 'Printer',
          type: 'object',
          required: ['kind'],
          additionalProperties: false,
          properties: { kind: { const: 'printer' }, tray: { type: 'string', title: 'Tray' } },
        },
        {
          title: 'E-mail',
          type: 'object',
          required: ['kind', 'to'],
          additionalProperties: false,
          properties: { kind: { const: 'email' }, to: { type: 'string', title: 'To', minLength: 3 } },
        },
      ],
    },
    lines: { type: 'array', maxItems: 8, items: { type: 'string' }, title: 'Lines to repeat' },
    open: { type: 'boolean', title: 'Open the drawer' },
    version: { const: 2, title: 'Version' },
    size: { title: 'Size', anyOf: [{ type: 'integer' }, { type: 'string', enum: ['small', 'large'] }] },
  },
};

let browser: Browser;
let bench: ConsoleRelay;
let till: Runtime;
let opened: ConsolePage;
let page: Page;
/** The arguments with which the till was called. */
const received: unknown[] = [];

beforeAll(async () => {
  [browser, bench] = await Promise.all([launchChromium(), startConsoleRelay()]);
  const { relay } = bench;
  till = createRuntime({
    url: relay.link,
    token: await relay.token('marta', 'connect'),
    clientId: 'till-02',
    clientType: 'console',
  });
  till.handle('receipt.print', { summary: 'Prints a receipt', schema: RECEIPT }, (params) => {
    received.push(params);
    return { printed: received.length };
  });
  till.handle('door.hold', { summary: 'Holds the door' }, (_params, { signal }) => {
    return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  });
  till.connect();
  await till.ready();
  opened = await openConsole(browser, `${relay.url}/console/nowhere`, { token: relay.admin });
  ({ page } = opened);
});
afterEach(() => expectClean(opened));
afterAll(async () => {
  await browser?.close();
  await till?.close({ withinMs: 0 });
  await bench?.[Symbol.asyncDispose]();
});

const drawer = () => page.locator('.drawer');
const field = (name: string) => drawer().getByLabel(name, { exact: true });
const invoke = () => drawer().locator('.drawer-foot .btn-primary');

/** Opens the drawer for an action of the till, from the page of the till. */
async function open(action: string, size = WIDE): Promise<void> {
  await page.setViewportSize(size);
  await page.goto(`${bench.relay.url}/console/clients/marta/till-02`);
  await page.getByRole('button', { name: `Invoke ${action}…` }).click();
  await page.getByText('The relay would admit it.').waitFor();
}

/** The arguments as the tab of JSON shows them. */
async function json(): Promise<unknown> {
  await drawer().getByText('JSON', { exact: true }).click();
  return JSON.parse(await drawer().locator('#params').inputValue());
}

async function writeJson(text: string): Promise<void> {
  await drawer().getByText('JSON', { exact: true }).click();
  await drawer().locator('#params').fill(text);
}

async function isInView(text: RegExp | string): Promise<boolean> {
  const found = drawer().getByText(text).first();
  await found.waitFor();
  return found.evaluate((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    const middle = (top + bottom) / 2;
    const at = document.elementFromPoint(element.getBoundingClientRect().left + 2, middle);
    return top >= 0 && bottom <= innerHeight && at !== null && (element.contains(at) || at.contains(element));
  });
}

describe('the head', () => {
  it('names the client from its own page, and when another action is chosen', async () => {
    await open('receipt.print');
    await drawer().locator('.drawer-head').getByText('marta / till-02').waitFor();
    await drawer().getByRole('button', { name: 'Another action' }).click();
    await drawer().locator('.drawer-head').getByText('marta / till-02').waitFor();
    await drawer()
      .getByRole('button', { name: /^door.hold/ })
      .click();
    await drawer().locator('.drawer-head').getByText('marta / till-02').waitFor();
  });

  it('names the client from the page of actions', async () => {
    await page.goto(`${bench.relay.url}/console/actions`);
    await page.getByRole('heading', { name: 'Actions' }).waitFor();
    await page.keyboard.press('i');
    await drawer()
      .getByRole('button', { name: /marta \/ till-02/ })
      .click();
    await drawer()
      .getByRole('button', { name: /^receipt.print/ })
      .click();
    await drawer().locator('.drawer-head').getByText('marta / till-02').waitFor();
  });
});

describe('the result', () => {
  it.each([
    ['a screen of 1280 x 800', WIDE],
    ['a phone', PHONE],
  ])('is in view on %s, with its duration', async (_, size) => {
    await open('receipt.print', size);
    await field('Order').fill('R-17');
    await field('Tray').waitFor({ state: 'detached' });
    await drawer().getByText('The client would refuse its arguments.').waitFor({ state: 'detached' });
    await invoke().click();
    await drawer()
      .getByText(/^in \d+ ms|^in [\d.]+ s/)
      .waitFor();
    expect(await isInView('Completed')).toBe(true);
    expect(await isInView(/^in [\d.]+ m?s/)).toBe(true);
    expect(await isInView(/"printed":\d/)).toBe(true);
  });

  it('links its call, which is then shown in place of the drawer', async () => {
    await open('receipt.print');
    await field('Order').fill('R-17');
    await invoke().click();
    await drawer().getByText('Completed').first().waitFor();
    await drawer().locator('.verdict a').click();
    await drawer().waitFor({ state: 'detached' });
    await page.locator('#main').getByRole('heading', { name: 'What is proven' }).waitFor();
  });

  it('has a button that cancels the call while it runs', async () => {
    await open('door.hold');
    await invoke().click();
    const cancel = drawer().getByRole('button', { name: 'Cancel the call' });
    await cancel.waitFor();
    expect(await isInView('Cancel the call')).toBe(true);
    await expect.poll(() => invoke().getAttribute('aria-disabled')).toBe('true');
    await cancel.click();
    await drawer().getByText('Cancelled', { exact: true }).first().waitFor();
    await cancel.waitFor({ state: 'detached' });
  });
});

describe('what is sent', () => {
  it('has no optional choice unless one was made, in the form and as JSON', async () => {
    await open('receipt.print');
    await field('Order').fill('R-18');
    expect(await json()).toEqual({ order: 'R-18', version: 2 });
    await drawer().getByText('Form', { exact: true }).click();
    expect(await field('Left out').first().isChecked()).toBe(true);
    await invoke().click();
    await drawer().getByText('Completed').first().waitFor();
    expect(received.at(-1)).toEqual({ order: 'R-18', version: 2 });
  });

  it('has the choice that was made, and not the one that was left out again', async () => {
    await open('receipt.print');
    await field('Order').fill('R-19');
    await drawer().getByText('E-mail', { exact: true }).click();
    await field('To').fill('bob@example.com');
    expect(await json()).toEqual({ order: 'R-19', version: 2, deliver: { kind: 'email', to: 'bob@example.com' } });
    await drawer().getByText('Form', { exact: true }).click();
    expect(await field('To').inputValue()).toBe('bob@example.com');
    await drawer().locator('fieldset', { hasText: 'Deliver by' }).getByText('Left out').click();
    expect(await json()).toEqual({ order: 'R-19', version: 2 });
  });

  it('shows the choice that the JSON makes', async () => {
    await open('receipt.print');
    await writeJson('{"order":"R-20","version":2,"deliver":{"kind":"email"}}');
    await drawer().getByText('Form', { exact: true }).click();
    expect(await field('E-mail').isChecked()).toBe(true);
    await drawer().locator('.form').getByText('Required.').waitFor();
    await writeJson('{"order":"R-20","version":2}');
    await drawer().getByText('Form', { exact: true }).click();
    await field('To').waitFor({ state: 'detached' });
    expect(await field('Left out').first().isChecked()).toBe(true);
  });
});

describe('sending what was typed last', () => {
  it('waits for its check, and then sends it, or shows what does not fit', async () => {
    const held = Promise.withResolvers<void>();
    await page.route('**/assets/check-worker*', async (route) => {
      await held.promise;
      await route.continue();
    });
    await open('receipt.print');
    const before = received.length;
    await field('Order').fill('R-31');
    await page.keyboard.press('Control+Enter');
    await field('Order').fill('R');
    await page.keyboard.press('Control+Enter');
    held.resolve();
    await drawer().locator('.form').getByText('At least 2 characters.').waitFor();
    await field('Order').fill('R-32');
    await page.keyboard.press('Control+Enter');
    await expect.poll(() => received.slice(before)).toEqual([{ order: 'R-32', version: 2 }]);
    await page.unroute('**/assets/check-worker*');
  });
});

describe('faults', () => {
  const NOT_OURS = /False boolean|Instance |subschema|does not match|Property "/;

  it.each<readonly [string, object, readonly (string | RegExp)[]]>([
    ['a number above its bound', { copies: 24 }, ['At most 20.']],
    ['a number that is a text', { copies: 'two' }, ['Must be a whole number.']],
    ['a short text', { order: 'R' }, ['At least 2 characters.']],
    ['a wrong constant', { version: 3 }, ['Must be 2.']],
    ['a wrong choice', { paper: 'A5' }, [/One of "80 mm roll", "58 mm roll", "A4"\.$/]],
    ['a name that is not in the schema', { extra: 1 }, [/extra: The schema has no such name\./]],
    ['an alternative that lacks a part', { deliver: { kind: 'email' } }, ['Required.']],
    ['no alternative', { deliver: 7 }, ['Must be an object.']],
    ['none of two types', { size: false }, ['Must be a whole number or text.']],
  ])('%s has a few words of its own, once', async (_, members, texts) => {
    await open('receipt.print');
    await writeJson(JSON.stringify({ order: 'R-21', version: 2, ...members }));
    await drawer().getByText('The client would refuse its arguments.').waitFor();
    const shown = drawer().locator('#params-faults li');
    await expect.poll(() => shown.count()).toBe(texts.length);
    for (const text of texts) await shown.getByText(text).waitFor();
    expect(await drawer().innerText()).not.toMatch(NOT_OURS);
    await drawer().getByText('Form', { exact: true }).click();
    for (const text of texts) await drawer().locator('.form').getByText(text).first().waitFor();
    expect(await drawer().innerText()).not.toMatch(NOT_OURS);
    await drawer().getByText('Correct 1 field to invoke, or send it anyway').waitFor();
  });

  it('arguments that fit are said to fit, among what the relay and the client check', async () => {
    await open('receipt.print');
    await field('Order').fill('R-17');
    await drawer().locator('.checks summary').click();
    await drawer().getByText('They fit its schema, as checked here.').waitFor();
  });

  it('a member that the form has no field for is named in it', async () => {
    await open('receipt.print');
    await writeJson('{"order":"R-17","version":2,"extra":1}');
    await drawer().getByText('Form', { exact: true }).click();
    await drawer().locator('.form').getByText('The arguments also have extra. JSON shows it.').waitFor();
  });

  it('a constant is no field, and one that may be left out is', async () => {
    await open('receipt.print');
    expect(await drawer().getByRole('textbox', { name: 'Version' }).count()).toBe(0);
    await drawer().locator('.form').getByText('always 2').waitFor();
  });
});

it.each([
  ['light', WIDE],
  ['dark', WIDE],
  ['light', PHONE],
  ['dark', PHONE],
] as const)('axe finds no fault in the drawer in the %s theme', async (colorScheme, size) => {
  await page.emulateMedia({ colorScheme });
  await open('receipt.print', size);
  expect(await axeViolations(page)).toEqual([]);
  await drawer().getByText('E-mail', { exact: true }).click();
  await field('Copies').fill('24');
  await page.keyboard.press('Tab');
  await drawer().getByText('At most 20.').first().waitFor();
  expect(await axeViolations(page)).toEqual([]);
  await drawer().getByRole('button', { name: 'Invoke anyway' }).click();
  await drawer().getByText('Failed', { exact: true }).first().waitFor();
  expect(await axeViolations(page)).toEqual([]);
  await drawer().getByRole('button', { name: 'Another action' }).click();
  expect(await axeViolations(page)).toEqual([]);
  await drawer().getByRole('button', { name: 'Another client' }).click();
  await drawer()
    .getByRole('button', { name: /marta \/ till-02/ })
    .waitFor();
  expect(await axeViolations(page)).toEqual([]);
});

describe('the form', () => {
  it('says nothing of what is missing before a field is left or the call is to be sent', async () => {
    await open('receipt.print');
    expect(await drawer().locator('.err').count()).toBe(0);
    await drawer().getByText('The client would refuse its arguments.').waitFor({ state: 'detached' });
    await invoke().click();
    await drawer().locator('.form').getByText('Required.').first().waitFor();
    const anyway = drawer().getByRole('button', { name: 'Invoke anyway' });
    expect(await anyway.getAttribute('class')).not.toContain('btn-primary');
    expect(await invoke().getAttribute('aria-disabled')).toBe('true');
  });

  it('scrolls its body alone', async () => {
    await open('receipt.print', { width: 1280, height: 420 });
    await drawer().hover();
    await page.mouse.wheel(0, 4000);
    await expect
      .poll(() =>
        drawer()
          .locator('.drawer-body')
          .evaluate((body) => body.scrollTop),
      )
      .toBeGreaterThan(0);
    expect(await drawer().evaluate((dialog) => [dialog.scrollTop, dialog.scrollHeight - dialog.clientHeight])).toEqual([
      0, 0,
    ]);
    await drawer().getByRole('heading', { name: 'Invoke receipt.print' }).waitFor();
  });
});

describe('the keyboard', () => {
  const hasFocus = (selector: string) =>
    page.waitForFunction((wanted) => document.activeElement?.matches(wanted) ?? false, selector);

  it('begins in the first field, and Ctrl with Enter sends from anywhere in the drawer', async () => {
    await open('receipt.print');
    await hasFocus('#argument_order');
    await page.keyboard.type('A 17');
    await drawer().getByRole('button', { name: 'Close' }).focus();
    const before = received.length;
    await page.keyboard.press('Control+Enter');
    await drawer()
      .getByText(/"printed":\d+/)
      .waitFor();
    expect(received.slice(before)).toEqual([{ order: 'A 17', version: 2 }]);
    await page.keyboard.press('Escape');
  });

  it('goes into an entry that was added to a list', async () => {
    await open('receipt.print');
    await drawer().getByRole('button', { name: 'Add to Lines to repeat' }).click();
    await hasFocus('#argument_lines_0');
    expect(await drawer().locator('.form .err').getByText('Must be text.').count()).toBe(0);
    await page.keyboard.type('thanks');
    expect(await json()).toMatchObject({ lines: ['thanks'] });
    await page.keyboard.press('Escape');
  });

  it('filters the clients to choose from while typing, and Enter takes the only one', async () => {
    await page.goto(`${bench.relay.url}/console/actions`);
    await page.getByRole('heading', { name: 'Actions' }).waitFor();
    await page.keyboard.press('i');
    await drawer()
      .getByRole('button', { name: /alice \/ kiosk-1/ })
      .waitFor();
    await hasFocus('#invoke-client');
    await page.keyboard.type('TILL');
    await drawer()
      .getByRole('button', { name: /alice \/ kiosk-1/ })
      .waitFor({ state: 'detached' });
    await drawer()
      .getByRole('button', { name: /marta \/ till-02/ })
      .waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await page.keyboard.press('Enter');
    await drawer()
      .getByRole('button', { name: /^receipt\.print/ })
      .waitFor();
    await hasFocus('.choices button');
    await page.keyboard.press('Escape');
  });
});
