/**
 * Tests what the memory backend drops first when ended commands reach a user's limit: results, whole records, or the
 * short marks that replace records.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import { ANY_COMMAND } from '../../src/core/commands/delivery-inspector.ts';
import type { AdmitRequest } from '../../src/core/commands/command-store.ts';
import { toJson } from '../../src/core/json.ts';
import { silentLog } from '../../src/core/ports.ts';
import { silentMetrics, type Metrics } from '../../src/core/metrics.ts';
import type { ShareBounds } from '../../src/core/shares/share-bounds.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { CALLER, admission, BOUND, ending } from '../contract/kit/bench.ts';
import { FakeClock } from '../kit/clock.ts';

const { sha256 } = createCrypto('test');
const WINDOW = 3_600_000;
const SHARES = ['result_bytes', 'ended_records', 'marks'] as const;

type Options = { readonly bounds?: Partial<ShareBounds>; readonly retentionMs?: number; readonly windowMs?: number };

function opened({ bounds = {}, retentionMs = 7 * 24 * WINDOW, windowMs = WINDOW }: Options = {}) {
  const clock = new FakeClock();
  const shares = createShares(bounds);
  const warnings: string[] = [];
  const log = { ...silentLog, warn: (_: unknown, text: string) => void warnings.push(text) };
  const counts: Record<string, number> = {};
  const metrics: Metrics = {
    ...silentMetrics,
    count(name, label) {
      const counter = label === undefined ? name : `${name}:${label}`;
      counts[counter] = (counts[counter] ?? 0) + 1;
    },
  };
  const options = {
    clock,
    log,
    metrics,
    sha256,
    markSecret: 'x',
    shares,
    idempotencyWindowMs: windowMs,
    history: { retentionMs },
  };
  const backend = createMemoryBackend(options);
  const { commands } = backend;
  const client = (userId: string) => ({ userId, clientId: 'tab' });
  const key = (userId: string, commandId: string) => ({ ...client(userId), commandId });
  const bind = (...userIds: readonly string[]): void => {
    for (const userId of userIds) void commands.rebind(client(userId), BOUND, 'up');
  };
  const admit = (userId: string, commandId: string, over: Partial<AdmitRequest> = {}) =>
    commands.admit(admission(commandId, { userId, scopeId: userId, ...over }));
  /** Runs a command to its end, with a result of this many bytes. Returns the answer to its admission. */
  const run = async (userId: string, commandId: string, { bytes = 2, ...over }: RunOptions = {}) => {
    const admitted = await admit(userId, commandId, over);
    if (admitted.kind !== 'admitted') return admitted;
    await commands.dispatch(key(userId, commandId), BOUND);
    await commands.finish(key(userId, commandId), ending({ payload: toJson('x'.repeat(bytes - 2)) }));
    return admitted;
  };
  const record = async (userId: string, commandId: string) => (await commands.get([key(userId, commandId)]))[0];
  const gaps = async (userId: string | null) => {
    const filter = { ...ANY_COMMAND, userId };
    return (await backend.inspector.list(filter, { first: 10, after: null })).gaps.map(({ reason }) => reason);
  };
  return { backend, commands, clock, shares, warnings, counts, bind, admit, run, record, gaps, key };
}

type RunOptions = Partial<AdmitRequest> & { readonly bytes?: number };

