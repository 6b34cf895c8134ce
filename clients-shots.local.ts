import { chromium } from 'playwright-core';
const url = process.env['AT'] ?? 'http://127.0.0.1:4477';
const token = process.env['TOK'] ?? 'local-admin-token-for-pictures-only-1234';
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
const paths = (process.env['PAGES'] ?? '|clients|clients?view=backlog|clients?view=reconnects|actions|nodes').split('|');
const tag = process.env['TAG'] ?? '';
for (const [width, height] of [[1280, 800], [390, 844]] as const) {
  const context = await browser.newContext({ viewport: { width, height }, reducedMotion: 'reduce', colorScheme: process.env['DARK'] ? 'dark' : 'light' });
  await context.addInitScript((given) => sessionStorage.setItem('callboard:token', given), token);
  for (const path of paths) {
    const page = await context.newPage();
    await page.goto(`${url}/console/${path}`);
    await page.locator('#main h1').waitFor();
    await page.waitForTimeout(2500);
    const name = `${path.replace(/[^a-z0-9]+/gi, '_') || 'overview'}${tag}-${width}.png`;
    await page.screenshot({ path: `/tmp/clients-shots/${name}`, fullPage: true });
    console.log(name);
    await page.close();
  }
  await context.close();
}
await browser.close();
