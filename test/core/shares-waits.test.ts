/** Tests the limit (the share) of the waits that one user may hold. */
import { describe, expect, it } from 'vitest';
import type { Core, InvokeRequest } from '../../src/core/core.ts';
import type { SpillStore } from '../../src/core/history/message.ts';
import { toJson } from '../../src/core/json.ts';
import { shareBounds } from '../../src/core/shares/share-bounds.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { settle } from '../kit/clock.ts';
import { admin, connect, testCore, user } from '../kit/core.ts';

const alice = user('alice');
const target = { userId: 'alice', clientId: 'tab', action: 'open', params: null };

function bounded(guarantee: number) {
  return { shares: createShares(shareBounds({ waits: { guarantee } })) };
}

function invoke(core: Core, over: Partial<InvokeRequest> = {}) {
  return core.rpc.invoke(alice, { ...target, ...over });
}

describe("one user's waiting calls", () => {
  it('are refused beyond the share before anything is admitted, and an administrator has a separate share', async () => {
    await using relay = await testCore(bounded(2));
    const client = await connect(relay.core, alice);
    const waiting = [invoke(relay.core), invoke(relay.core)];
    await settle();
    const refused = { kind: 'refused', code: 'share_exceeded', share: 'waits', by: 'capacity', commandId: 'c3' };
    expect(await invoke(relay.core, { commandId: 'c3' })).toMatchObject(refused);
    expect(client.sent).toHaveLength(2);
    expect(await relay.core.delivery.command(alice, { ...target, commandId: 'c3' })).toBeNull();
    waiting.push(relay.core.rpc.invoke(admin, target));
    await settle();
    expect(client.sent).toHaveLength(3);
    expect(relay.core.shares.of('/admin/test').held('waits')).toBe(1);
    for (const { command } of client.sent) await client.result(command);
    await Promise.all(waiting);
    expect(relay.core.shares.used('waits')).toBe(0);
    expect(await invoke(relay.core, { waitFor: 'admitted' })).toMatchObject({ kind: 'pending' });
  });

  it('count as long as they wait: every kind of end frees one', async () => {
    await using relay = await testCore(bounded(100));
    const { core, clock } = relay;
    const client = await connect(core, alice);
    const used = (): number => core.shares.used('waits');
    const gone = new AbortController();
    const left = invoke(core, { commandId: 'left', signal: gone.signal });
    const late = invoke(core, { commandId: 'late', respondWithinMs: 5_000 });
    await settle();
    expect(used()).toBe(2);
    gone.abort();
    await left;
    expect(used()).toBe(1);
    await clock.advance(5_000);
    await late;
    expect(used()).toBe(0);
    // The first call is refused, the second is answered at once, and the third attaches to an ended command.
    expect(await invoke(core, { clientId: 'away' })).toMatchObject({ kind: 'refused', code: 'not_connected' });
    await invoke(core, { waitFor: 'admitted' });
    await client.result(client.last);
    const attached = core.rpc.await(alice, { ...target, commandId: client.last.commandId });
    expect(await attached).toMatchObject({ kind: 'outcome', result: toJson({ ok: true }) });
    expect(used()).toBe(0);
  });

  it('that await by ids count in the same way', async () => {
    await using relay = await testCore(bounded(1));
    const { core } = relay;
    const client = await connect(core, alice);
    await invoke(core, { commandId: 'c1', waitFor: 'admitted' });
    const key = { ...target, commandId: 'c1' };
    const first = core.rpc.await(alice, key);
    await settle();
    const details = expect.objectContaining({ share: 'waits' });
    await expect(core.rpc.await(alice, key)).rejects.toMatchObject({ code: 'share_exceeded', details });
    // A wait of 0 ms only reads, and creates no waiter.
    expect(await core.rpc.await(alice, { ...key, withinMs: 0 })).toMatchObject({ kind: 'pending' });
    await client.result(client.last);
    await first;
    expect(core.shares.used('waits')).toBe(0);
  });

  it('release their share when their params cannot be stored', async () => {
    const spill = (): SpillStore => ({
      kind: 'none',
      managed: false,
      put: () => Promise.reject(new Error('no disk')),
      discard() {},
      read: async () => ({ state: 'unavailable' }),
      clean: () => 0,
    });
    await using relay = await testCore({ ...bounded(1), spill });
    await connect(relay.core, alice);
    const params = toJson({ text: 'x'.repeat(20_000) });
    expect(await invoke(relay.core, { params })).toMatchObject({ kind: 'refused' });
    expect(relay.core.shares.used('waits')).toBe(0);
  });
});
