/** Tests that a browser's own EventSource reads the events of a site, and reconnects. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Browser, Page } from 'playwright-core';
import { createSiteEventPublisher } from '../../src/clients/host/index.ts';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { startRealRelay, type RealRelay } from '../clients/kit/real-relay.ts';
import { startTcpProxy } from '../kit/tcp-proxy.ts';
import { launchChromium } from './kit/chromium.ts';

let browser: Browser;
beforeAll(async () => void (browser = await launchChromium()));
afterAll(() => browser?.close());

/**
 * Registers alice's site `board` and opens a session of it. Returns a publisher, and a ticket for the session's events.
 */
async function startSite(relay: RealRelay) {
  const token = await relay.token('alice', 'connect', 'invoke', 'host');
  const ask = async (method: string, path: string, body: object): Promise<Record<string, string>> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const response = await fetch(relay.url + path, { method, headers, body: JSON.stringify(body) });
    return response.json();
  };
  const runtime = createRuntime({ url: relay.link, token: async () => token, clientId: 'desk', clientType: 'console' });
  runtime.connect();
  await runtime.ready();
  await ask('PUT', '/sites/board', { client_id: 'desk', event_names: ['changed'] });
  const { session_id } = await ask('POST', '/sites/board/sessions', {});
  const { ticket } = await ask('POST', `/site-sessions/${session_id}/ticket`, {});
  const publisher = createSiteEventPublisher({ runtime, siteId: 'board' });
  return {
    path: `/site-sessions/${session_id}/events?ticket=${ticket}`,
    publish: (data: unknown) => publisher.publish({ name: 'changed', data }),
    [Symbol.asyncDispose]: () => runtime.close({ withinMs: 0 }),
  };
}

const seen = (page: Page, wanted: string) =>
  page.waitForFunction((text) => JSON.stringify(Reflect.get(window, 'seen')).includes(text), wanted);

test('a native EventSource reconnects by itself with its ticket, and continues', async () => {
  await using relay = await startRealRelay();
  await using site = await startSite(relay);
  await using cable = await startTcpProxy(relay.url);
  const page = await browser.newPage();
  await page.goto(`${cable.url}/healthz`);
  await page.evaluate((path) => {
    const seen: unknown[] = [];
    const source = new EventSource(path);
    const note = (event: MessageEvent<string>): void => void seen.push(`${event.type} ${event.data}`);
    source.addEventListener('callboard.ready', note);
    source.addEventListener('changed', note);
    source.addEventListener('error', () => void seen.push(`error ${source.readyState}`));
    Object.assign(window, { seen });
  }, site.path);
  await seen(page, 'callboard.ready');
  await site.publish('before');
  await seen(page, 'before');
  for (const round of ['one', 'two']) {
    const until = page.waitForFunction(
      (known) =>
        Reflect.get(window, 'seen').filter((text: string) => text.startsWith('callboard.ready')).length > known,
      await page.evaluate(
        () => Reflect.get(window, 'seen').filter((text: string) => text.startsWith('callboard.ready')).length,
      ),
    );
    cable.cut();
    await seen(page, 'error 0');
    cable.mend();
    await until;
    await site.publish(round);
    await seen(page, `"data":"${round}"`.replaceAll('"', '\\"'));
  }
  expect(await page.evaluate(() => Reflect.get(window, 'seen').some((text: string) => text === 'error 2'))).toBe(false);
  await page.close();
});
