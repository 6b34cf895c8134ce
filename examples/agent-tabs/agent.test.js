import assert from 'node:assert';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import { connectAgent } from './agent.js';
import { start } from './server.js';

const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const skip = existsSync(executablePath) ? false : 'needs Chromium (CHROMIUM names it)';

test('an agent fills in the tab that it names, and is refused when it names none', { skip }, async () => {
  const app = await start({ port: 0 });
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  try {
    const tabs = {};
    for (const name of ['left', 'right']) {
      tabs[name] = await browser.newPage();
      await tabs[name].goto(`${app.url}/?tab=${name}`);
      await tabs[name].waitForFunction("document.querySelector('#status').textContent === 'connected'");
    }
    const agent = await connectAgent(app.url);
    const names = (await agent.listTools()).tools.map(({ name }) => name);
    assert.ok(names.includes('tab_fill') && names.includes('list_clients'), names.join());
    await agent.callTool({ name: 'tab_fill', arguments: { client: 'left', city: 'Bern' } });
    assert.equal(await tabs.left.locator('#city').inputValue(), 'Bern');
    assert.equal(await tabs.right.locator('#city').inputValue(), '');
    const which = await agent.callTool({ name: 'tab_read', arguments: {} });
    assert.equal(which.isError, true);
    assert.match(which.content[0].text, /ambiguous_client/);
    const read = await agent.callTool({ name: 'tab_read', arguments: { client: 'left' } });
    assert.deepEqual(read.structuredContent, { city: 'Bern' });
    await agent.close();
  } finally {
    await browser.close();
    await app.close();
  }
});
