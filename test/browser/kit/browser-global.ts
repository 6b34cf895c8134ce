/**
 * Offers one Chromium to all browser tests of a run: to start one takes longer than most of these tests. Each test file
 * has contexts of its own in it, which share nothing. It is started for the first file that asks.
 */
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { BrowserServer } from 'playwright-core';
import { launchServer, SHARED_BROWSER } from './chromium.ts';

export default async function setup(): Promise<() => Promise<void>> {
  let launching: Promise<BrowserServer> | null = null;
  const server = createServer((_request, response) => {
    launching ??= launchServer();
    launching.then(
      (browser) => response.end(browser.wsEndpoint()),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  process.env[SHARED_BROWSER] = `http://127.0.0.1:${address.port}`;
  return async () => {
    server.close();
    await launching?.then((browser) => browser.close());
  };
}
