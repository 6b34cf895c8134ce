/** Serves the built page, says where the relay is, gives out tokens, and runs the relay below /relay. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname } from 'node:path';
import { attach, signToken } from 'callboard';

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };

export async function start({ port = 4400, secret = randomBytes(32).toString('base64url') } = {}) {
  // Your own sign-in says who the user is. Here everybody is alice.
  const userId = 'alice';
  const tokenOf = (scope) => signToken({ secret, user: userId, scopes: [scope], ttlSeconds: 3600, now: Date.now() });
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    if (pathname === '/settings') return response.end(JSON.stringify({ relay: relay.url, userId }));
    if (pathname === '/token') return response.end(await tokenOf('invoke'));
    if (pathname === '/token/desk') return response.end(await tokenOf('connect'));
    const path = pathname === '/' ? '/index.html' : pathname;
    if (!/^(\/[\w-][\w.-]*)+$/.test(path)) return response.writeHead(404).end();
    response.setHeader('content-type', TYPES[extname(path)] ?? 'application/octet-stream');
    const file = readFile(new URL(`dist${path}`, import.meta.url));
    return file.then(
      (bytes) => response.end(bytes),
      () => response.writeHead(404).end(),
    );
  });
  const adminTokens = [randomBytes(24).toString('base64url')];
  const relay = await attach(server, { basePath: '/relay', config: { auth: { secret, adminTokens } } });
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return {
    url: new URL('/', relay.url).origin,
    async close() {
      await relay.close();
      server.close();
      server.closeAllConnections();
    },
  };
}

if (import.meta.main) console.log(`the board is at ${(await start({ port: Number(process.env.PORT ?? 4400) })).url}`);
