/** Tests that nothing which a client advertises can stop or mislead the console of an operator. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, afterEach, describe, expect, it } from 'vitest';
import { launchChromium } from './kit/chromium.ts';
import { expectClean, openConsole, type ConsolePage } from './kit/console-page.ts';
import { startConsoleRelay, type ConsoleRelay } from './kit/console-relay.ts';

let browser: Browser;
let bench: ConsoleRelay;
let opened: ConsolePage;
let page: Page;
beforeAll(async () => {
  [browser, bench] = await Promise.all([launchChromium(), startConsoleRelay()]);
});
// A tab that a schema has stopped cannot be used again, so each test has its own.
beforeEach(async () => {
  opened = await openConsole(browser, `${bench.relay.url}/console/actions`, { token: bench.relay.admin });
  ({ page } = opened);
});
afterEach(() => page.context().close());
afterAll(async () => {
  await browser?.close();
  await bench?.[Symbol.asyncDispose]();
});

const drawer = () => page.locator('.drawer');
const NAME = 'lamp.set';

/** Makes the client advertise an action with this schema, as text. */
async function advertise(schema: string, rest: object = {}): Promise<void> {
  const action = { name: NAME, summary: 'Switches the lamp', description: null, version: '1', ...rest };
  await page.route('**/graphql', async (route) => {
    if (!String(route.request().postDataJSON().query).includes('query InvokeTarget')) return route.fallback();
    const answer = await route.fetch();
    const body = await answer.json();
    body.data.connection.actions.items = [{ ...action, checksArguments: true, schema: 'THE SCHEMA' }];
    await route.fulfill({ response: answer, body: JSON.stringify(body).replace('"THE SCHEMA"', () => schema) });
  });
}

/** Opens the form of a call of the action. */
async function openForm(): Promise<void> {
  await page.getByRole('heading', { name: 'Actions' }).waitFor();
  await page.keyboard.press('i');
  await drawer()
    .getByRole('button', { name: /alice \/ kiosk-1/ })
    .click();
  await drawer()
    .getByRole('button', { name: new RegExp(`^${NAME}`) })
    .click();
}

/** Fails unless the page shows one of these in the form, handles a click, and closes the form. */
async function expectAnswers(shown: RegExp): Promise<void> {
  await drawer().getByText(shown).first().waitFor();
  await drawer()
    .getByText(/^Waits \d/)
    .click();
  await page.getByLabel('Time to answer, seconds').fill('7');
  await drawer().getByText('Waits 7 s').waitFor();
  await drawer().getByRole('button', { name: 'Close' }).click();
  await drawer().waitFor({ state: 'detached' });
  expectClean(opened);
}

const object = (properties: object, rest: object = {}): string =>
  JSON.stringify({ type: 'object', properties, ...rest });
const many = (count: number, part: unknown): object =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, part]));

const AS_JSON = /The arguments are written as JSON:/;

/** What made the form stop a tab for 12 to 45 seconds. */
const FROZE: Readonly<Record<string, string>> = {
  'forty references to itself': object(many(40, { $ref: '#' })),
  'a doubling allOf': JSON.stringify({
    $ref: '#/$defs/d30',
    $defs: {
      d0: { type: 'object' },
      ...Object.fromEntries(
        Array.from({ length: 30 }, (_, at) => [
          `d${at + 1}`,
          { allOf: [{ $ref: `#/$defs/d${at}` }, { $ref: `#/$defs/d${at}` }] },
        ]),
      ),
    },
  }),
  'fifty million items': object({ list: { type: 'array', minItems: 5e7, items: { type: 'string' } } }),
  '300 alternatives': object({
    one: { anyOf: Array.from({ length: 300 }, (_, at) => ({ type: 'object', properties: many(20, { const: at }) })) },
  }),
};

/** Other schemas that are too large for a form, or have what a form cannot hold. */
const TOO_LARGE: Readonly<Record<string, string>> = {
  'a choice of 100,000': object({ one: { enum: Array.from({ length: 100_000 }, (_, at) => `choice ${at}`) } }),
  'a constant of 1 MB': object({ one: { const: 'x'.repeat(1_000_000) } }),
  'a default of 1 MB': object({ one: { type: 'string', default: 'x'.repeat(1_000_000) } }),
  'a default of 5,000 entries': object({
    one: { type: 'array', items: { type: 'string' }, default: Array(5_000).fill('') },
  }),
  'lists that fill lists': object({
    one: [...Array(6)].reduce((items) => ({ type: 'array', minItems: 30, items }), { type: 'string' }),
  }),
  'names that match an expression': object({}, { patternProperties: { '^(a+)+$': { type: 'string' } } }),
  'a default that names the prototype': `{"type":"object","default":{"__proto__":{"polluted":1}},"properties":{}}`,
  'a schema elsewhere': JSON.stringify({ $ref: 'https://elsewhere.example/schema.json' }),
};

