/** Serves the tabs' page, gives out tokens, and runs the relay below /relay, which serves agents over MCP. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { attach, signToken } from 'callboard';

export async function start({ port = 4400, secret = randomBytes(32).toString('base64url') } = {}) {
  const tokenOf = (more) => signToken({ secret, user: 'alice', ttlSeconds: 3600, now: Date.now(), ...more });
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    if (pathname === '/token/tab') return response.end(await tokenOf({ scopes: ['connect'] }));
    // The agent may call the actions of tabs, and nothing else.
    if (pathname === '/token/agent') return response.end(await tokenOf({ scopes: ['mcp'], actions: ['tab.*'] }));
    response.setHeader('content-type', 'text/html');
    response.end(await readFile(new URL('tab.html', import.meta.url)));
  });
  const adminTokens = [randomBytes(24).toString('base64url')];
  const relay = await attach(server, { basePath: '/relay', config: { mcp: 'on', auth: { secret, adminTokens } } });
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

if (import.meta.main) {
  const { url } = await start({ port: Number(process.env.PORT ?? 4400) });
  console.log(`open two tabs: ${url}/?tab=left and ${url}/?tab=right`);
}
