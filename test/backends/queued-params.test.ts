/** Tests the limit of one user's params that wait for their dispatch. */
import { describe, expect, it } from 'vitest';
import { createMemoryBackend, type MemoryBackend } from '../../src/backends/memory/backend.ts';
import type { AdmitRequest } from '../../src/core/delivery/commands.ts';
import { toJson, type JsonText } from '../../src/core/json.ts';
import { silentLog } from '../../src/core/log.ts';
import { shareBounds } from '../../src/core/shares/bounds.ts';
import { createShares, type Shares } from '../../src/core/shares/shares.ts';
import { createCrypto } from '../../src/platform/crypto.ts';
import { admission, ALICE, BOUND, ending, keyFor, openNode, type Bench } from '../contract/kit/bench.ts';
import { FakeClock } from '../kit/clock.ts';

type Stage = { readonly backend: MemoryBackend; readonly shares: Shares; readonly clock: FakeClock };

function stage(guarantee: number, total: number): Stage {
  const clock = new FakeClock();
  const { sha256 } = createCrypto('test');
  const shares = createShares(shareBounds({ queued_bytes: { guarantee, total } }));
  return { backend: createMemoryBackend({ clock, log: silentLog, sha256, shares }), shares, clock };
}

/** Returns params of exactly this many bytes. */
function params(bytes: number): JsonText {
  return toJson('x'.repeat(bytes - 2)) ?? ('' as JsonText);
}

function park(backend: MemoryBackend, commandId: string, over: Partial<AdmitRequest> = {}) {
  return backend.commands.admit(admission(commandId, { connectWithinMs: 60_000, ...over }));
}

describe('params of queued commands', () => {
  it('are counted exactly until their command is dispatched or ends', async () => {
    const { backend, shares, clock } = stage(1_000_000, 1_000_000);
    const bench: Bench = { backend, advance: (ms) => clock.advance(ms), now: () => clock.now(), async close() {} };
    await openNode(bench);
    const used = (): number => shares.used('queued_bytes');
    await park(backend, 'c1', { params: params(100) });
    await park(backend, 'c2', { params: toJson('ééé') });
    await park(backend, 'c3', { params: params(5_000) });
    await park(backend, 'c4', { params: null });
    expect(used()).toBe(100 + 8 + 5_000);
    expect(shares.of('alice').held('queued_bytes')).toBe(used());
    await backend.commands.settle(keyFor('c3'), { kind: 'cancel', reason: null, by: 'test' });
    expect(used()).toBe(108);
    await backend.commands.rebind(ALICE, BOUND, 'up');
    expect(used()).toBe(108);
    const dispatched = await backend.commands.dispatch(keyFor('c1'), BOUND);
    expect(dispatched).toMatchObject({ kind: 'dispatch', params: params(100) });
    expect(used()).toBe(8);
    await backend.commands.finish(keyFor('c1'), ending());
    await clock.advance(90_000);
    for (const id of ['c2', 'c4']) await backend.commands.settle(keyFor(id), { kind: 'expire' });
    expect(used()).toBe(0);
  });

  it('are refused beyond the share, and nothing is admitted', async () => {
    const { backend, shares } = stage(10_000, 40_000);
    for (const id of ['c1', 'c2', 'c3']) await park(backend, id, { params: params(9_000) });
    const refused = { kind: 'refused', code: 'share_exceeded', share: 'queued_bytes' };
    expect(await park(backend, 'c4', { params: params(9_000) })).toEqual(refused);
    expect(await backend.commands.get([keyFor('c4')])).toEqual([null]);
    expect(await park(backend, 'c5', { params: params(1_000) })).toMatchObject({ kind: 'admitted' });
    expect(await park(backend, 'c6', { params: null })).toMatchObject({ kind: 'admitted' });
    // The other user still gets what is guaranteed to each user, but nobody gets more than the total.
    const bob = { userId: 'bob', scopeId: 'bob' };
    expect(await park(backend, 'b1', { ...bob, params: params(10_000) })).toMatchObject({ kind: 'admitted' });
    const carol = { userId: 'carol', scopeId: 'carol', params: params(4_000) };
    expect(await park(backend, 'd1', carol)).toEqual({ ...refused, code: 'store_full' });
    expect(shares.used('queued_bytes')).toBe(38_000);
    // A repeated invocation attaches to its command, even if its user has no room for params.
    expect(await park(backend, 'c1', { params: params(9_000) })).toMatchObject({ kind: 'attached' });
  });

  it('that are small reach a live client without a queue, however much is queued for another client', async () => {
    const { backend } = stage(10_000, 10_000);
    await park(backend, 'c1', { clientId: 'away', params: params(10_000) });
    await backend.commands.rebind(ALICE, BOUND, 'up');
    const small = { params: params(5_000) };
    expect(await backend.commands.admit(admission('c2', small))).toMatchObject({ kind: 'admitted' });
    // One command is queued now, so the limit leaves no room for another.
    expect(await backend.commands.admit(admission('c3', small))).toMatchObject({ kind: 'refused' });
    await backend.commands.dispatch(keyFor('c2'), BOUND);
    expect(await backend.commands.admit(admission('c4', small))).toMatchObject({ kind: 'admitted' });
    await backend.commands.dispatch(keyFor('c4'), BOUND);
    const large = { params: params(20_000) };
    expect(await backend.commands.admit(admission('c5', large))).toMatchObject({ kind: 'refused' });
  });
});
