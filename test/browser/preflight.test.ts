/** Tests in a real browser that a page of an allowed origin may send its headers to the relay. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Browser } from 'playwright-core';
import { ADMIN, startHttpRelay } from '../http/kit/http-relay.ts';
import { launchChromium } from './kit/chromium.ts';

let browser: Browser;
beforeAll(async () => void (browser = await launchChromium()));
afterAll(() => browser?.close());

/** Serves an empty page from another origin than the relay's. */
async function startPage() {
  const server = createServer((_, res) =>
    res.writeHead(200, { 'content-type': 'text/html' }).end('<title>app</title>'),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return { origin: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: async () => void server.close() };
}

/** The headers of Apollo Client and of a tracing library. */
const HEADERS = {
  'apollographql-client-name': 'shop',
  'apollographql-client-version': '1.2.3',
  'apollo-require-preflight': 'true',
  'x-apollo-operation-name': 'Viewer',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: 'vendor=1',
};

test('a page of an allowed origin sends the headers of Apollo and of W3C Trace Context', async () => {
  await using app = await startPage();
  await using relay = await startHttpRelay({ allowedOrigins: [app.origin] });
  const page = await browser.newPage();
  await page.goto(app.origin);
  const send = (extra: Record<string, string>) =>
    page.evaluate(
      async ({ url, headers }) => {
        const body = JSON.stringify({ query: '{ viewer { kind } }' });
        const answer = await fetch(url, { method: 'POST', headers, body }).catch((error: unknown) => String(error));
        return typeof answer === 'string' ? answer : answer.json();
      },
      {
        url: `${relay.url}/graphql`,
        headers: { authorization: `Bearer ${ADMIN}`, 'content-type': 'application/json', ...extra },
      },
    );
  expect(await send(HEADERS)).toEqual({ data: { viewer: { kind: 'ADMIN' } } });
  // The browser refuses to send a header that is not in the relay's list of allowed headers.
  expect(await send({ 'x-other': '1' })).toContain('Failed to fetch');
  await page.close();
});
