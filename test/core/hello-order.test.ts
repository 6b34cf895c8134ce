/** Tests which link of a client wins if the store learns of their hellos in another order than the relays read them. */
import { describe, expect, test } from 'vitest';
import { isOlderHello } from '../../src/core/connections/hello-order.ts';
import { connect, testCore, user } from '../kit/core.ts';

describe('the order of hellos', () => {
  const T = 1_000_000;
  test.each([
    ['no link before it', { helloAt: T, linkAttempt: 1 }, null, false],
    ['an earlier attempt of the instance', { linkAttempt: 2 }, { linkAttempt: 1 }, false],
    ['a later attempt of the instance', { linkAttempt: 1, helloAt: T + 1 }, { linkAttempt: 2, helloAt: T }, true],
    ['an instance whose hello came before', { helloAt: T }, { instanceId: 'i2', helloAt: T - 1 }, false],
    ['an instance whose hello came at the same time', { helloAt: T }, { instanceId: 'i2', helloAt: T }, false],
    ['an instance whose hello came later', { helloAt: T, linkAttempt: 9 }, { instanceId: 'i2', helloAt: T + 1 }, true],
    ['later than a hello waits', { helloAt: T }, { instanceId: 'i2', helloAt: T + 30_001 }, false],
    ['an instance of which no time is known', { helloAt: T }, { instanceId: 'i2' }, false],
  ])('%s', (_what, hello, previous, isOlder) => {
    expect(isOlderHello({ instanceId: 'i1', ...hello }, previous && { instanceId: 'i1', ...previous })).toBe(isOlder);
  });

  test('is that in which the relay read them: the hello of a page that ended replaces no later page', async () => {
    const { promise: owner, resolve: found } = Promise.withResolvers<void>();
    await using opened = await testCore({
      wrap: (backend) => ({
        ...backend,
        connections: {
          ...backend.connections,
          // The owner of the user is found after the next page has connected.
          connect: (request) =>
            request.instanceId === 'ended'
              ? (owner.then(() => backend.connections.connect(request)) as never)
              : backend.connections.connect(request),
        },
      }),
    });
    const { core, clock } = opened;
    const alice = user('alice');
    const ended = connect(core, alice, { instanceId: 'ended', resumes: { attempt: 1, received: new Set() } });
    const settled = Promise.allSettled([ended]);
    await clock.advance(200);
    const next = await connect(core, alice, { instanceId: 'next', resumes: { attempt: 1, received: new Set() } });
    found();
    expect(await settled).toMatchObject([{ status: 'rejected', reason: { code: 'stale_instance' } }]);
    const row = await core.connections.get(alice, { userId: 'alice', clientId: 'tab' });
    expect([row?.instanceId, row?.disconnectedAt, next.closes]).toEqual(['next', null, []]);
    // A page that comes later replaces it, as always.
    await clock.advance(1);
    expect((await connect(core, alice, { instanceId: 'last' })).opened).toBe('replaced');
  });
});
