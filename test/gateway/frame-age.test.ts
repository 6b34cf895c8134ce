/** Tests that frames say when they were sent, and that a client may refuse what came too late. */
import { expect, test } from 'vitest';
import { client, invoke, startGateway } from './kit/test-gateway.ts';

test('welcome, ping and command say when they were sent, by a clock that is never set', async () => {
  await using at = await startGateway();
  const peer = await client(at);
  expect(peer.welcome.at_ms).toBe(0);
  await at.clock.advance(1_500);
  at.clock.stepWall(-3_600_000);
  const waiting = invoke(at, 'c1', { respondWithinMs: 10_000 });
  const { at_ms, remaining_ms } = await peer.next('command');
  expect([at_ms, remaining_ms <= 10_000]).toEqual([1_500, true]);
  peer.send({ type: 'error', command_id: 'c1', code: 'too_late' });
  expect(await waiting).toMatchObject({
    command: { outcome: 'failed', execution: 'refused_by_client', error: { code: 'too_late' } },
  });
  peer.send({ type: 'pong' });
  for (let i = 0; i < 20; i++) await at.clock.advance(1_000);
  expect((await peer.next('ping')).at_ms).toBeGreaterThanOrEqual(18_000);
});
