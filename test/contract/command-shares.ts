/**
 * Defines the contract tests of CommandStore about the shares that it counts: queued params, results and ids. Every
 * backend must pass them.
 */
import * as fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { ANY_COMMAND } from '../../src/core/commands/delivery-inspector.ts';
import type { AdmitRequest } from '../../src/core/commands/command-store.ts';
import type { CommandKey } from '../../src/core/ids.ts';
import { toJson, type JsonText } from '../../src/core/json.ts';
import { TERMINAL_MS } from '../../src/core/limits.ts';
import { shareBounds, type GivenBounds, type ShareBounds, type ShareName } from '../../src/core/shares/share-bounds.ts';
import { CALLER, admission, ALICE, BOUND, ending, keyFor, openNode, type Bench } from './kit/bench.ts';

/** A bench, and how much of a share all users hold together. */
export type SharesBench = Bench & { used(share: ShareName): Promise<number> | number };
export type MakeSharesBench = (bounds: ShareBounds) => Promise<SharesBench>;

/** The time after which nothing of an ended command is kept, in milliseconds. */
const EVERYTHING_OVER_MS = 3 * TERMINAL_MS;

function ofUser(userId: string, commandId: string): CommandKey {
  return { userId, clientId: 'tab', commandId };
}

function invoking(userId: string, commandId: string, over: Partial<AdmitRequest> = {}): AdmitRequest {
  return admission(commandId, { userId, clientId: 'tab', scopeId: userId, ...over });
}

/** Runs a command to its end. */
async function ran(
  { backend: { commands } }: Bench,
  userId: string,
  commandId: string,
  over: Partial<AdmitRequest> = {},
): Promise<void> {
  await commands.rebind({ userId, clientId: 'tab' }, BOUND, 'up');
  await commands.admit(invoking(userId, commandId, over));
  await commands.dispatch(ofUser(userId, commandId), BOUND);
  await commands.finish(ofUser(userId, commandId), ending());
}

/** Returns an id in the form of those that the relay makes. */
function relayId(n: number): string {
  return `01900000-0000-7000-8000-${String(n).padStart(12, '0')}`;
}

/** Returns JSON of exactly this many bytes. */
function text(bytes: number): JsonText {
  return toJson('x'.repeat(bytes - 2)) ?? ('' as JsonText);
}

