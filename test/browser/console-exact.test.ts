/** Tests that the form of an action sends exactly what was typed, key by key, and names what does not fit. */
import fc from 'fast-check';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../src/clients/runtime/index.ts';
import { launchChromium } from './kit/chromium.ts';
import { expectClean, openConsole, type ConsolePage } from './kit/console-page.ts';
import { startConsoleRelay, type ConsoleRelay } from './kit/console-relay.ts';

/** Each format of JSON Schema, and those for which the library of the form has widgets, with texts to type. */
const FORMATS: Readonly<Record<string, readonly string[]>> = {
  'date-time': ['2026-11-28T10:00:00Z', '2026-11-28T10:00:00+02:00', 'tomorrow'],
  date: ['2026-11-28', '28.11.2026'],
  time: ['10:00:00Z', '10:00', '9'],
  duration: ['P1DT2H', 'two hours'],
  email: ['bob@example.com', 'bob'],
  'idn-email': ['bób@example.com'],
  hostname: ['kiosk.example', '-'],
  'idn-hostname': ['bücher.example'],
  ipv4: ['10.0.0.1', '10.0.0'],
  ipv6: ['::1', '1'],
  uri: ['HTTPS://Example.com/a b', 'x'],
  'uri-reference': ['../a?b#c'],
  iri: ['https://bücher.example/ü'],
  'iri-reference': ['ü'],
  'uri-template': ['/a/{b}'],
  uuid: ['0190A0B1-c2d3-7e4f-8a5b-6c7d8e9f0a1b', '12'],
  'json-pointer': ['/a/~0b'],
  'relative-json-pointer': ['0/a'],
  regex: ['^(a|b)+$', '('],
  color: ['#FFF', 'red'],
  password: [' a b '],
  'data-url': ['data:,x'],
  'alt-date': ['2026-11-28'],
  hidden: ['seen'],
  nonsense: ['1.50'],
};
/** The texts that do not fit their format, and are named for it. */
const FAULTY = ['tomorrow', '28.11.2026', 'two hours', '10.0.0', '('];

const SCHEMA = {
  type: 'object',
  properties: {
    ...Object.fromEntries(Object.keys(FORMATS).map((format) => [format, { type: 'string', format }])),
    number: { type: 'number' },
    integer: { type: 'integer' },
    text: { type: 'string' },
  },
};

let browser: Browser;
let bench: ConsoleRelay;
let desk: Runtime;
let opened: ConsolePage;
let page: Page;
/** The arguments with which the client was called, as the text that reached it. */
const received: string[] = [];

beforeAll(async () => {
  [browser, bench] = await Promise.all([launchChromium(), startConsoleRelay()]);
  const { relay } = bench;
  const token = await relay.token('marta', 'connect');
  desk = createRuntime({ url: relay.link, token, clientId: 'desk', clientType: 'console' });
  desk.handle('form.send', { schema: SCHEMA }, (_, { paramsText }) => void received.push(paramsText));
  desk.connect();
  await desk.ready();
  opened = await openConsole(browser, `${relay.url}/console/clients/marta/desk`, { token: relay.admin });
  ({ page } = opened);
  await page.getByRole('button', { name: 'Invoke form.send…' }).click();
  await field('text').waitFor();
});
afterEach(() => expectClean(opened));
afterAll(async () => {
  await browser?.close();
  await desk?.close({ withinMs: 0 });
  await bench?.[Symbol.asyncDispose]();
});

const drawer = () => page.locator('.drawer');
const field = (name: string) => drawer().locator(`[id="argument_${name}"]`);

/** Types a text into an empty field, one key after the other. */
async function typeInto(name: string, text: string): Promise<void> {
  await field(name).focus();
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.press('Delete');
  await page.keyboard.type(text);
  expect(await field(name).inputValue()).toBe(text);
  await page.keyboard.press('Tab');
}

/** Sends the arguments, and returns their text as the page sent it. The client got the same, if it ran. */
async function send(): Promise<string> {
  const before = received.length;
  let isAsked = false;
  const asked = page.waitForRequest((request) => {
    isAsked ||= request.postData()?.includes('mutation Invoke') === true;
    return isAsked;
  });
  // What does not fit is sent by the button beside the usual one. A click that waited for a button to be enabled would
  // wait for ever if a fault appeared in between: the other button is then the one to click.
  const buttons = drawer().locator('.drawer-foot .btn[aria-disabled="false"]');
  await expect.poll(async () => isAsked || (await buttons.first().click({ force: true }), isAsked)).toBe(true);
  const body = (await asked).postData() ?? '';
  await drawer()
    .locator('.drawer-sent')
    .getByText(/^(Completed|Failed)$/)
    .first()
    .waitFor();
  await drawer().locator('.drawer-foot [aria-disabled="false"]').waitFor();
  const text = body.slice(body.indexOf('"params":') + '"params":'.length, -'}}}'.length);
  for (const other of received.slice(before)) expect(other).toBe(text);
  return text;
}

async function clear(): Promise<void> {
  await drawer().getByText('JSON', { exact: true }).click();
  await drawer().locator('#params').fill('{}');
  await drawer().getByText('Form', { exact: true }).click();
}

describe('a text with a format', () => {
  it.each([0, 1, 2])('reaches the client as typed (text %i of each format)', async (at) => {
    await clear();
    const typed = Object.entries(FORMATS).flatMap(([format, texts]) =>
      texts[at] === undefined ? [] : [[format, texts[at]] as const],
    );
    for (const [format, text] of typed) await typeInto(format, text);
    for (const [format, text] of typed)
      if (FAULTY.includes(text)) await drawer().getByText(`Not of the format ${format}.`).first().waitFor();
    expect(JSON.parse(await send())).toEqual(Object.fromEntries(typed));
  });
});

describe('a number', () => {
  const DIGITS = ['12345678901234567890', '1.50', '1e400', '-0'];

  it.each(DIGITS)('%s reaches the client with its digits, from the form and from JSON', async (digits) => {
    await clear();
    await typeInto('number', digits);
    expect((await send()).replaceAll(/\s/g, '')).toBe(`{"number":${digits}}`);
    await drawer().getByText('JSON', { exact: true }).click();
    await drawer().locator('#params').fill(`{"z":1,"number":${digits}, "a":[${digits}]}`);
    expect(await send()).toBe(`{"z":1,"number":${digits}, "a":[${digits}]}`);
    await drawer().getByText('Form', { exact: true }).click();
    expect(await field('number').inputValue()).toBe(digits);
    await typeInto('text', 'x');
    const sent = (await send()).replaceAll(/\s/g, '');
    expect(sent).toContain(`"number":${digits}`);
    expect(sent).toContain(`"a":[${digits}]`);
  });

  it.each(['two', '1.', '0x10', '1,5'])('%j is sent as the text that it is, and named', async (text) => {
    await clear();
    await typeInto('integer', text);
    await drawer().getByText('Must be a whole number.').first().waitFor();
    expect(JSON.parse(await send())).toEqual({ integer: text });
  });
});

it('any text reaches the client as typed, and as JSON had it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }), async (text) => {
      await clear();
      await typeInto('text', text);
      expect(JSON.parse(await send())).toEqual({ text });
    }),
    { numRuns: 10 },
  );
  for (const text of ['two\nlines', 'a\rb', '\0mark', '\t tab ']) {
    await drawer().getByText('JSON', { exact: true }).click();
    await drawer().locator('#params').fill(JSON.stringify({ text }));
    await drawer().getByText('Form', { exact: true }).click();
    await typeInto('uuid', '1');
    expect(JSON.parse(await send())).toEqual({ text, uuid: '1' });
  }
});
