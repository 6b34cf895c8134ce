import assert from 'node:assert';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import { start } from './server.js';
import { print } from './support.js';

const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const skip = existsSync(executablePath) ? false : 'needs Chromium (CHROMIUM names it)';

test('the person at the kiosk allows a print, refuses one, and goes away', { skip }, async () => {
  const app = await start({ port: 0 });
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  try {
    const page = await browser.newPage();
    await page.goto(app.url);
    await page.waitForFunction("/^[A-Z]{4}-[A-Z]{4}$/.test(document.querySelector('#status').textContent)");
    await app.confirm(await page.locator('#status').textContent());
    await page.waitForFunction("document.querySelector('#status').textContent === 'connected'");
    const allowed = print({ url: app.url, copies: 2 });
    await page.getByRole('button', { name: 'Allow' }).click();
    assert.equal(await allowed, 'printed 2');
    assert.deepEqual(await page.locator('li').allTextContents(), ['2 copies']);
    const refused = print({ url: app.url, copies: 3 });
    await page.getByRole('button', { name: 'Refuse' }).click();
    assert.equal(await refused, 'failed: The person at the kiosk did not agree.');
    assert.match(await print({ url: app.url, copies: 9 }), /^failed: /); // the schema allows five
    await page.close();
  } finally {
    await browser.close();
    await app.close();
  }
});
