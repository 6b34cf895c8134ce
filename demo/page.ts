/** Serves carol's web page. */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { pageHtml } from './page-html.ts';

export type PageServer = AsyncDisposable & {
  /** The origin that the relay must allow. */
  readonly origin: string;
  /** The page's address. It contains a secret key, because anyone who can open the page can get its token. */
  readonly url: string;
  /** Starts serving the page. `relayUrl` is the relay's base address. */
  show(relayUrl: string, token: () => Promise<string>): void;
};

type Show = { readonly html: string; readonly token: () => Promise<string> };

/** Serves carol's page on a free port of this machine, like an application's own server. */
export async function startPageServer(): Promise<PageServer> {
  const key = randomBytes(12).toString('base64url');
  let show: Show | null = null;
  const server = createServer((request, response) => {
    answer(request, response, { key, show }).catch(() => response.destroy());
  });
  const origin = `http://127.0.0.1:${await listen(server)}`;
  return {
    origin,
    url: `${origin}/${key}/`,
    show(relayUrl, token) {
      show = { html: pageHtml(relayUrl), token };
    },
    async [Symbol.asyncDispose]() {
      const { promise, resolve } = Promise.withResolvers<void>();
      server.close(() => resolve());
      server.closeAllConnections();
      await promise;
    },
  };
}

function listen(server: Server): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.once('error', reject);
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    resolve(typeof address === 'object' && address !== null ? address.port : 0);
  });
  return promise;
}

type Shown = { readonly key: string; readonly show: Show | null };

async function answer({ url }: IncomingMessage, response: ServerResponse, { key, show }: Shown): Promise<void> {
  response.setHeader('cache-control', 'no-store');
  if (show && url === `/${key}/`) {
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(show.html);
  } else if (show && url === `/${key}/token`) {
    response.setHeader('content-type', 'text/plain');
    response.end(await show.token());
  } else {
    response.writeHead(404).end();
  }
}
