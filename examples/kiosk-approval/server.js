/** Serves the kiosk's page, gives out tokens, and runs the relay below /relay. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { attach, signToken } from 'callboard';

/** Starts it. Kiosks belong to the user `shop`; support staff calls them with tokens that may only invoke. */
export async function start({ port = 4400, secret = randomBytes(32).toString('base64url') } = {}) {
  const tokenOf = (scope) => signToken({ secret, user: 'shop', scopes: [scope], ttlSeconds: 3600, now: Date.now() });
  const server = createServer(async (request, response) => {
    // In your server, a kiosk and a member of the support are signed in before they get a token.
    if (request.url === '/token/kiosk') return response.end(await tokenOf('connect'));
    if (request.url === '/token/support') return response.end(await tokenOf('invoke'));
    response.setHeader('content-type', 'text/html');
    response.end(await readFile(new URL('kiosk.html', import.meta.url)));
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

if (import.meta.main) console.log(`the kiosk is at ${(await start({ port: Number(process.env.PORT ?? 4400) })).url}`);
