import { expect, it } from 'vitest';
import type { Page } from 'playwright-core';
import { startGraphqlServer } from '../graphql/kit/graphql-server.ts';
import { launchChromium } from './kit/chromium.ts';

async function typeQuery(page: Page, text: string): Promise<void> {
  await page.locator('[data-uri$="operation.graphql"] .view-lines').click();
  await page.keyboard.press('Control+A');
  await page.keyboard.insertText(text);
}

/** Typed after the `Bearer ` that the field already contains. */
async function typeToken(page: Page, token: string): Promise<void> {
  await page.locator('[data-uri$="request-headers.json"] .view-lines').click();
  for (const key of ['End', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft']) await page.keyboard.press(key);
  await page.keyboard.insertText(token);
}

const run = (page: Page) => page.locator('.graphiql-execute-button').click();
const result = (page: Page, text: string) =>
  page.locator('.result-window .view-lines', { hasText: text }).waitFor({ timeout: 10_000 });

it('a browser runs queries and subscriptions with a typed token and contacts no other server', async () => {
  await using server = await startGraphqlServer();
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    const requests: string[] = [];
    const broken: string[] = [];
    page.on('request', (request) => void requests.push(request.url().replace(/^blob:/, '')));
    page.on('pageerror', (error) => void broken.push(error.message));
    page.on('console', (line) => void (/Content.Security.Policy/i.test(line.text()) && broken.push(line.text())));
    await page.goto(server.url);
    await page.locator('.graphiql-execute-button').waitFor();
    await typeToken(page, 'alice');
    await typeQuery(page, 'query { me }');
    await run(page);
    await result(page, '"alice"');
    await typeQuery(page, 'subscription { ticks(times: 3) }');
    await run(page);
    await result(page, '"ticks": 3');
    const origin = new URL(server.url).origin;
    expect(requests.filter((url) => !url.startsWith(`${origin}/`) && !url.startsWith('data:'))).toEqual([]);
    expect(broken).toEqual([]);
  } finally {
    await browser.close();
  }
}, 60_000);
