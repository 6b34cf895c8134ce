/** Tests which tokens a revocation covers, and the index that finds it. */
import { describe, expect, it } from 'vitest';
import type { Principal, UserPrincipal } from '../../src/core/auth/principal.ts';
import type { MemoryBackend } from '../../src/backends/memory/backend.ts';
import type { CommandCaller } from '../../src/core/commands/command.ts';
import {
  RevocationIndex,
  covers,
  coversCaller,
  type Revocation,
  type RevocationTarget,
} from '../../src/core/revocations/revocation.ts';
import { fail } from '../../src/core/errors.ts';
import { settle } from '../kit/clock.ts';
import { admin as testAdmin, advertisement, connect, testCore, user as userOf } from '../kit/core.ts';

const NOTHING: RevocationTarget = { userId: null, clientId: null, tokenId: null, issuedBefore: null };
const target = (given: Partial<RevocationTarget>): RevocationTarget => ({ ...NOTHING, ...given });
const user = (given: Partial<UserPrincipal> = {}): UserPrincipal => ({
  ...{ kind: 'user', userId: 'alice', scopes: new Set(), expiresAt: null, token: { id: 't1', issuedAt: 1_000 } },
  ...given,
});
const admin: Principal = { kind: 'admin', name: 'ops', expiresAt: null, token: { id: 'a1', issuedAt: 1_000 } };

describe('a revocation', () => {
  it.each<[string, Partial<RevocationTarget>, Principal, string | null, boolean]>([
    ['its token', { tokenId: 't1' }, user(), null, true],
    ['no other token', { tokenId: 't2' }, user(), null, false],
    ['no token without an id', { tokenId: 't1' }, user({ token: { id: null, issuedAt: 1 } }), null, false],
    ['a token of its user', { userId: 'alice' }, user(), null, true],
    ['no token of another user', { userId: 'bob' }, user(), null, false],
    ['an administrator by its name', { userId: 'ops' }, admin, null, true],
    ['a link of its client', { userId: 'alice', clientId: 'desk' }, user(), 'desk', true],
    ['no link of another client', { userId: 'alice', clientId: 'desk' }, user(), 'tab', false],
    ['no request, if it names a client', { userId: 'alice', clientId: 'desk' }, user(), null, false],
    ['a token that was issued before', { issuedBefore: 1_001 }, user(), null, true],
    ['no token that was issued then', { issuedBefore: 1_000 }, user(), null, false],
    ['a token that does not say when', { issuedBefore: 1 }, user({ token: { id: 't1', issuedAt: null } }), null, true],
    ['what matches every member', { userId: 'alice', tokenId: 't1', issuedBefore: 2_000 }, user(), null, true],
    ['nothing that lacks one member', { userId: 'bob', tokenId: 't1', issuedBefore: 2_000 }, user(), null, false],
    ['no configured token', { issuedBefore: 2_000 }, { kind: 'admin', name: 'ops', expiresAt: null }, null, false],
  ])('covers %s', (_, given, principal, clientId, expected) => {
    expect(covers(target(given), principal, clientId)).toBe(expected);
    const index = new RevocationIndex();
    const row = rowOf(1, given);
    index.add(row);
    expect(index.find(principal, clientId)).toBe(expected ? row : null);
  });
});

describe('a revocation of what was invoked', () => {
  const token = { id: 't1', issuedAt: 1_000 };
  const byUser = { kind: 'user', name: 'alice', token } as const;
  it.each<[string, Partial<RevocationTarget>, CommandCaller, boolean]>([
    ['its token', { tokenId: 't1' }, byUser, true],
    ['no other token', { tokenId: 't2' }, byUser, false],
    ['no record without a token', { tokenId: 't1' }, { kind: 'user', name: 'alice' }, false],
    ['its user, by a token that was issued before', { userId: 'alice', issuedBefore: 1_001 }, byUser, true],
    ['no token that was issued later', { userId: 'alice', issuedBefore: 1_000 }, byUser, false],
    ['a record of a user without a token', { userId: 'alice', issuedBefore: 1 }, { kind: 'user', name: 'alice' }, true],
    ['no other user', { userId: 'bob' }, byUser, false],
    ['an administrator by its token', { tokenId: 't1' }, { kind: 'admin', name: 'ops', token }, true],
    ['no configured token', { userId: 'ops', issuedBefore: 2_000 }, { kind: 'admin', name: 'ops' }, false],
    ['no holder of a grant', { issuedBefore: 2_000 }, { kind: 'grant', name: 'g1' }, false],
    ['nothing, if it names a client', { userId: 'alice', clientId: 'tab' }, byUser, false],
  ])('covers %s', (_, given, caller, expected) => {
    expect(coversCaller(target(given), caller)).toBe(expected);
  });
});

function rowOf(seq: number, given: Partial<RevocationTarget>, expiresAt = 10): Revocation {
  return { ...target(given), revocationId: `r${seq}`, reason: 'lost', who: 'admin:ops', at: 0, expiresAt, seq };
}

describe('the index', () => {
  it('takes each row once, lists the newest first, and forgets those that have expired', () => {
    const index = new RevocationIndex();
    const rows = [rowOf(1, { tokenId: 't1' }), rowOf(2, { userId: 'alice' }, 20), rowOf(3, { issuedBefore: 2_000 })];
    expect(rows.map((row) => index.add(row))).toEqual([true, true, true]);
    expect(rows.map((row) => index.add(row))).toEqual([false, false, false]);
    expect(index.newest().map(({ seq }) => seq)).toEqual([3, 2, 1]);
    index.expire(10);
    expect(index.newest().map(({ seq }) => seq)).toEqual([2]);
    expect(index.find(user(), null)?.seq).toBe(2);
    index.expire(20);
    expect([index.size, index.find(user(), null)]).toEqual([0, null]);
  });
});

