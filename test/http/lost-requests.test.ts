/** Tests that requests in progress end when what they have read may be lost. */
import { expect, it } from 'vitest';
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import type { Backend } from '../../src/core/backend.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { FakeClock } from '../kit/clock.ts';
import { startTestRelay } from '../relay/kit/test-relay.ts';

const QUEUED = { connect_within_ms: 60_000, wait_for: 'completed' };

/** A relay, and what loses data of its store. */
async function startLosingRelay() {
  const clock = new FakeClock(Date.now());
  const memory = createMemoryBackend({ clock, log: silentLog, sha256: createCrypto('test').sha256, markSecret: 'x' });
  let lose = (): void => {};
  const backend: Backend = {
    ...memory,
    onLost(run) {
      lose = run;
      return () => {};
    },
  };
  return { relay: await startTestRelay({}, { clock, backend }), lose: () => lose() };
}

it('requests and event streams in progress end when what they have read may be lost, and later ones are served', async () => {
  const losing = await startLosingRelay();
  await using relay = losing.relay;
  const path = '/connections/alice/late/actions/open';
  const waits = expect(relay.post(path, { ...QUEUED, command_id: 'c1' }, 'alice')).rejects.toThrow();
  const stream = await relay.subscribe('subscription { connectionEvents { change } }', { requester: 'alice' });
  await expect.poll(async () => (await relay.rest('/delivery/commands')).json?.['items']).toHaveLength(1);
  losing.lose();
  await waits;
  await stream.ended;
  expect((await relay.rest('/delivery/commands')).status).toBe(200);
});

it('links whose calls have no answer yet end when what they have read may be lost, and others stay', async () => {
  const losing = await startLosingRelay();
  await using relay = losing.relay;
  const [client, idle, calling] = [await relay.client(), await relay.caller('alice'), await relay.caller('alice')];
  calling.send({ type: 'invoke', ref: 'r1', client_id: 'late', action: 'open', connect_within_ms: 60_000 });
  await expect.poll(async () => (await relay.rest('/delivery/commands')).json?.['items']).toHaveLength(1);
  losing.lose();
  expect(await calling.next('bye')).toMatchObject({ reason: 'node_lost', reconnect: true });
  idle.send({ type: 'invoke', ref: 'r2', client_id: 'tab', action: 'open' });
  await client.next('command');
});