describe('results of ended commands', () => {
  it('are dropped first from the user who is most over their guarantee, oldest first', async () => {
    const relay = opened({ bounds: { result_bytes: { guarantee: 100, total: 300 } } });
    relay.bind('alice', 'bob', 'mallory');
    for (const id of ['a1', 'a2']) await relay.run('alice', id, { bytes: 50 });
    await relay.run('bob', 'b1', { bytes: 60 });
    for (let i = 0; i < 20; i++) await relay.run('mallory', `m${i}`, { bytes: 40 });
    const expired = async (userId: string, id: string) => (await relay.record(userId, id))?.resultExpired;
    expect(await Promise.all([expired('alice', 'a1'), expired('alice', 'a2'), expired('bob', 'b1')])).toEqual([
      false,
      false,
      false,
    ]);
    const kept = await Promise.all(Array.from({ length: 20 }, (_, i) => expired('mallory', `m${i}`)));
    expect(kept.indexOf(false)).toBe(17);
    expect(kept.lastIndexOf(true)).toBe(16);
    expect(relay.shares.used('result_bytes')).toBe(280);
    expect(relay.counts).toEqual({ 'results_given_up:share': 17 });
  });

  it('are answered as expired, and the record stays', async () => {
    const relay = opened({ bounds: { result_bytes: { guarantee: 50, total: 50 } } });
    relay.bind('alice');
    await relay.run('alice', 'a1', { bytes: 40 });
    await relay.run('alice', 'a2', { bytes: 40 });
    expect(await relay.admit('alice', 'a1')).toMatchObject({
      kind: 'attached',
      command: { outcome: 'completed', resultExpired: true },
      result: null,
    });
    expect(await relay.commands.result(relay.key('alice', 'a1'))).toBeNull();
    expect(await relay.admit('alice', 'a2')).toMatchObject({
      command: { resultExpired: false },
      result: toJson('x'.repeat(38)),
    });
  });

  it('of the only user are dropped oldest first; if no user is over the guarantee, the oldest of all are dropped', async () => {
    const relay = opened({ bounds: { result_bytes: { guarantee: 100, total: 100 } } });
    relay.bind('alice', 'bob');
    await relay.run('alice', 'a1', { bytes: 60 });
    await relay.run('bob', 'b1', { bytes: 60 });
    expect([
      (await relay.record('alice', 'a1'))?.resultExpired,
      (await relay.record('bob', 'b1'))?.resultExpired,
    ]).toEqual([true, false]);
  });

  it('larger than the total still reach the callers that wait', async () => {
    const relay = opened({ bounds: { result_bytes: { guarantee: 10, total: 10 } } });
    const replies: unknown[] = [];
    await relay.backend.nodes.attach('n1', {
      deliver: (row) => void (row.kind === 'reply' && replies.push(row.reply.result)),
      lost: () => Promise.resolve(),
      linksLost: () => {},
      revived: () => {},
    });
    relay.bind('alice');
    await relay.run('alice', 'a1', { bytes: 40 });
    await relay.clock.advance(0);
    expect(replies).toEqual([toJson('x'.repeat(38))]);
    expect([await relay.record('alice', 'a1'), relay.shares.used('result_bytes')]).toMatchObject([
      { resultExpired: true },
      0,
    ]);
  });

  it('are dropped, with their bytes, when the retention ends before the window', async () => {
    const relay = opened({ retentionMs: 4_000 });
    relay.bind('alice');
    await relay.run('alice', 'a1', { bytes: 40 });
    await relay.clock.advance(3_999);
    expect(await relay.admit('alice', 'a1')).toMatchObject({ command: { resultExpired: false } });
    await relay.clock.advance(1);
    expect(await relay.admit('alice', 'a1')).toMatchObject({
      kind: 'attached',
      command: { resultExpired: true },
      result: null,
    });
    expect(relay.shares.used('result_bytes')).toBe(0);
    expect(relay.counts).toEqual({ 'results_given_up:retention': 1 });
  });
});

const FEW_RECORDS = { ended_records: { guarantee: 2, total: 4 } };

