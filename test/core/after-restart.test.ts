/** Tests what a core shows right after a restart from a data directory. */
import { afterAll, describe, expect, it } from 'vitest';
import { trustJson } from '../../src/core/json.ts';
import { FORGET_MS, JSON_DEPTH } from '../../src/core/limits.ts';
import type { CoreParts } from '../kit/core.ts';
import { copyOf, openDurable, removeFolders } from '../backends/kit/durable.ts';
import { FakeClock, turns } from '../kit/clock.ts';
import { admin, connect, spillOf, startCore, user } from '../kit/core.ts';

afterAll(removeFolders);

const alice = user('alice');

function partsOf(backend: CoreParts['backend'], clock: FakeClock): CoreParts {
  return { backend, clock, counts: new Map(), spill: spillOf({}, clock) };
}

/** Opens a core with a directory, does something with it, and opens another one as after a kill, `awayMs` later. */
async function restarted(awayMs: number, act: (core: Awaited<ReturnType<typeof startCore>>) => Promise<void>) {
  const clock = new FakeClock();
  const data = await openDurable({ clock });
  const before = await startCore({}, partsOf(data.backend, clock));
  await act(before);
  await turns();
  const root = copyOf(data);
  await before.close();
  await clock.advance(awayMs);
  const again = await openDurable({ clock, root });
  return { clock, core: await startCore({}, partsOf(again.backend, clock)) };
}

describe('after a restart', () => {
  it('contexts, windows and workers are not complete while clients of before may still report them', async () => {
    const { clock, core } = await restarted(1_000, async (before) => {
      await connect(before, alice);
    });
    const read = async () => {
      const [workers] = await core.contexts.workers(admin, [{ userId: 'alice', view: 'idle' }], 10);
      const listed = await core.contexts.list(admin, {}, {});
      const found = [
        listed,
        await core.contexts.count(admin, {}),
        await core.contexts.windows(admin, {}, {}),
        await core.contexts.windowCount(admin, {}),
      ];
      return [...found, ...(workers ? [workers] : [])].map(({ completeness }) => [
        completeness.complete,
        completeness.sources.at(-1)?.reason,
      ]);
    };
    expect(await read()).toEqual(Array.from({ length: 5 }, () => [false, 'awaiting_reports']));
    await clock.advance(FORGET_MS);
    expect(await read()).toEqual(Array.from({ length: 5 }, () => [true, null]));
    await core.close();
  });

  it('they are complete if no client was connected before', async () => {
    const { core } = await restarted(1_000, async (before) => {
      const client = await connect(before, alice);
      await client.session.closed('client_closed');
    });
    expect((await core.contexts.list(admin, {}, {})).completeness.complete).toBe(true);
    await core.close();
  });

  it('a command whose deadline passed while the relay was away has ended before anything is served', async () => {
    const request = { userId: 'alice', clientId: 'tab', action: 'open', commandId: 'c1' };
    const { core } = await restarted(60_000, async (before) => {
      await before.rpc.invoke(alice, { ...request, params: null, connectWithinMs: 5_000, waitFor: 'admitted' });
    });
    const command = await core.delivery.status(admin, request);
    expect([command?.stage, command?.outcome]).toEqual(['terminal', 'expired']);
    await core.close();
  });

  it('params and a result of the greatest depth are as they were', async () => {
    const key = { userId: 'alice', clientId: 'tab', commandId: 'c1' };
    const deepest = trustJson(`{"a":${'['.repeat(JSON_DEPTH - 1)}${']'.repeat(JSON_DEPTH - 1)}}`);
    const { core } = await restarted(1_000, async (before) => {
      const client = await connect(before, alice);
      const invoked = before.rpc.invoke(alice, { ...key, action: 'open', params: deepest });
      await turns();
      const [{ params = null } = {}] = client.sent;
      expect(params).toBe(deepest);
      await client.session.end('c1', { kind: 'result', payload: deepest, error: null, refused: false });
      expect(await invoked).toMatchObject({ result: deepest });
    });
    expect(await core.rpc.await(alice, { ...key, withinMs: 0 })).toMatchObject({
      ...{ kind: 'outcome', result: deepest },
      command: { outcome: 'completed' },
    });
    await core.close();
  });
});