describe('what a revoked token had dispatched', () => {
  it('is not written again if it never arrived, and its client is asked to stop; others run on', async () => {
    await using test = await testCore();
    const alice = userOf('alice');
    const open = { actions: [advertisement('open')] };
    const first = await connect(test.core, alice, { ...open, resumes: { attempt: 1, received: new Set() } });
    const invoke = (commandId: string, tokenId: string) =>
      test.core.rpc.invoke(
        { ...alice, token: { id: tokenId, issuedAt: 1_000 } },
        { userId: 'alice', clientId: 'tab', params: null, action: 'open', commandId },
      );
    const [revoked, other] = [invoke('c1', 't1'), invoke('c2', 't2')];
    await settle();
    expect(first.sent.map(({ command }) => command.commandId)).toEqual(['c1', 'c2']);
    await test.core.revocations.revoke(testAdmin, { tokenId: 't1', reason: 'lost' });
    const second = await connect(test.core, alice, { ...open, resumes: { attempt: 2, received: new Set() } });
    const ended = { outcome: 'failed', error: { code: 'not_received' } };
    expect(await revoked).toMatchObject({ kind: 'outcome', command: ended });
    expect(second.sent.map(({ command }) => command.commandId)).toEqual(['c2']);
    await second.result(second.last);
    expect(await other).toMatchObject({ kind: 'outcome', command: { outcome: 'completed' } });
  });
});

describe('what a revoked token has queued', () => {
  it('is cancelled later if a part of the store does not answer, which the receipt names', async () => {
    let isSilent = true;
    const wrap = (memory: MemoryBackend): MemoryBackend => ({
      ...memory,
      pauses: {
        ...memory.pauses,
        covered: (...args) => (isSilent ? fail('store_unavailable', 'no owner') : memory.pauses.covered(...args)),
      },
    });
    await using test = await testCore({ wrap });
    const token = { id: 't1', issuedAt: 1_000 };
    const called = test.core.rpc.invoke(
      { ...userOf('alice'), token },
      { userId: 'alice', clientId: 'away', params: null, action: 'open', commandId: 'c1', connectWithinMs: 60_000 },
    );
    await settle();
    const receipt = await test.core.revocations.revoke(testAdmin, { tokenId: 't1', reason: 'lost' });
    expect(receipt).toMatchObject({ cancelled: 0, silent: ['partition 0'] });
    await test.clock.advance(1_000);
    const key = { userId: 'alice', clientId: 'away', commandId: 'c1' };
    const stageOf = async () => (await test.backend.commands.get([key]))[0]?.stage;
    expect(await stageOf()).toBe('admitted');
    isSilent = false;
    await test.clock.advance(1_000);
    expect(await stageOf()).toBe('terminal');
    expect(await called).toMatchObject({ kind: 'outcome', command: { outcome: 'cancelled' } });
  });
});

describe('a revocation whose store does not say which nodes live', () => {
  it('fails, and cancels what such tokens have queued all the same', async () => {
    const living = (): never => fail('store_unavailable', 'no answer');
    const wrap = (memory: MemoryBackend): MemoryBackend => ({ ...memory, nodes: { ...memory.nodes, living } });
    await using test = await testCore({ wrap });
    const called = test.core.rpc.invoke(
      { ...userOf('alice'), token: { id: 't1', issuedAt: 1_000 } },
      { userId: 'alice', clientId: 'away', params: null, action: 'open', commandId: 'c1', connectWithinMs: 60_000 },
    );
    await settle();
    const revoked = test.core.revocations.revoke(testAdmin, { tokenId: 't1', reason: 'lost' });
    await expect(revoked).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(await called).toMatchObject({ kind: 'outcome', command: { outcome: 'cancelled' } });
  });
});

describe('a node that may have been taken for dead', () => {
  it('lets tokens wait until it has read the revocations anew, whatever an earlier reading says', async () => {
    const readings: PromiseWithResolvers<readonly Revocation[]>[] = [];
    let isSlow = false;
    const wrap = (memory: MemoryBackend): MemoryBackend => ({
      ...memory,
      revocations: {
        ...memory.revocations,
        after(...args) {
          if (!isSlow) return memory.revocations.after(...args);
          const reading = Promise.withResolvers<readonly Revocation[]>();
          readings.push(reading);
          return reading.promise;
        },
      },
    });
    await using test = await testCore({ wrap });
    const { revocations } = test.core;
    expect(revocations.isLoaded).toBe(true);
    isSlow = true;
    revocations.readAnew();
    revocations.readAnew();
    expect(readings).toHaveLength(2);
    const [earlier, newest] = readings;
    earlier?.resolve([rowOf(1, { tokenId: 't1' })]);
    await settle();
    expect(revocations.isLoaded).toBe(false);
    let isLoaded = false;
    const loaded = revocations.loaded().then(() => (isLoaded = true));
    await settle();
    expect(isLoaded).toBe(false);
    newest?.resolve([rowOf(2, { tokenId: 't2' })]);
    await loaded;
    expect(revocations.find(user({ token: { id: 't2', issuedAt: 1 } }))).toMatchObject({ tokenId: 't2' });
    expect(revocations.find(user({ token: { id: 't1', issuedAt: 1 } }))).toMatchObject({ tokenId: 't1' });
  });
});