describe('records of ended commands', () => {
  it('are reduced to marks, first for the user over their guarantee, and their ids still run only once', async () => {
    const relay = opened({ bounds: FEW_RECORDS });
    relay.bind('alice', 'mallory');
    for (const id of ['a1', 'a2']) await relay.run('alice', id);
    for (let i = 0; i < 10; i++) await relay.run('mallory', `m${i}`);
    expect(await Promise.all(['a1', 'a2'].map((id) => relay.record('alice', id)))).toMatchObject([{}, {}]);
    expect(await relay.record('mallory', 'm0')).toBeNull();
    expect(await relay.record('mallory', 'm9')).toMatchObject({ outcome: 'completed' });
    expect(relay.counts).toEqual({ records_reduced: 8, 'results_given_up:record': 8 });
    const mark = {
      ...{ outcome: 'completed', execution: 'reported_by_client', errorCode: null },
      ...{ endedAt: relay.clock.now(), resultExpired: true },
    };
    expect(await relay.admit('mallory', 'm0')).toEqual({ kind: 'ended', mark });
    expect(await relay.admit('mallory', 'm0', { digest: 'd2' })).toEqual({ kind: 'refused', code: 'command_conflict' });
    expect(await relay.commands.mark(relay.key('mallory', 'm0'))).toEqual(mark);
    expect(await relay.commands.mark(relay.key('mallory', 'm9'))).toBeNull();
    expect(await relay.commands.mark(relay.key('alice', 'm0'))).toBeNull();
    const waiter = { rpcId: 'r', caller: CALLER, callerNodeId: 'n1', waitFor: 'completed', withinMs: null } as const;
    expect(await relay.backend.waiters.attach(relay.key('mallory', 'm0'), waiter)).toEqual({ kind: 'ended', mark });
    expect([await relay.gaps('alice'), await relay.gaps('mallory'), await relay.gaps(null)]).toEqual([
      [],
      ['evicted'],
      ['evicted'],
    ]);
  });

  it('keep the outcome and the code of a failure', async () => {
    const relay = opened({ bounds: { ended_records: { guarantee: 1, total: 1 } } });
    relay.bind('alice');
    await relay.admit('alice', 'a1');
    await relay.commands.dispatch(relay.key('alice', 'a1'), BOUND);
    const error = { code: 'lease_busy', message: 'not now' };
    await relay.commands.finish(
      relay.key('alice', 'a1'),
      ending({ kind: 'error', payload: null, error, refused: true }),
    );
    await relay.run('alice', 'a2');
    expect(await relay.commands.mark(relay.key('alice', 'a1'))).toMatchObject({
      ...{ outcome: 'failed', execution: 'refused_by_client', errorCode: 'lease_busy', resultExpired: false },
    });
  });

  it('and marks expire with the window, whatever its length', async () => {
    const relay = opened({ bounds: FEW_RECORDS, windowMs: 60_000 });
    relay.bind('alice');
    for (let i = 0; i < 6; i++) await relay.run('alice', `a${i}`);
    await relay.clock.advance(59_999);
    expect(await relay.admit('alice', 'a0')).toMatchObject({ kind: 'ended' });
    expect(await relay.admit('alice', 'a5')).toMatchObject({ kind: 'attached' });
    await relay.clock.advance(1);
    expect(await relay.admit('alice', 'a0')).toMatchObject({ kind: 'admitted' });
    expect(await relay.admit('alice', 'a5')).toMatchObject({ kind: 'admitted' });
    expect(await relay.gaps(null)).toEqual([]);
  });
});

const FEW_MARKS = { ...FEW_RECORDS, marks: { guarantee: 4, total: 8 } };
const relayId = (n: number): string => `01900000-0000-7000-8000-${String(n).padStart(12, '0')}`;

describe('room for marks', () => {
  it('is reserved at admission: without room, chosen ids are refused, first for the user over their guarantee', async () => {
    const relay = opened({ bounds: FEW_MARKS });
    relay.bind('alice', 'mallory');
    const kinds: string[] = [];
    for (let i = 0; i < 8; i++) {
      const answer = await relay.run('mallory', `m${i}`);
      kinds.push(answer.kind === 'refused' ? answer.code : answer.kind);
    }
    // No user is refused below three quarters of the total.
    expect(kinds).toEqual([...Array.from({ length: 6 }, () => 'admitted'), 'share_exceeded', 'share_exceeded']);
    for (const id of ['a1', 'a2']) expect(await relay.run('alice', id)).toMatchObject({ kind: 'admitted' });
    expect(await relay.run('alice', 'a3')).toEqual({ kind: 'refused', code: 'store_full' });
    expect(await relay.admit('mallory', 'm0')).toMatchObject({ kind: 'ended' });
    expect(await relay.admit('mallory', 'm5')).toMatchObject({ kind: 'attached' });
    expect(relay.shares.used('marks')).toBe(8);
    await relay.clock.advance(WINDOW + WINDOW / 6);
    expect(await relay.run('mallory', 'm8')).toMatchObject({ kind: 'admitted' });
  });

  it('is not needed for ids that the relay generates; a forgotten one does not run when a caller chooses it', async () => {
    const relay = opened({ bounds: FEW_MARKS });
    relay.bind('alice', 'bob');
    for (let i = 0; i < 6; i++) await relay.run('bob', `b${i}`);
    await relay.clock.advance(WINDOW / 2);
    for (let i = 0; i < 20; i++)
      expect(await relay.run('alice', relayId(i), { chosenId: false })).toMatchObject({ kind: 'admitted' });
    expect(relay.warnings).toEqual(['no room for marks: ended commands are forgotten early']);
    // Of alice's 20 commands, two keep their whole record and two keep a mark. The others are forgotten.
    expect(relay.counts).toMatchObject({ ids_forgotten: 16 });
    expect(relay.shares.used('marks')).toBe(8);
    expect(await relay.commands.mark(relay.key('alice', relayId(10)))).toBeNull();
    expect(await relay.gaps('alice')).toEqual(['evicted']);
    // Bob's marks have expired, but the window of alice's forgotten ids has not ended. Until it ends, an id that may
    // have run is refused.
    await relay.clock.advance(WINDOW * 0.6);
    expect(await relay.admit('alice', relayId(10))).toEqual({ kind: 'refused', code: 'share_exceeded' });
    expect(await relay.admit('alice', relayId(21))).toMatchObject({ kind: 'admitted' });
    expect(await relay.admit('alice', 'fresh')).toMatchObject({ kind: 'admitted' });
    await relay.clock.advance(WINDOW);
    expect(await relay.admit('alice', relayId(10))).toMatchObject({ kind: 'admitted' });
  });

  it('is found for a generated id that a caller names while its record is complete', async () => {
    const relay = opened({ bounds: FEW_MARKS });
    relay.bind('alice', 'bob');
    for (let i = 0; i < 6; i++) await relay.run('bob', `b${i}`);
    await relay.run('alice', relayId(1), { chosenId: false });
    expect(await relay.admit('alice', relayId(1), { chosenId: true })).toMatchObject({ kind: 'attached' });
    expect(relay.shares.of('alice').held('marks')).toBe(1);
  });
});

