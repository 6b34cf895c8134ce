import assert from 'node:assert';
import { after, before, test } from 'node:test';
import { createRuntime } from 'callboard/runtime';
import { start } from './server.js';

let app;
before(async () => {
  app = await start({
    port: 0,
    secret: 'a secret of more than thirty-two bytes',
    adminToken: 'an-admin-token-of-the-test',
  });
});
after(() => app.close());

const post = (user, text) =>
  fetch(`${app.url}/notes`, {
    method: 'POST',
    headers: { 'x-user': user, 'content-type': 'application/json' },
    body: JSON.stringify({ text }),
  });

test('a note reaches the kiosk of its user, and of nobody else', async () => {
  const token = async () => (await fetch(`${app.url}/token`, { headers: { 'x-user': 'alice' } })).text();
  const url = `${app.url.replace('http', 'ws')}/relay/connect`;
  await using kiosk = createRuntime({ url, token, clientId: 'kiosk-1', clientType: 'console', onStatus: () => {} });
  const notes = [];
  kiosk.handle('notes.add', {}, ({ text }) => ({ count: notes.push(text) }));
  kiosk.connect();
  await kiosk.ready();
  const answer = await post('alice', 'milk');
  assert.deepEqual([answer.status, await answer.json()], [201, { count: 1 }]);
  assert.deepEqual(notes, ['milk']);
  assert.equal((await post('bob', 'tea')).status, 503);
});

test('without a user there is no answer, and the relay has its own rules', async () => {
  assert.equal((await fetch(`${app.url}/token`)).status, 401);
  assert.equal((await fetch(`${app.url}/relay/healthz`)).status, 200);
  assert.equal((await fetch(`${app.url}/relay/users`)).status, 401);
});
