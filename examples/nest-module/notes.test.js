import 'reflect-metadata';
import assert from 'node:assert';
import { test } from 'node:test';
import { NestFactory } from '@nestjs/core';
import { openTestRelay } from 'callboard/testing';

test('the controller adds a note through the module, and says why it cannot', async () => {
  await using relay = await openTestRelay();
  process.env.RELAY = relay.url;
  process.env.TOKEN = relay.adminToken;
  const { AppModule } = await import('./dist/app.module.js');
  const app = await NestFactory.create(AppModule, { logger: false });
  await app.listen(0, '127.0.0.1');
  const headers = { 'content-type': 'application/json' };
  const post = async () =>
    fetch(`${await app.getUrl()}/users/alice/notes`, { method: 'POST', headers, body: '{"text":"milk"}' });
  assert.equal((await post()).status, 503); // the kiosk is not connected
  const kiosk = await relay.client({ userId: 'alice', clientId: 'kiosk-1', actions: { 'notes.add': {} } });
  kiosk.answer('notes.add', ({ text }) => ({ added: text }));
  const added = await post();
  assert.deepEqual([added.status, await added.json()], [201, { added: 'milk' }]);
  kiosk.answer('notes.add', () => {
    throw new Error('no paper');
  });
  assert.equal((await post()).status, 409);
  await app.close();
});