/** Defines the tests of the shares that a CommandStore counts. `runs` is the number of runs of the random test. */
export function commandShares(name: string, make: MakeSharesBench, { runs }: { readonly runs: number }): void {
  describe(`the shares of commands on ${name}`, () => {
    const open: SharesBench[] = [];
    afterEach(async () => {
      for (const bench of open.splice(0)) await bench.close();
    });
    const opened = async (bounds: GivenBounds): Promise<SharesBench> => {
      const bench = await make(shareBounds(bounds));
      open.push(bench);
      await openNode(bench);
      return bench;
    };
    const park = ({ backend }: Bench, commandId: string, over: Partial<AdmitRequest> = {}) =>
      backend.commands.admit(admission(commandId, { connectWithinMs: 60_000, ...over }));

    it('count params exactly until their command is dispatched or ends', async () => {
      const bench = await opened({ queued_bytes: { guarantee: 1_000_000, total: 1_000_000 } });
      const { commands } = bench.backend;
      const used = () => bench.used('queued_bytes');
      await park(bench, 'c1', { params: text(100) });
      await park(bench, 'c2', { params: toJson('ééé') });
      await park(bench, 'c3', { params: text(5_000) });
      await park(bench, 'c4', { params: null });
      expect(await used()).toBe(100 + 8 + 5_000);
      await commands.settle(keyFor('c3'), { kind: 'cancel', reason: null, by: 'test' });
      expect(await used()).toBe(108);
      await commands.rebind(ALICE, BOUND, 'up');
      expect(await used()).toBe(108);
      expect(await commands.dispatch(keyFor('c1'), BOUND)).toMatchObject({ kind: 'dispatch', params: text(100) });
      expect(await used()).toBe(8);
      await commands.finish(keyFor('c1'), ending());
      await bench.advance(90_000);
      for (const id of ['c2', 'c4']) await commands.settle(keyFor(id), { kind: 'expire' });
      expect(await used()).toBe(0);
    });

    it('do not count params whose command is dispatched by the act that admits it', async () => {
      const bench = await opened({});
      const { commands } = bench.backend;
      await commands.rebind(ALICE, BOUND, 'up');
      const admitted = await commands.admit(admission('c1', { claim: { binding: BOUND, attempt: '1' } }));
      if (admitted.kind === 'admitted' && !admitted.dispatch) await commands.dispatch(keyFor('c1'), BOUND);
      expect(await bench.used('queued_bytes')).toBe(0);
    });

    it('refuse params beyond the share, as the preview does, and nothing is admitted', async () => {
      const bench = await opened({ queued_bytes: { guarantee: 10_000, total: 40_000 } });
      const { commands } = bench.backend;
      for (const id of ['c1', 'c2', 'c3']) await park(bench, id, { params: text(9_000) });
      const refused = { kind: 'refused', code: 'share_exceeded', share: 'queued_bytes' };
      const large = admission('c4', { connectWithinMs: 60_000, params: text(9_000) });
      expect((await commands.preview(large)).answer).toEqual(refused);
      expect(await commands.admit(large)).toEqual(refused);
      expect(await commands.get([keyFor('c4')])).toEqual([null]);
      expect(await park(bench, 'c5', { params: text(1_000) })).toMatchObject({ kind: 'admitted' });
      expect(await park(bench, 'c6', { params: null })).toMatchObject({ kind: 'admitted' });
      // The other user still gets what is guaranteed to each user, but nobody gets more than the total.
      const bob = { userId: 'bob', scopeId: 'bob' };
      expect(await park(bench, 'b1', { ...bob, params: text(10_000) })).toMatchObject({ kind: 'admitted' });
      const carol = { userId: 'carol', scopeId: 'carol', params: text(4_000) };
      expect(await park(bench, 'd1', carol)).toEqual({ ...refused, code: 'store_full' });
      expect(await bench.used('queued_bytes')).toBe(38_000);
      // A repeated invocation attaches to its command, even if its user has no room for params.
      expect(await park(bench, 'c1', { params: text(9_000) })).toMatchObject({ kind: 'attached' });
    });

    it('leave room for users who hold little once the total is used up', async () => {
      const bench = await opened({ queued_bytes: { guarantee: 10_000, total: 40_000 } });
      for (const id of ['a1', 'a2', 'a3']) await park(bench, id, { params: text(10_000) });
      const parkFor = (userId: string, bytes: number) =>
        park(bench, `${userId}-${bytes}`, { userId, scopeId: userId, params: text(bytes) });
      expect(await parkFor('bob', 10_000)).toMatchObject({ kind: 'admitted' });
      const refused = { kind: 'refused', code: 'store_full', share: 'queued_bytes' };
      // The reserve is a sixteenth of the total: 2,500 bytes. A user may hold free² / 2,500 of it.
      expect(await parkFor('carol', 1_000)).toEqual(refused);
      expect(await parkFor('carol', 900)).toMatchObject({ kind: 'admitted' });
      expect(await parkFor('carol', 100)).toEqual(refused);
      expect(await parkFor('dave', 600)).toEqual(refused);
      expect(await parkFor('dave', 300)).toMatchObject({ kind: 'admitted' });
      expect(await bench.used('queued_bytes')).toBe(41_200);
    });

    it("leave each member of a scope a part of it, and count a member's commands until they end", async () => {
      const bench = await opened({});
      const terms = { scopeId: 'team', scopeLimit: 8, memberLimit: 2 };
      const admit = (userId: string, commandId: string) => park(bench, commandId, { userId, ...terms });
      for (let i = 0; i < 6; i++) expect(await admit('alice', `a${i}`)).toMatchObject({ kind: 'admitted' });
      // A quarter of the scope is left for members who hold little.
      const refused = { kind: 'refused', code: 'share_exceeded', share: 'scope' };
      const another = { connectWithinMs: 60_000, ...terms };
      expect((await bench.backend.commands.preview(admission('a6', another))).answer).toEqual(refused);
      expect(await admit('alice', 'a6')).toEqual(refused);
      expect(await admit('bob', 'b0')).toMatchObject({ kind: 'admitted' });
      const cancel = { kind: 'cancel', reason: null, by: 'test' } as const;
      for (const id of ['a0', 'a1', 'a2', 'a3', 'a4'])
        await bench.backend.commands.settle({ userId: 'alice', clientId: 'tab', commandId: id }, cancel);
      for (let i = 1; i < 5; i++) expect(await admit('bob', `b${i}`)).toMatchObject({ kind: 'admitted' });
      // Alice has one command left, so she may have a second one.
      expect(await admit('bob', 'b5')).toEqual(refused);
      expect(await admit('alice', 'a7')).toMatchObject({ kind: 'admitted' });
      expect(await admit('alice', 'a8')).toEqual(refused);
      expect(await admit('carol', 'c0')).toMatchObject({ kind: 'admitted' });
      expect(await admit('carol', 'c1')).toEqual({ kind: 'refused', code: 'capacity_exceeded' });
    });

    it('let small params reach a live client without a queue, however much is queued for another client', async () => {
      const bench = await opened({ queued_bytes: { guarantee: 10_000, total: 10_000 } });
      const { commands } = bench.backend;
      await park(bench, 'c1', { clientId: 'away', params: text(10_000) });
      await commands.rebind(ALICE, BOUND, 'up');
      const small = { params: text(5_000) };
      expect(await commands.admit(admission('c2', small))).toMatchObject({ kind: 'admitted' });
      // One command is queued now, so the limit leaves no room for another.
      expect(await commands.admit(admission('c3', small))).toMatchObject({ kind: 'refused' });
      await commands.dispatch(keyFor('c2'), BOUND);
      expect(await commands.admit(admission('c4', small))).toMatchObject({ kind: 'admitted' });
      await commands.dispatch(keyFor('c4'), BOUND);
      expect(await commands.admit(admission('c5', { params: text(20_000) }))).toMatchObject({ kind: 'refused' });
    });

    it('refuse an id that the caller chose without room for its mark, but no id that the relay made', async () => {
      const bench = await opened({ marks: { guarantee: 1, total: 2 } });
      const bob = { userId: 'bob', scopeId: 'bob' };
      const refused = { kind: 'refused', code: 'share_exceeded' };
      expect(await park(bench, 'c1')).toMatchObject({ kind: 'admitted' });
      expect((await bench.backend.commands.preview(admission('c2', { connectWithinMs: 1 }))).answer).toEqual(refused);
      expect(await park(bench, 'c2')).toEqual(refused);
      expect(await park(bench, 'r1', { chosenId: false })).toMatchObject({ kind: 'admitted' });
      expect(await bench.used('marks')).toBe(1);
      expect(await park(bench, 'b1', bob)).toMatchObject({ kind: 'admitted' });
      expect(await park(bench, 'd1', { userId: 'carol' })).toEqual({ ...refused, code: 'store_full' });
    });

    it('reduce records to marks, first of the user over the guarantee, and their ids still run only once', async () => {
      const bench = await opened({ ended_records: { guarantee: 2, total: 4 } });
      const { commands, inspector, waiters } = bench.backend;
      for (const id of ['a1', 'a2']) await ran(bench, 'alice', id);
      for (let i = 0; i < 10; i++) await ran(bench, 'mallory', `m${i}`);
      expect(await bench.used('ended_records')).toBe(4);
      const record = async (userId: string, id: string) => (await commands.get([ofUser(userId, id)]))[0];
      expect([await record('alice', 'a1'), await record('mallory', 'm8')]).toMatchObject([{}, {}]);
      expect([await record('mallory', 'm0'), await record('mallory', 'm7')]).toEqual([null, null]);
      const mark = {
        ...{ outcome: 'completed', execution: 'reported_by_client', errorCode: null },
        ...{ endedAt: bench.now(), resultExpired: true },
      };
      expect(await commands.admit(invoking('mallory', 'm0'))).toEqual({ kind: 'ended', mark });
      expect((await commands.preview(invoking('mallory', 'm0'))).answer).toEqual({ kind: 'ended', mark });
      const conflict = { kind: 'refused', code: 'command_conflict' };
      expect(await commands.admit(invoking('mallory', 'm0', { digest: 'd2' }))).toEqual(conflict);
      const marks = [ofUser('mallory', 'm0'), ofUser('mallory', 'm9'), ofUser('alice', 'm0')].map((key) =>
        commands.mark(key),
      );
      expect(await Promise.all(marks)).toEqual([mark, null, null]);
      const waiter = { rpcId: 'r', caller: CALLER, callerNodeId: 'n1', waitFor: 'completed', withinMs: null } as const;
      expect(await waiters.attach(ofUser('mallory', 'm0'), waiter)).toEqual({ kind: 'ended', mark });
      expect(await commands.finish(ofUser('mallory', 'm0'), ending())).toEqual({ kind: 'unknown' });
      const listed = async (userId: string | null) => {
        const { rows, gaps } = await inspector.list({ ...ANY_COMMAND, userId }, { first: 100, after: null });
        return [rows.length, gaps.map(({ reason }) => reason)];
      };
      expect(await listed('alice')).toEqual([2, []]);
      expect(await listed('mallory')).toEqual([2, ['evicted']]);
      expect(await listed(null)).toEqual([4, ['evicted']]);
      await bench.advance(TERMINAL_MS);
      expect(await commands.admit(invoking('mallory', 'm0', { connectWithinMs: 1 }))).toMatchObject({
        kind: 'admitted',
      });
      expect(await listed('mallory')).toEqual([1, []]);
    });

    it('keep the outcome and the code of a failure in the mark', async () => {
      const bench = await opened({ ended_records: { guarantee: 1, total: 1 } });
      const { commands } = bench.backend;
      await commands.rebind({ userId: 'alice', clientId: 'tab' }, BOUND, 'up');
      await commands.admit(invoking('alice', 'a1'));
      await commands.dispatch(ofUser('alice', 'a1'), BOUND);
      const error = { code: 'lease_busy', message: '"code":"internal"' };
      await commands.finish(ofUser('alice', 'a1'), ending({ kind: 'error', payload: null, error, refused: true }));
      await ran(bench, 'alice', 'a2');
      await bench.used('ended_records');
      expect(await commands.mark(ofUser('alice', 'a1'))).toMatchObject({
        ...{ outcome: 'failed', execution: 'refused_by_client', errorCode: 'lease_busy', resultExpired: false },
      });
    });

    it('reduce the oldest record of all users if no user is over the guarantee', async () => {
      const bench = await opened({ ended_records: { guarantee: 5, total: 5 } });
      for (const userId of ['carol', 'alice', 'bob', 'erin', 'dave', 'frank']) {
        await ran(bench, userId, 'c');
        await bench.advance(10);
      }
      expect(await bench.used('ended_records')).toBe(5);
      const users = ['alice', 'bob', 'carol', 'dave', 'erin', 'frank'];
      const found = await bench.backend.commands.get(users.map((userId) => ofUser(userId, 'c')));
      expect(users.filter((_, i) => found[i] === null)).toEqual(['carol']);
    });

    it('forget ids of the relay without room for marks, and do not run one that a caller chooses', async () => {
      const bench = await opened({
        ended_records: { guarantee: 2, total: 4 },
        marks: { guarantee: 4, total: 8 },
      });
      const { commands, inspector } = bench.backend;
      for (let i = 0; i < 6; i++) await ran(bench, 'bob', `b${i}`);
      for (let i = 0; i < 20; i++) await ran(bench, 'alice', relayId(i), { chosenId: false });
      expect(await bench.used('marks')).toBe(8);
      expect(await bench.used('ended_records')).toBe(4);
      expect(await commands.mark(ofUser('alice', relayId(10)))).toBeNull();
      const { gaps } = await inspector.list({ ...ANY_COMMAND, userId: 'alice' }, { first: 10, after: null });
      expect(gaps.map(({ reason }) => reason)).toEqual(['evicted']);
      await bench.advance(TERMINAL_MS - 1);
      const refused = { kind: 'refused', code: 'share_exceeded' };
      const forgotten = invoking('alice', relayId(10), { connectWithinMs: 1 });
      expect((await commands.preview(forgotten)).answer).toEqual(refused);
      expect(await commands.admit(forgotten)).toEqual(refused);
    });

    it('take room for the mark of an id of the relay once a caller names it', async () => {
      const bench = await opened({ marks: { guarantee: 4, total: 4 } });
      const { commands } = bench.backend;
      for (let i = 0; i < 4; i++) await ran(bench, 'bob', `b${i}`);
      await bench.advance((TERMINAL_MS / 6) * 5);
      await ran(bench, 'alice', relayId(1), { chosenId: false });
      expect(await bench.used('marks')).toBe(4);
      // The marks of bob are given back before the record of alice is forgotten.
      await bench.advance((TERMINAL_MS / 12) * 11);
      expect(await bench.used('marks')).toBe(0);
      for (let i = 0; i < 2; i++) {
        expect(await commands.admit(invoking('alice', relayId(1)))).toMatchObject({ kind: 'attached' });
        expect(await bench.used('marks')).toBe(1);
      }
    });

    it('answer every waiter with the whole result, even if there is no room to keep it', async () => {
      const bench = await opened({ result_bytes: { guarantee: 30_000, total: 30_000 } });
      const { commands } = bench.backend;
      const { take } = await openNode(bench, 'n2');
      await commands.rebind(ALICE, BOUND, 'up');
      for (const id of ['c1', 'c2']) {
        const waiter = {
          rpcId: `rpc-${id}`,
          caller: CALLER,
          callerNodeId: 'n2',
          waitFor: 'completed',
          withinMs: null,
        } as const;
        await commands.admit(admission(id, { waiter }));
        await commands.dispatch(keyFor(id), BOUND);
        const finished = await commands.finish(keyFor(id), ending({ payload: text(20_000) }));
        expect(finished).toMatchObject({ kind: 'finished', command: { outcome: 'completed' } });
        const shown = { result: text(20_000), command: { resultExpired: false } };
        expect(await take()).toMatchObject([{ kind: 'reply', reply: shown }]);
      }
      const found = await commands.get([keyFor('c1'), keyFor('c2')]);
      const results = [await commands.result(keyFor('c1')), await commands.result(keyFor('c2'))];
      const lost = results.indexOf(null);
      expect(results.toSpliced(lost, 1)).toEqual([text(20_000)]);
      expect(found.map((command) => command?.resultExpired)).toEqual(results.map((result) => result === null));
      expect(await bench.used('result_bytes')).toBe(20_000);
      const again = await commands.admit(admission(lost === 0 ? 'c1' : 'c2'));
      expect(again).toMatchObject({ kind: 'attached', result: null, command: { resultExpired: true } });
    });

    it('are empty once everything has ended and expired, after any sequence of acts', async () => {
      const act = fc.record({
        kind: fc.constantFrom(
          'admit',
          'admit',
          'claim',
          'dispatch',
          'dispatch',
          'finish',
          'finish',
          'cancel',
          'up',
          'down',
        ),
        id: fc.integer({ min: 0, max: 5 }),
        user: fc.constantFrom('alice', 'bob'),
        bytes: fc.constantFrom(2, 90, 800),
        chosenId: fc.boolean(),
        ms: fc.constantFrom(0, 1, 20_000, TERMINAL_MS / 3),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(act, { minLength: 10, maxLength: 40 }), async (acts) => {
          const bound = (total: number) => ({ guarantee: total / 4, total });
          const bench = await opened({ queued_bytes: bound(2_000), result_bytes: bound(2_000), marks: bound(8) });
          const { commands } = bench.backend;
          let epoch = 1;
          // The relay never makes an id twice.
          let made = 0;
          for (const { kind, id, user, bytes, chosenId, ms } of acts) {
            const client = { ...ALICE, userId: user };
            if (!chosenId && (kind === 'admit' || kind === 'claim')) made++;
            const key = keyFor(chosenId ? `c${id}` : `r${made}`, client);
            const link = { ...BOUND, epoch };
            const claim = kind === 'claim' ? { binding: link, attempt: String(ms) } : null;
            const over = { ...client, scopeId: user, params: text(bytes), chosenId, connectWithinMs: 5_000, claim };
            if (kind === 'admit' || kind === 'claim') await commands.admit(admission(key.commandId, over));
            if (kind === 'dispatch') await commands.dispatch(key, link);
            if (kind === 'finish') await commands.finish(key, ending({ payload: text(bytes) }));
            if (kind === 'cancel') await commands.settle(key, { kind: 'cancel', reason: null, by: 'test' });
            if (kind === 'up') await commands.rebind(client, { ...BOUND, epoch: ++epoch }, 'up');
            if (kind === 'down') await commands.rebind(client, link, 'down');
            await bench.advance(ms);
          }
          await bench.advance(TERMINAL_MS);
          for (const userId of ['alice', 'bob'])
            for (const key of await commands.live({ ...ALICE, userId })) await commands.settle(key, { kind: 'expire' });
          expect(await bench.used('queued_bytes')).toBe(0);
          await bench.advance(EVERYTHING_OVER_MS);
          for (const share of ['queued_bytes', 'result_bytes', 'marks'] as const)
            expect([share, await bench.used(share)]).toEqual([share, 0]);
        }),
        { numRuns: runs },
      );
    });
  });
}
