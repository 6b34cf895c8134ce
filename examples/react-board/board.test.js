import assert from 'node:assert';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import { startDesk } from './desk.js';
import { start } from './server.js';

const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const skip = existsSync(executablePath) ? false : 'needs Chromium (CHROMIUM names it)';

test('the board shows a client that connects, and what becomes of a note', { skip }, async () => {
  const app = await start({ port: 0 });
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  const desk = startDesk({ url: app.url, pauseMs: 10 });
  try {
    const page = await browser.newPage();
    await page.goto(app.url);
    await page.getByRole('listitem').filter({ hasText: 'desk-1 connected' }).waitFor();
    await page.getByRole('button', { name: 'Add' }).click();
    await page.locator('output', { hasText: 'Added: 1 notes.' }).waitFor();
    await desk.close();
    await page.getByRole('listitem').filter({ hasText: 'desk-1 disconnected' }).waitFor();
    assert.equal(await page.locator('#live').textContent(), 'live');
  } finally {
    await desk.close();
    await browser.close();
    await app.close();
  }
});
