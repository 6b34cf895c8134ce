/** Defines the contract tests of DeliveryInspector about the list of the newest commands. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ANY_COMMAND, type DeliveryFilter } from '../../src/core/commands/delivery-inspector.ts';
import type { AdmitRequest } from '../../src/core/commands/command-store.ts';
import type { ClientKey } from '../../src/core/ids.ts';
import { toJson } from '../../src/core/json.ts';
import { TERMINAL_MS } from '../../src/core/limits.ts';
import { SCAN_BUDGET, type Position } from '../../src/core/page.ts';
import {
  admission,
  ALICE,
  BOUND,
  dispatched,
  ending,
  inWaves,
  keyFor,
  openNode,
  type Bench,
  type MakeBench,
} from './kit/bench.ts';

const HOUR = 3600_000;
const BOB: ClientKey = { userId: 'bob', clientId: 'tab' };

/** Defines the tests of a DeliveryInspector's listing in the order of admission, and of its filters. */
export function newestContract(name: string, make: MakeBench): void {
  describe(`the newest commands on ${name}`, () => {
    let bench: Bench;
    beforeEach(async () => {
      bench = await make();
      await openNode(bench);
      await bench.backend.commands.rebind(ALICE, BOUND, 'up');
    });
    afterEach(() => bench.close());

    const admit = async (commandId: string, over: Partial<AdmitRequest> = {}): Promise<void> => {
      const request = admission(commandId, { connectWithinMs: 300_000, scopeLimit: 50_000, ...over });
      const result = await bench.backend.commands.admit(request);
      if (result.kind !== 'admitted') throw new Error(`${commandId}: ${JSON.stringify(result)}`);
      await bench.advance(1);
    };
    const page = async (filter: Partial<DeliveryFilter>, first: number, after: Position | null) =>
      bench.backend.inspector.list({ ...ANY_COMMAND, ...filter }, { first, after, order: 'newest' });
    const listed = async (filter: Partial<DeliveryFilter> = {}, first = 1000): Promise<string[]> => {
      const found: string[] = [];
      let after: Position | null = null;
      do {
        const scan: Awaited<ReturnType<typeof page>> = await page(filter, first, after);
        found.push(...scan.rows.map(({ row }) => row.commandId));
        after = scan.next;
      } while (after !== null);
      return found;
    };

    it('come first, over users and clients, and the same for any page size', async () => {
      for (const [i, userId] of ['bob', 'alice', 'eve', 'alice', 'bob', 'eve', 'bob'].entries())
        await admit(`c${i}`, { userId, clientId: `t${i % 2}`, scopeId: userId });
      const newest = ['c6', 'c5', 'c4', 'c3', 'c2', 'c1', 'c0'];
      for (const first of [1, 2, 3, 7, 8]) expect(await listed({}, first)).toEqual(newest);
      expect(await listed({ userId: 'bob' }, 2)).toEqual(['c6', 'c4', 'c0']);
      expect(await listed({ userId: 'bob', clientId: 't0' })).toEqual(['c6', 'c4', 'c0']);
      expect(await listed({ userId: 'alice', clientId: 't0' })).toEqual([]);
    });

    it('that were admitted in one millisecond are each listed once, on pages of any size', async () => {
      const ids = Array.from({ length: 9 }, (_, i) => `c${i}`);
      for (const id of ids) await bench.backend.commands.admit(admission(id));
      const whole = await listed();
      expect([...whole].sort()).toEqual(ids);
      for (const first of [1, 2, 4, 9]) expect(await listed({}, first)).toEqual(whole);
    });

    it('are found over hours, and a page neither repeats nor loses one that stays', async () => {
      for (let i = 0; i < 4; i++) {
        await admit(`c${i}`, { connectWithinMs: 300_000, respondWithinMs: 300_000 });
        await bench.advance(HOUR / 4);
      }
      const first = await page({}, 2, null);
      expect(first.rows.map(({ row }) => row.commandId)).toEqual(['c3', 'c2']);
      await admit('later');
      await bench.backend.commands.settle(keyFor('c1'), { kind: 'cancel', reason: null, by: 'test' });
      const rest = await page({}, 10, first.next);
      expect([rest.rows.map(({ row }) => row.commandId), rest.next]).toEqual([['c1', 'c0'], null]);
    });

    it('disappear with their records; an id that is admitted again is listed once, at its new place', async () => {
      await dispatched(bench, 'again');
      await bench.backend.commands.finish(keyFor('again'), ending());
      await bench.advance(TERMINAL_MS - 1_000);
      await admit('between');
      expect(await listed()).toEqual(['between', 'again']);
      await bench.advance(1_000);
      expect(await listed()).toEqual(['between']);
      await admit('again');
      expect(await listed()).toEqual(['again', 'between']);
      expect(await listed({}, 1)).toEqual(['again', 'between']);
    });

    it('are narrowed by each member of the filter, and by several at once', async () => {
      const failure = { code: 'no_such_tab', message: 'There is no such tab.' };
      await dispatched(bench, 'failed', { action: 'tab.close' });
      await bench.backend.commands.finish(keyFor('failed'), ending({ kind: 'error', error: failure, payload: null }));
      await bench.advance(1_000);
      const middle = bench.now();
      await admit('mobile', { clientType: 'mobile' });
      await admit('unknown', { ...BOB, scopeId: 'bob', clientType: null });
      expect(await listed({ action: 'tab.close' })).toEqual(['failed']);
      expect(await listed({ action: 'open' })).toEqual(['unknown', 'mobile']);
      expect(await listed({ code: 'no_such_tab' })).toEqual(['failed']);
      expect(await listed({ code: 'other' })).toEqual([]);
      expect(await listed({ outcome: 'failed' })).toEqual(['failed']);
      expect(await listed({ clientType: 'mobile' })).toEqual(['mobile']);
      expect(await listed({ clientType: 'browser' })).toEqual(['failed']);
      expect(await listed({ admittedAfter: middle - 1 })).toEqual(['unknown', 'mobile']);
      expect(await listed({ admittedAfter: middle })).toEqual(['unknown']);
      expect(await listed({ admittedBefore: middle })).toEqual(['failed']);
      expect(await listed({ admittedBefore: middle + 1, action: 'open' })).toEqual(['mobile']);
      const byKey = await bench.backend.inspector.list(
        { ...ANY_COMMAND, admittedBefore: middle + 1, code: 'no_such_tab' },
        { first: 10, after: null },
      );
      expect(byKey.rows.map(({ row }) => [row.commandId, row.clientType])).toEqual([['failed', 'browser']]);
    });

    it('are found by their id, by an end of it with eight characters, and by their trace, in either order', async () => {
      await admit('first-12345678', { traceId: 'trace-of-both' });
      await admit('12345678', { ...BOB, scopeId: 'bob', traceId: 'trace-of-both' });
      await admit('second-12345678', { traceId: null });
      await bench.backend.commands.settle(keyFor('second-12345678'), { kind: 'cancel', reason: null, by: 'test' });
      const byKey = async (idOrTrace: string): Promise<string[]> => {
        const filter = { ...ANY_COMMAND, idOrTrace };
        const { rows } = await bench.backend.inspector.list(filter, { first: 10, after: null });
        return rows.map(({ row }) => row.commandId).sort();
      };
      for (const [idOrTrace, ids] of [
        ['12345678', ['second-12345678', '12345678', 'first-12345678']],
        ['t-12345678', ['first-12345678']],
        ['second-12345678', ['second-12345678']],
        ['trace-of-both', ['12345678', 'first-12345678']],
        ['2345678', []],
        ['race-of-both', []],
        ['first-1234567', []],
      ] as const) {
        expect([idOrTrace, await listed({ idOrTrace })]).toEqual([idOrTrace, ids]);
        expect([idOrTrace, await byKey(idOrTrace)]).toEqual([idOrTrace, [...ids].sort()]);
      }
      expect(await listed({ idOrTrace: '12345678', userId: 'bob' })).toEqual(['12345678']);
    });

    it('are narrowed by several outcomes and by their caller', async () => {
      await dispatched(bench, 'completed');
      await bench.backend.commands.finish(keyFor('completed'), ending());
      await bench.advance(1);
      await admit('cancelled', { caller: { kind: 'admin', name: 'ops' } });
      await bench.backend.commands.settle(keyFor('cancelled'), { kind: 'cancel', reason: null, by: 'test' });
      await admit('live', { caller: { kind: 'grant', name: 'ops' } });
      expect(await listed({ outcomes: ['completed', 'cancelled'] })).toEqual(['cancelled', 'completed']);
      expect(await listed({ outcomes: ['failed', 'completed'] })).toEqual(['completed']);
      expect(await listed({ outcomes: ['failed'] })).toEqual([]);
      expect(await listed({ outcomes: ['cancelled'], action: 'other' })).toEqual([]);
      expect(await listed({ caller: 'ops' })).toEqual(['live', 'cancelled']);
      expect(await listed({ caller: 'ops', callerKind: 'admin' })).toEqual(['cancelled']);
      expect(await listed({ callerKind: 'user' })).toEqual(['completed']);
      expect(await listed({ caller: 'op' })).toEqual([]);
    });

    it('fill a page with as many rows as may be read', async () => {
      for (const id of ['c1', 'c2', 'c3']) await admit(id);
      const { rows, next, cut } = await page({}, SCAN_BUDGET, null);
      expect([rows.length, next, cut ?? false]).toEqual([3, null, false]);
    });

    it('are narrowed by the labels that their client’s connection has now', async () => {
      const hello = { instanceId: 'i1', nodeId: 'n1', clientType: 'browser', host: false, actions: [] } as const;
      await bench.backend.connections.connect({
        ...ALICE,
        ...hello,
        metadata: toJson({ room: 12, tier: 'a', labels: { tier: 'gold', sold: false }, deep: { room: 12 } }),
      });
      await bench.backend.connections.connect({ ...BOB, ...hello, metadata: toJson({ room: '13', note: 'say "hi"' }) });
      await admit('a1');
      await admit('b1', { ...BOB, scopeId: 'bob' });
      await admit('a2');
      await admit('none', { userId: 'eve', clientId: 'tab', scopeId: 'eve' });
      const labelled = (...labels: [string, string][]) =>
        listed({ labels: labels.map(([key, value]) => ({ key, value })) });
      expect(await labelled(['room', '12'])).toEqual(['a2', 'a1']);
      expect(await labelled(['tier', 'gold'], ['sold', 'false'])).toEqual(['a2', 'a1']);
      expect(await labelled(['tier', 'a'])).toEqual([]);
      expect(await labelled(['note', 'say "hi"'])).toEqual(['b1']);
      expect(await labelled(['room', '12'], ['room', '13'])).toEqual([]);
      const byKey = { ...ANY_COMMAND, labels: [{ key: 'room', value: '13' }] };
      const scan = await bench.backend.inspector.list(byKey, { first: 10, after: null });
      expect(scan.rows.map(({ row }) => row.commandId)).toEqual(['b1']);
    });

    it('end a page early after too many other rows, report that, and continue', async () => {
      for (const id of ['bob1', 'bob2', 'bob3']) await admit(id, { ...BOB, scopeId: 'bob' });
      await admit('wanted', { action: 'rare' });
      await inWaves(SCAN_BUDGET, 500, async (i) => {
        const own = { clientId: `t${i % 20}`, connectWithinMs: 300_000, scopeLimit: 50_000, params: null };
        await bench.backend.commands.admit(admission(`c${i}`, { ...own, kept: { payload: null, spill: null } }));
      });
      const first = await page({ action: 'rare' }, 5, null);
      expect([first.rows, first.cut]).toEqual([[], true]);
      const rest = await page({ action: 'rare' }, 5, first.next);
      expect([rest.rows.map(({ row }) => row.commandId), rest.cut ?? false, rest.next]).toEqual([
        ['wanted'],
        false,
        null,
      ]);
      // The few commands of a user or client are found behind any number of others.
      for (const filter of [{ userId: 'bob' }, BOB])
        for (const size of [1, 2, 5]) expect(await listed(filter, size)).toEqual(['bob3', 'bob2', 'bob1']);
      const some = await page(BOB, 2, null);
      expect([some.rows.length, some.cut ?? false]).toEqual([2, false]);
      const whole = await page({}, 5, null);
      expect([whole.rows.length, whole.cut ?? false]).toEqual([5, false]);
      const most = await page({}, SCAN_BUDGET, null);
      expect([most.rows.length, most.next === null]).toEqual([SCAN_BUDGET, false]);
    });
  });
}