type Step =
  | { readonly do: 'run' | 'admit' | 'end'; readonly user: string; readonly id: number; readonly digest: string }
  | { readonly do: 'wait'; readonly ms: number };

describe('any sequence of commands under tight bounds', () => {
  const user = fc.constantFrom('alice', 'bob', 'mallory');
  const about = { user, id: fc.nat(12), digest: fc.constantFrom('d1', 'd1', 'd1', 'd2') };
  const step: fc.Arbitrary<Step> = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constantFrom('run' as const, 'run' as const, 'admit' as const, 'end' as const),
        ...about,
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(1, 4_000, 9_999, 30_000, 59_999) }),
    },
  );

  it('admits an id once within its window, counts exactly, and holds nothing when all windows have ended', async () => {
    const windowMs = 60_000;
    const bounds = {
      ...{ result_bytes: { guarantee: 10, total: 40 }, ended_records: { guarantee: 1, total: 3 } },
      ...{ marks: { guarantee: 6, total: 14 } },
    };
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 150, size: 'max' }), async (steps) => {
        const relay = opened({ bounds, windowMs });
        relay.bind('alice', 'bob', 'mallory');
        /**
         * The digest of the request of each id, and when its command ended. The time is null while the command is live.
         */
        const known = new Map<string, { digest: string; endedAt: number | null }>();
        for (const move of steps) {
          if (move.do === 'wait') {
            // Live commands would reach their deadline and end.
            await relay.clock.advance(move.ms);
            continue;
          }
          const id = `c${move.id}`;
          const name = `${move.user}/${id}`;
          const before = known.get(name);
          const now = relay.clock.now();
          const isKnown = before && (before.endedAt === null || before.endedAt + windowMs > now);
          if (move.do === 'end') {
            if (!before || before.endedAt !== null) continue;
            await relay.commands.settle(relay.key(move.user, id), { kind: 'cancel', reason: null, by: 'test' });
            before.endedAt = now;
            continue;
          }
          const act = move.do === 'run' ? relay.run : relay.admit;
          const over = { digest: move.digest, connectWithinMs: 300_000, bytes: 9 };
          const answer = await act(move.user, id, over);
          if (isKnown) {
            const expected =
              before.digest === move.digest
                ? ['attached', 'ended', 'refused:capacity_exceeded']
                : ['refused:command_conflict'];
            expect(expected).toContain(answer.kind === 'refused' ? `refused:${answer.code}` : answer.kind);
            continue;
          }
          if (answer.kind === 'refused') {
            expect(['share_exceeded', 'store_full']).toContain(answer.code);
            continue;
          }
          expect(answer.kind).toBe('admitted');
          known.set(name, { digest: move.digest, endedAt: move.do === 'run' ? now : null });
          expect(relay.shares.used('result_bytes')).toBeLessThanOrEqual(40);
          expect(relay.shares.used('ended_records')).toBeLessThanOrEqual(3);
          expect(relay.shares.used('marks')).toBeLessThanOrEqual(14);
        }
        for (const [name, { endedAt }] of known) {
          const [userId = '', id = ''] = name.split('/');
          if (endedAt === null)
            await relay.commands.settle(relay.key(userId, id), { kind: 'cancel', reason: null, by: 'test' });
        }
        await relay.clock.advance(2 * windowMs + 1);
        expect(await relay.record('alice', 'c0')).toBeNull();
        expect(SHARES.map((share) => relay.shares.used(share))).toEqual([0, 0, 0]);
      }),
      { numRuns: 150 },
    );
  });
});