describe('a schema that is too large for a form', () => {
  it.each(Object.entries({ ...FROZE, ...TOO_LARGE }))(
    'because of %s shows the arguments as JSON',
    async (_, schema) => {
      const elsewhere: string[] = [];
      page.on('request', (request) => void (request.url().includes('elsewhere') && elsewhere.push(request.url())));
      await advertise(schema);
      await openForm();
      await expectAnswers(AS_JSON);
      expect(elsewhere).toEqual([]);
    },
  );
});

/** Schemas that are within the bounds of a form, at their edges. The text shows that the form is there. */
const DRAWN: Readonly<Record<string, readonly [schema: string, shown: RegExp]>> = {
  'nesting of 10,000 levels': [
    `{"type":"object","properties":{"deep":`.repeat(10_000) + '{"type":"string"}' + '}}'.repeat(10_000),
    /the schema says more than a form can show/,
  ],
  'references to itself in a list': [
    object({ name: { type: 'string' }, below: { type: 'array', items: { $ref: '#' } } }),
    /Add to below/,
  ],
  'nested alternatives': [
    object({
      one: [...Array(6)].reduce<object>(
        (inner, _, at) => ({ anyOf: [{ type: 'object', properties: { [`n${at}`]: inner } }, { type: 'string' }] }),
        { type: 'string', title: 'the innermost' },
      ),
    }),
    /one/,
  ],
  '190 fields': [object(many(190, { type: 'string', minLength: 1 })), /p189/],
  '90 alternatives of one object': [
    object({
      one: { oneOf: Array.from({ length: 90 }, (_, at) => ({ type: 'object', properties: many(1, { const: at }) })) },
    }),
    /one/,
  ],
  'a title and a description of 100,000 characters': [
    object({ one: { type: 'string', title: 'T'.repeat(1e5), description: 'D'.repeat(1e5) } }),
    /^T{120}…$/,
  ],
  'names of the prototype': [
    '{"type":"object","properties":{"safe":{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{}}}}}',
    /the schema says more than a form can show/,
  ],
};

it.each(Object.entries(DRAWN))('a schema with %s is shown as a form', async (_, [schema, shown]) => {
  await advertise(schema);
  await openForm();
  await expectAnswers(shown);
  expect(await page.evaluate(() => Reflect.get({}, 'polluted'))).toBeUndefined();
});

it('a default beside an expression that never ends is checked until its time is over, and then again', async () => {
  await advertise(object({ word: { type: 'string', pattern: '^(a+)+$', default: `${'a'.repeat(40)}!` } }));
  await openForm();
  await drawer()
    .getByText(/takes too long to check here; the client checks the arguments again/)
    .waitFor();
  await drawer().getByLabel('word').fill('b');
  await drawer().getByLabel('word').press('Tab');
  await drawer().getByText('The client would refuse its arguments.').waitFor();
  await expectAnswers(/Does not fit the pattern/);
});

it('arguments with too many entries for a form are written as JSON', async () => {
  await advertise(object({ list: { type: 'array', items: { type: 'integer' } } }));
  await openForm();
  await drawer().getByText('Add to list').waitFor();
  await drawer().getByText('JSON', { exact: true }).click();
  await drawer()
    .locator('#params')
    .fill(JSON.stringify({ list: Array(5_000).fill(1) }));
  await expectAnswers(AS_JSON);
});

const BIDI = '\u202e';

it('shows hidden characters of what a client advertises as their codes, wherever it draws them', async () => {
  const hostile = `pay${BIDI}\u200b\u009bpal`;
  const seen = 'pay\\u202e\\u200b\\u009bpal';
  const schema = object({ one: { type: 'string', title: `T ${hostile}`, description: `D ${hostile}` } });
  await advertise(schema, { summary: `S ${hostile}`, description: `D ${hostile}` });
  await openForm();
  for (const letter of ['S', 'T', 'D']) await drawer().getByText(`${letter} ${seen}`).first().waitFor();
  const drawn = await page.evaluate(() => document.body.innerText + document.title);
  expect(drawn).not.toMatch(/[\u0080-\u009f\u200b\u202a-\u202e]/);
  expectClean(opened);
});

it('the policy of the page allows workers of its own files only, and the worker may load and generate nothing', async () => {
  const policyOf = async (path: string): Promise<string> =>
    String((await page.request.get(`${bench.relay.url}/console/${path}`)).headers()['content-security-policy']);
  const policy = await policyOf('');
  expect(policy).toContain("worker-src 'self'; require-trusted-types-for 'script'; trusted-types callboard-worker");
  expect(policy).not.toMatch(/unsafe|blob:/);
  const worker = page.waitForEvent('worker');
  await advertise(object({ one: { type: 'string' } }));
  await openForm();
  const url = (await worker).url();
  expect(url).toMatch(/\/console\/assets\/check-worker-[\w-]+\.js$/);
  expect(await policyOf(url.slice(url.indexOf('assets/')))).toBe("default-src 'none'");
  expectClean(opened);
});
