import assert from 'node:assert';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { openTestRelay } from 'callboard/testing';

/** Starts the built app on a free port. */
async function startNext(env) {
  const next = spawn(process.execPath, ['node_modules/next/dist/bin/next', 'start', '-p', '0', '-H', '127.0.0.1'], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface({ input: next.stdout })) {
    const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(line) ?? [];
    if (url) return { url, stop: () => (next.kill('SIGTERM'), once(next, 'exit')) };
  }
  throw new Error('next ended');
}

test('the route adds a note, and tells what failed from what nobody knows', async () => {
  await using relay = await openTestRelay();
  const app = await startNext({ RELAY: relay.url, TOKEN: await relay.token('alice', ['invoke']) });
  const post = () => fetch(`${app.url}/api/notes`, { method: 'POST', body: JSON.stringify({ text: 'milk' }) });
  const kiosk = await relay.client({ userId: 'alice', clientId: 'kiosk-1', actions: { 'notes.add': {} } });
  const added = post();
  (await kiosk.received('notes.add')).answer({ count: 1 });
  assert.deepEqual([(await added).status, await (await added).json()], [201, { count: 1 }]);
  const failed = post();
  (await kiosk.received('notes.add')).fail('no paper');
  assert.equal((await failed).status, 409);
  const lost = post();
  const { commandId } = await kiosk.received('notes.add');
  await relay.clock.advance(21_000);
  assert.deepEqual([(await lost).status, (await (await lost).json()).commandId], [202, commandId]);
  await app.stop();
});
