/** Serves the page, gives out tokens, and runs the relay below /relay. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { attach, createSignIn, signToken } from 'callboard';

const { SECRET = '', ADMIN_TOKEN = '', PORT = '4400' } = process.env;
const TYPES = new Map([
  ['/page.html', 'text/html'],
  ['/page.js', 'text/javascript'],
]);

const server = createServer((request, response) => {
  const serve = async () => {
    // A page of another site must not read a token by giving its own name to this address.
    if (!/^(localhost|127\.0\.0\.1)(:\d+)?$/.test(request.headers.host ?? '')) {
      response.writeHead(421).end();
      return;
    }
    if (request.url === '/token') {
      // Your own sign-in belongs here. Until then, everybody who reaches this server is the user `demo`.
      const scopes = ['connect', 'invoke'];
      response.end(await signToken({ secret: SECRET, user: 'demo', scopes, ttlSeconds: 3600, now: Date.now() }));
      return;
    }
    const path = request.url === '/' ? '/page.html' : (request.url ?? '');
    const type = TYPES.get(path);
    if (!type) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { 'content-type': type }).end(await readFile(new URL(`.${path}`, import.meta.url)));
  };
  // A request that fails must not end the program.
  serve().catch((error) => {
    console.error(error);
    response.destroy();
  });
});

const signIn = createSignIn(ADMIN_TOKEN);
const config = { auth: { secret: SECRET, adminTokens: [ADMIN_TOKEN] } };
const relay = await attach(server, { basePath: '/relay', config, signIn });
await once(server.listen(Number(PORT), '127.0.0.1'), 'listening');

console.log(`page     ${new URL('/', relay.url ?? '')}`);
console.log(`console  ${relay.url}/console/#code=${signIn.issue()}  (signed in, once, within 10 minutes)`);

const stop = async () => {
  await relay.close({ withinMs: 5_000 });
  server.close();
  server.closeAllConnections();
};
process.once('SIGINT', () => void stop());
