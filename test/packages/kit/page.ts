/** Bundles a module as a web page's project would, and loads it in a page that allows only its own origin. */
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { build } from 'vite';

/** Writes `<name>.js` in the folder, bundles it, and resolves with the code. */
export async function bundle(folder: string, name: string, code: string): Promise<Buffer> {
  const entry = join(folder, `${name}.js`);
  const outDir = join(folder, 'out');
  await writeFile(entry, code);
  await build({
    configFile: false,
    publicDir: false,
    logLevel: 'error',
    root: folder,
    build: {
      outDir,
      emptyOutDir: false,
      target: 'es2022',
      lib: { entry, formats: ['es'], fileName: () => `${name}.js` },
      rolldownOptions: { output: { codeSplitting: false, minify: true } },
    },
  });
  return readFile(join(outDir, `${name}.js`));
}

/**
 * Loads a script in a page with the policy `default-src 'self'`. Resolves with the title that the script sets, or with
 * its error.
 */
export async function titleOf(browser: Browser, script: Buffer): Promise<string> {
  const server = createServer(({ url }, response) => {
    response.setHeader('content-security-policy', "default-src 'self'");
    const isScript = url === '/page.js';
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
    response.end(isScript ? script : '<!doctype html><title></title><script type="module" src="/page.js"></script>');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  const page = await browser.newPage();
  try {
    const failed = page.waitForEvent('pageerror').then(({ message }) => message);
    await page.goto(`http://127.0.0.1:${address.port}/`);
    const done = page.waitForFunction('document.title !== ""').then(() => page.title());
    failed.catch(() => undefined);
    return await Promise.race([done, failed]);
  } finally {
    await page.close();
    server.closeAllConnections();
    server.close();
  }
}
