/** Serves the kiosk's page, gives tokens to the support, confirms kiosks, and runs the relay below /relay. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline/promises';
import { attach, signToken } from 'callboard';

/** Starts it. Kiosks are devices of the user `shop`; support staff calls them with tokens that may only invoke. */
export async function start({ port = 4400, secret = randomBytes(32).toString('base64url') } = {}) {
  const tokenOf = (scope) => signToken({ secret, user: 'shop', scopes: [scope], ttlSeconds: 3600, now: Date.now() });
  const server = createServer(async (request, response) => {
    // In your server, a member of the support is signed in before it gets a token.
    if (request.url === '/token/support') return response.end(await tokenOf('invoke'));
    response.setHeader('content-type', 'text/html');
    response.end(await readFile(new URL('kiosk.html', import.meta.url)));
  });
  const admin = randomBytes(24).toString('base64url');
  const relay = await attach(server, { basePath: '/relay', config: { auth: { secret, adminTokens: [admin] } } });
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return {
    url: new URL('/', relay.url).origin,
    /** Confirms the kiosk that shows a code. Your staff does this, signed in, as `callboard devices confirm` does. */
    async confirm(code) {
      const answer = await fetch(`${relay.url}/enrolments/decide`, {
        method: 'POST',
        headers: { authorization: `Bearer ${admin}`, 'content-type': 'application/json' },
        body: JSON.stringify({ code, decision: 'confirm', user_id: 'shop', client_id: 'kiosk-7' }),
      });
      if (!answer.ok) throw new Error(`The kiosk was not confirmed: ${await answer.text()}`);
    },
    async close() {
      await relay.close();
      server.close();
      server.closeAllConnections();
    },
  };
}

if (import.meta.main) {
  const { url, confirm } = await start({ port: Number(process.env.PORT ?? 4400) });
  console.log(`the kiosk is at ${url}; enter the code that it shows:`);
  for await (const line of createInterface({ input: process.stdin })) await confirm(line.trim()).catch(console.error);
}
