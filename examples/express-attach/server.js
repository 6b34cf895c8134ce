/** An Express app with a relay below /relay: its route adds a note at the kiosk of the signed-in user. */
import { once } from 'node:events';
import express from 'express';
import { attach, signToken } from 'callboard';
import { CallerError, createHttpCaller } from 'callboard/caller';

/** Starts the app. `secret` signs the tokens of users, `adminToken` is an operator's. */
export async function start({ port, secret, adminToken }) {
  const app = express();
  app.use(express.json());
  const tokenOf = (user, ...scopes) => signToken({ secret, user, scopes, ttlSeconds: 300, now: Date.now() });

  // Your own session says who somebody is. Here a header does, so that the example can be tried with curl.
  app.use((request, response, next) => {
    request.user = request.get('x-user');
    if (request.user) next();
    else response.status(401).json({ error: 'Who are you? Send the header x-user.' });
  });

  // The user's own programs connect with this token.
  app.get('/token', async (request, response) => response.type('text').send(await tokenOf(request.user, 'connect')));

  app.post('/notes', async (request, response) => {
    await using caller = createHttpCaller({ url: relay.url, token: () => tokenOf(request.user, 'invoke') });
    const target = { userId: request.user, clientId: 'kiosk-1', action: 'notes.add' };
    try {
      const answer = await caller.invoke(target, { text: request.body.text }, { respondWithinMs: 10_000 });
      if (answer.outcome === 'completed') response.status(201).json(answer.result);
      // Nobody may say that it failed: it may have run. The handle finds the command again.
      else if (answer.outcome === 'outcome_unknown') response.status(202).json(answer.handle);
      else response.status(409).json({ outcome: answer.outcome, reason: answer.error?.message });
    } catch (error) {
      if (!(error instanceof CallerError)) throw error;
      response.status(503).json({ error: error.code });
    }
  });

  const server = app.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const config = { auth: { secret, adminTokens: [adminToken] } };
  const relay = await attach(server, { basePath: '/relay', config });
  return {
    url: new URL('/', relay.url).origin,
    async close() {
      await relay.close({ withinMs: 5_000 });
      server.close();
      server.closeAllConnections();
    },
  };
}

if (import.meta.main) {
  const { SECRET, ADMIN_TOKEN, PORT = '4400' } = process.env;
  const app = await start({ port: Number(PORT), secret: SECRET, adminToken: ADMIN_TOKEN });
  console.log(`listening at ${app.url}`);
}
