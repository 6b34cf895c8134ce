/** Builds the client libraries for browsers, and serves pages of this folder that use them. */
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildClients, type Built } from '../../../scripts/bundles.ts';

export type BuiltClients = AsyncDisposable & { readonly folder: string; readonly files: readonly Built[] };

export async function builtClients(): Promise<BuiltClients> {
  const folder = await mkdtemp(join(tmpdir(), 'callboard-clients-'));
  const files = await buildClients(folder);
  return { folder, files, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
}

export type Site = AsyncDisposable & { readonly origin: string };

/**
 * Serves a page of this folder, with the scripts of this folder that it names, and the built libraries, from another
 * origin than the relay's. `name`: that of the page, without `.html`.
 */
export async function startSite({ folder, files }: BuiltClients, name: string): Promise<Site> {
  const server = createServer((request, response) => {
    const path = request.url?.replace(/\?.*$/, '') ?? '/';
    const library = files.find(({ file }) => path === `/${file}`);
    const script = library !== undefined || /^\/[\w-]+\.js$/.test(path);
    response.setHeader('content-type', script ? 'text/javascript' : 'text/html');
    // The relay has another origin, so the policy must name it. Otherwise only the page's own files are allowed.
    response.setHeader('content-security-policy', "default-src 'self'; connect-src ws://127.0.0.1:*");
    const own = new URL(script ? path.slice(1) : `${name}.html`, import.meta.url);
    readFile(library ? join(folder, library.file) : own).then(
      (bytes) => response.end(bytes),
      () => response.writeHead(404).end(),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  return {
    origin: `http://127.0.0.1:${address.port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}
