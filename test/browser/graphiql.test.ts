/** Tests the GraphQL editor in a browser: signing in by link or token, and running operations. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { createSignIn } from '../../src/http/sign-in.ts';
import { signToken } from '../../src/http/tokens.ts';
import { ADMIN, SECRET, startHttpRelay, type HttpRelay } from '../http/kit/http-relay.ts';
import { launchChromium } from './kit/chromium.ts';
import { TOKEN_SECONDS } from '../kit/patience.ts';

let browser: Browser;
beforeAll(async () => void (browser = await launchChromium()));
afterAll(() => browser.close());

const signIn = createSignIn(ADMIN);
let relay: HttpRelay;
beforeAll(async () => void (relay = await startHttpRelay({}, { signIn })));
afterAll(() => relay[Symbol.asyncDispose]());

type Watched = { readonly page: Page; readonly asked: string[]; readonly broken: string[] };

/** Opens a page in a new browser session, and records the addresses that it requests and the errors that it throws. */
async function openPage(): Promise<Watched> {
  const context = await browser.newContext();
  const page = await context.newPage();
  const asked: string[] = [];
  const broken: string[] = [];
  await context.exposeFunction('policyViolated', (text: string) => void broken.push(text));
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sample }) => {
      Reflect.get(window, 'policyViolated')(`${violatedDirective} ${blockedURI} ${sample}`);
    });
  });
  page.on('request', (request) => void asked.push(request.url().replace(/^blob:/, '')));
  page.on('pageerror', (error) => void broken.push(error.message));
  page.on('console', (line) => void (/Content.Security.Policy/i.test(line.text()) && broken.push(line.text())));
  return { page, asked, broken };
}

/**
 * Runs the operation again until the result shows this text. The editor reads the names of operations a moment after
 * the text or the tab has changed. Before that, it still runs the earlier operation.
 */
async function run(page: Page, text: string): Promise<void> {
  const shown = page.locator('.result-window .view-lines', { hasText: text });
  for (let tries = 1; ; tries++) {
    await page.locator('.graphiql-execute-button').click();
    const found = await shown.waitFor({ timeout: RUN_MS }).then(
      () => true,
      () => false,
    );
    if (found) return;
    if (tries === RUNS)
      throw new Error(`no result with ${text}: ${await page.locator('.result-window').textContent()}`);
  }
}
/** The time after which the operation is run again, in milliseconds, and how often it is run. */
const RUN_MS = 10_000;
const RUNS = 20;

const tabs = (page: Page) => page.locator('.graphiql-tab-button').allTextContents();
const front = (page: Page) => page.locator('.graphiql-tab-active .graphiql-tab-button').textContent();
const ready = (page: Page) => page.locator('.graphiql-execute-button').waitFor();
const hasNoError = async (page: Page) => expect(await page.locator('.graphiql-doc-explorer-error').count()).toBe(0);

/** Clicks a tab by script. The tabs could take the movement of a mouse for dragging. */
const bringToFront = (page: Page, tab: string) =>
  page.getByTitle(tab, { exact: true }).evaluate((button: HTMLElement) => button.click());

async function enterToken(page: Page, token: string): Promise<void> {
  await page.locator('input[name=token]').fill(token);
  await page.locator('form button').click();
}

it('the link signs one page in, with three operations that run, and keeps tab and token on reload', async () => {
  const { page, asked, broken } = await openPage();
  const answers: string[] = [];
  page.on('response', (answer) => void (answer.status() >= 400 && answers.push(answer.url())));
  await page.goto(`${relay.url}/graphql#code=${signIn.code}`);
  await ready(page);
  expect(page.url()).toBe(`${relay.url}/graphql`);
  expect(await tabs(page)).toEqual(['WhoIsConnected', 'Call', 'Connections']);
  await run(page, '"completeness"');
  await bringToFront(page, 'Call');
  await page.waitForFunction(() => {
    const saved = JSON.parse(sessionStorage.getItem('graphiql:tabState') ?? '{"activeTabIndex":0}');
    return saved.activeTabIndex === 1;
  });
  await page.reload();
  await ready(page);
  expect([await tabs(page), await front(page)]).toEqual([['WhoIsConnected', 'Call', 'Connections'], 'Call']);
  await bringToFront(page, 'WhoIsConnected');
  await run(page, '"completeness"');
  await hasNoError(page);
  const { origin } = new URL(relay.url);
  expect(asked.filter((url) => !url.startsWith(`${origin}/`) && !url.startsWith('data:'))).toEqual([]);
  expect(asked.filter((url) => url.includes(signIn.code))).toEqual([]);
  expect([broken, answers]).toEqual([[], []]);
  expect(await page.evaluate(() => localStorage.getItem('callboard:token'))).toBeNull();
});

