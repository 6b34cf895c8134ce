/** Tests what clients are told of the pauses that cover all their calls. */
import { describe, expect, test } from 'vitest';
import type { Requester } from '../../src/core/auth/principal.ts';
import type { PauseRequest } from '../../src/core/pauses/pauses.ts';
import { admin, user } from '../kit/core.ts';
import { HAS_PAUSES } from '../kit/store.ts';
import { caller, client, startGateway, type TestGateway } from './kit/test-gateway.ts';

const pause = async (
  { core }: TestGateway,
  request: Omit<PauseRequest, 'reason'>,
  who: Requester = admin,
): Promise<string> => (await core.pauses.pause(who, { reason: 'it runs wild', ...request })).pause.pauseId;

describe.runIf(HAS_PAUSES)('a client', () => {
  test('learns in welcome that a pause covers all its calls: who set it, why and until when', async () => {
    await using at = await startGateway();
    const until = at.clock.now() + 60_000;
    await pause(at, { userId: 'alice', until });
    const { welcome } = await client(at, {});
    expect(welcome).toMatchObject({ paused_by: 'admin test', paused_reason: 'it runs wild', paused_until: until });
    await pause(at, { all: true });
    // Of two pauses the one that ends last.
    const later = (await client(at, { client_id: 'other' })).welcome;
    expect(later).toMatchObject({ paused_by: 'admin test' });
    expect(later).not.toHaveProperty('paused_until');
    expect((await caller(at)).welcome).not.toHaveProperty('paused_by');
  });

  test('learns while it is connected that a pause begins, is another one, and ends', async () => {
    await using at = await startGateway();
    const tab = await client(at, {});
    expect(tab.welcome).not.toHaveProperty('paused_by');
    const first = await pause(at, { userId: 'alice', clientId: 'tab' }, user('alice'));
    expect(await tab.next('paused')).toMatchObject({ paused_by: 'user alice', paused_reason: 'it runs wild' });
    const second = await pause(at, { userId: 'alice', until: at.clock.now() + 5_000 });
    await at.core.pauses.resume(user('alice'), first);
    expect(await tab.next('paused')).toMatchObject({ paused_by: 'admin test', paused_until: expect.any(Number) });
    await at.core.pauses.resume(admin, second);
    const over = await tab.next('paused');
    expect([over.paused_by, over.paused_until]).toEqual([undefined, undefined]);
    expect(tab.seen('paused')).toHaveLength(3);
  });

  test('is not told of a pause of another client, of some callers, or of some actions', async () => {
    await using at = await startGateway();
    const tab = await client(at, {});
    await pause(at, { userId: 'bob' });
    await pause(at, { userId: 'alice', clientId: 'other' });
    await pause(at, { callerKind: 'mcp' });
    await pause(at, { userId: 'alice', action: 'lamp.*' });
    await pause(at, { userId: 'alice', action: '*' });
    expect(await tab.next('paused')).toMatchObject({ paused_by: 'admin test' });
    expect(tab.seen('paused')).toHaveLength(1);
  });
});
