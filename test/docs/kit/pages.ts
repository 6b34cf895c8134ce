/** Opens pages of the documentation in a real browser, from an origin of their own. */
import { createServer } from 'node:http';
import type { Browser } from 'playwright-core';
import { launchChromium } from '../../browser/kit/chromium.ts';

export type Pages = AsyncDisposable & {
  /**
   * Serves the page at `http://127.0.0.1:<port>/<name>` and opens it with this fragment. Rejects if its script fails.
   */
  open(name: string, html: string, fragment: string): Promise<void>;
};

/** Creates the pages of one origin. The browser starts with the first page. */
export function createPages(port: number): Pages {
  const opened = new AsyncDisposableStack();
  const files = new Map<string, string>();
  let browser: Browser | null = null;
  const start = async (): Promise<Browser> => {
    const server = createServer(({ url = '/' }, response) => {
      const html = files.get(url);
      response.writeHead(html === undefined ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' }).end(html);
    });
    await new Promise<void>((done) => server.listen(port, '127.0.0.1', done));
    opened.defer(() => void server.close());
    opened.defer(() => server.closeAllConnections());
    const started = await launchChromium();
    opened.defer(() => started.close());
    return started;
  };
  return {
    async open(name, html, fragment) {
      files.set(`/${name}`, html);
      browser ??= await start();
      const page = await browser.newPage();
      const failed = Promise.withResolvers<never>();
      page.on('pageerror', failed.reject);
      await Promise.race([page.goto(`http://127.0.0.1:${port}/${name}#${fragment}`), failed.promise]);
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