it('a link works once; the page then asks for a token, refuses a wrong one, and runs subscriptions with a right one', async () => {
  const { page, broken } = await openPage();
  await page.goto(`${relay.url}/graphql#code=${signIn.code}`);
  await page.getByText('The link was used already').waitFor();
  await enterToken(page, 'not-a-token');
  await page.getByText('does not accept this token').waitFor();
  const now = Date.now();
  await enterToken(
    page,
    await signToken({ secret: SECRET, user: 'alice', scopes: ['invoke'], ttlSeconds: TOKEN_SECONDS, now }),
  );
  await ready(page);
  await hasNoError(page);
  await page.locator('.graphiql-query-editor .view-lines').click();
  await page.keyboard.press('Control+A');
  await page.keyboard.insertText('query { __typename }');
  await run(page, '"Query"');
  expect(broken).toEqual([]);
});

/** The time between two clients that come and go, in milliseconds. */
const STAY_MS = 1_000;

it('documentation opens and a subscription runs, and neither breaks the policy of the page', async () => {
  const { page, broken } = await openPage();
  await page.goto(`${relay.url}/graphql`);
  await enterToken(page, ADMIN);
  await ready(page);
  await page.getByLabel('Documentation Explorer').first().click();
  await page.locator('.graphiql-doc-explorer').getByText('Subscription', { exact: true }).first().click();
  await page.locator('.graphiql-doc-explorer').getByText('connectionEvents').first().waitFor();
  await bringToFront(page, 'Connections');
  await page.locator('.graphiql-execute-button').click();
  const token = await signToken({
    ...{ secret: SECRET, user: 'alice', scopes: ['connect'], ttlSeconds: TOKEN_SECONDS, now: Date.now() },
  });
  const url = `${relay.url.replace(/^http/, 'ws')}/connect`;
  const result = page.locator('.result-window .view-lines');
  const event = result.filter({ hasText: '"change"' });
  let shown = false;
  const execute = page.locator('.graphiql-execute-button[aria-label^="Execute"]');
  // The subscription begins some time after the click, so clients come and go, one a second, until an event is shown. A
  // click that was too early ran the query of the tab before, and the button offers to execute again.
  for (let clients = 0; clients < 60 && !shown; clients++) {
    if (await execute.count()) await execute.click();
    const runtime = createRuntime({ url, token, clientId: 'kiosk-1', clientType: 'console' });
    runtime.connect();
    await runtime.ready();
    await runtime.close({ withinMs: 0 });
    shown = await event.waitFor({ timeout: STAY_MS }).then(
      () => true,
      () => false,
    );
  }
  expect(shown).toBe(true);
  expect(broken).toEqual([]);
});

it('the page contains no token and no code, and its policy runs one script and no generated code', async () => {
  const { text, headers } = await relay.ask('/graphql', { headers: { accept: 'text/html' }, token: null });
  expect(text.includes(ADMIN) || text.includes(signIn.code)).toBe(false);
  const policy = String(headers['content-security-policy']);
  expect(policy).toContain("connect-src 'self'");
  expect(policy).toMatch(/; script-src 'sha256-[\w+/]{43}='; /);
  expect(policy).not.toContain('unsafe-eval');
});

it('the policy of the page blocks every other script and every handler in markup', async () => {
  const { page, broken } = await openPage();
  await page.goto(`${relay.url}/graphql`);
  await page.locator('input[name=token]').waitFor();
  const ran = await page.evaluate(() => {
    const script = document.createElement('script');
    script.textContent = 'window.injected = true';
    document.body.append(script);
    const handler = document.createElement('div');
    handler.setAttribute('onclick', 'window.injected = true');
    document.body.append(handler);
    handler.click();
    return Reflect.get(window, 'injected') === true;
  });
  expect(ran).toBe(false);
  await expect.poll(() => broken.join(' ')).toMatch(/script-src-elem.*script-src-attr/s);
});
