/**
 * Defines the contract tests of the port DeliveryInspector, which shows operators the state of delivery. Every backend
 * must pass them.
 */
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ANY_WAIT } from '../../src/core/commands/waiter-store.ts';
import type { AdmitRequest } from '../../src/core/commands/command-store.ts';
import { ANY_COMMAND, type DeliveryFilter } from '../../src/core/commands/delivery-inspector.ts';
import { toJson } from '../../src/core/json.ts';
import { DELIVERY_SAMPLE, SCOPE_HOLDERS, TERMINAL_MS } from '../../src/core/limits.ts';
import { comparePositions, type Position } from '../../src/core/page.ts';
import {
  countWaits,
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

const ALL = ANY_COMMAND;
const BOB = { userId: 'bob', clientId: 'tab' };

/** Defines the tests that every DeliveryInspector must pass. `runs`: of the random lists, each in a store of its own. */
export function inspectorContract(name: string, make: MakeBench, runs = 15): void {
  describe(`the inspector of delivery on ${name}`, () => {
    let bench: Bench;
    beforeEach(async () => {
      bench = await make();
      await bench.backend.commands.rebind(ALICE, BOUND, 'up');
    });
    afterEach(() => bench.close());

    const admit = async (commandId: string, over: Partial<AdmitRequest> = {}): Promise<void> => {
      const result = await bench.backend.commands.admit(admission(commandId, over));
      if (result.kind !== 'admitted') throw new Error(`${commandId}: ${JSON.stringify(result)}`);
    };
    const park = (commandId: string, connectWithinMs: number, over: Partial<AdmitRequest> = {}): Promise<void> =>
      admit(commandId, { ...BOB, scopeId: 'bob', connectWithinMs, ...over });
    const summary = async () => bench.backend.inspector.summary();
    const listed = async (filter: Partial<DeliveryFilter> = {}): Promise<string[]> => {
      const scan = await bench.backend.inspector.list({ ...ALL, ...filter }, { first: 1000, after: null });
      return scan.rows.map(({ row }) => row.commandId);
    };
    const scopes = async () => (await bench.backend.inspector.scopes({ first: 1000, after: null })).rows;

    describe('the summary', () => {
      it('is zero without commands, and has no oldest value', async () => {
        expect(await summary()).toMatchObject({
          trackedCommands: 0,
          dueCommands: 0,
          sampledOldestDeadline: null,
          sampledOldestQueuedAgeMs: null,
          sampleSize: 0,
        });
      });

      it('counts tracked commands until they are forgotten, and samples only live ones', async () => {
        await dispatched(bench, 'ended');
        await bench.backend.commands.finish(keyFor('ended'), ending());
        await admit('live', { respondWithinMs: 300_000 });
        expect(await summary()).toMatchObject({ trackedCommands: 2, sampleSize: 1 });
        await bench.advance(TERMINAL_MS);
        expect(await summary()).toMatchObject({ trackedCommands: 1, sampleSize: 1 });
      });

      it('counts as due what is past its connect deadline or its deadline and has not ended, to the millisecond', async () => {
        await admit('answers', { respondWithinMs: 2_000 });
        await park('connects', 1_000);
        await park('far', 300_000);
        await bench.advance(999);
        expect(await summary()).toMatchObject({ dueCommands: 0 });
        await bench.advance(1);
        expect(await summary()).toMatchObject({ dueCommands: 1 });
        await bench.advance(1_000);
        expect(await summary()).toMatchObject({ dueCommands: 2 });
        await bench.backend.commands.settle({ ...BOB, commandId: 'connects' }, { kind: 'expire' });
        expect(await summary()).toMatchObject({ dueCommands: 1 });
      });

      it('counts a command once that is past its connect deadline and its deadline', async () => {
        await park('both', 1_000, { respondWithinMs: 1_000 });
        await bench.advance(1_000);
        expect(await summary()).toMatchObject({ dueCommands: 1 });
        await bench.advance(1_000);
        expect(await summary()).toMatchObject({ dueCommands: 1 });
        expect(await bench.backend.nodes.due(10)).toEqual([{ ...BOB, commandId: 'both' }]);
      });

      it('takes the oldest deadline over all stages, and the queued age of queued commands only', async () => {
        const start = bench.now();
        await dispatched(bench, 'runs', { respondWithinMs: 9_000 });
        await park('waits', 60_000);
        await bench.advance(1_500);
        expect(await summary()).toMatchObject({
          sampledOldestDeadline: start + 9_000,
          sampledOldestQueuedAgeMs: null,
          sampleSize: 2,
        });
        await admit('queued-1');
        await bench.advance(250);
        await admit('queued-2');
        await bench.advance(50);
        expect(await summary()).toMatchObject({ sampledOldestQueuedAgeMs: 300, sampleSize: 4 });
      });

      it('samples a bounded number, and reports how many', async () => {
        await inWaves(DELIVERY_SAMPLE + 5, 250, (i) =>
          park(`c${i}`, 60_000, { scopeLimit: 5_000, clientId: `t${i % 9}` }),
        );
        expect(await summary()).toMatchObject({ trackedCommands: DELIVERY_SAMPLE + 5, sampleSize: DELIVERY_SAMPLE });
      });

      it('has depths of legacy streams only if such streams may exist', async () => {
        const { legacyCommandStreamDepth, pendingCommandDepth } = await summary();
        if (bench.backend.capabilities.shared) return;
        expect([legacyCommandStreamDepth, pendingCommandDepth]).toEqual([null, null]);
      });
    });

    describe('capacity scopes', () => {
      it('are listed in order with their reservations, earliest deadline first, and disappear with their last command', async () => {
        await park('b2', 5_000, { scopeId: 'team-b' });
        await park('b1', 1_000, { scopeId: 'team-b' });
        await dispatched(bench, 'a1', { scopeId: 'team-a' });
        const rows = await scopes();
        const at = (ms: number): number => bench.now() + ms + 30_000;
        expect(rows.map(({ row }) => row)).toEqual([
          {
            scopeId: 'team-a',
            reservedCommands: 1,
            oldestDeadline: at(0),
            holders: [{ ...keyFor('a1'), deadline: at(0) }],
          },
          {
            scopeId: 'team-b',
            reservedCommands: 2,
            oldestDeadline: at(1_000),
            holders: [
              { ...BOB, commandId: 'b1', deadline: at(1_000) },
              { ...BOB, commandId: 'b2', deadline: at(5_000) },
            ],
          },
        ]);
        await bench.backend.commands.finish(keyFor('a1'), ending());
        await bench.backend.commands.settle({ ...BOB, commandId: 'b1' }, { kind: 'cancel', reason: null, by: 'test' });
        expect((await scopes()).map(({ row }) => [row.scopeId, row.reservedCommands])).toEqual([['team-b', 1]]);
      });

      it('are found by their ids, in the order of the ids, as the list shows them', async () => {
        const { inspector } = bench.backend;
        await park('b1', 1_000, { scopeId: 'team-b' });
        await park('b2', 2_000, { scopeId: 'team-b' });
        await dispatched(bench, 'a1', { scopeId: 'team-a' });
        const [a, b] = (await scopes()).map(({ row }) => row);
        const ids = ['team-b', 'none', 'team-a', 'team', 'team-b'];
        expect(await inspector.getScopes(ids)).toEqual([b, null, a, null, b]);
        expect(await inspector.getScopes([])).toEqual([]);
        await bench.backend.commands.finish(keyFor('a1'), ending());
        expect(await inspector.getScopes(['team-a', 'team-b'])).toEqual([null, b]);
      });

      it('name a bounded number of holders and count them all', async () => {
        await inWaves(SCOPE_HOLDERS + 3, 50, (i) => park(`c${i}`, 60_000 - i, { scopeLimit: 1_000 }));
        const [scope] = await scopes();
        expect(scope?.row.reservedCommands).toBe(SCOPE_HOLDERS + 3);
        expect(scope?.row.holders.length).toBe(SCOPE_HOLDERS);
        expect(scope?.row.holders[0]?.commandId).toBe(`c${SCOPE_HOLDERS + 2}`);
        expect(scope?.row.oldestDeadline).toBe(scope?.row.holders[0]?.deadline);
      });

      it('are counted, each with the user of one reservation', async () => {
        await admit('a1', { scopeId: 'team-a' });
        for (const id of ['b1', 'b2', 'b3']) await park(id, 60_000, { scopeId: 'team-b' });
        await park('gone', 60_000, { scopeId: 'team-c' });
        const gone = { ...BOB, commandId: 'gone' };
        await bench.backend.commands.settle(gone, { kind: 'cancel', reason: null, by: 'test' });
        const reserved = [...(await bench.backend.inspector.reservedScopes())];
        expect(reserved.sort((a, b) => a.reservedCommands - b.reservedCommands)).toEqual([
          { scopeId: 'team-a', reservedCommands: 1, userId: 'alice' },
          { scopeId: 'team-b', reservedCommands: 3, userId: 'bob' },
        ]);
      });

      it('are paged without repeating or losing one that exists throughout the paging', async () => {
        for (const scopeId of ['a', 'b', 'd', 'e']) await park(scopeId, 60_000, { scopeId });
        const first = await bench.backend.inspector.scopes({ first: 2, after: null });
        await bench.backend.commands.settle({ ...BOB, commandId: 'b' }, { kind: 'cancel', reason: null, by: 'test' });
        await park('c', 60_000, { scopeId: 'c' });
        const rest = await bench.backend.inspector.scopes({ first: 10, after: first.next });
        expect([...first.rows, ...rest.rows].map(({ row }) => row.scopeId)).toEqual(['a', 'b', 'c', 'd', 'e']);
        expect(rest.next).toBe(null);
      });
    });

    it('counts the live commands of each client, and returns the clients with the most', async () => {
      const busiest = async (first: number) => bench.backend.inspector.busiest(first);
      expect(await busiest(10)).toEqual({ rows: [], complete: true });
      for (const id of ['a1', 'a2', 'a3']) await admit(id);
      const scopes = { c1: 'bob', c2: 'shared' };
      for (const [id, scopeId] of Object.entries(scopes)) await park(id, 60_000, { scopeId });
      await park('z1', 60_000, { userId: 'ann', clientId: 'z', scopeId: 'ann' });
      await park('z2', 60_000, { userId: 'ann', clientId: 'z', scopeId: 'ann' });
      const ann = { userId: 'ann', clientId: 'z', commands: 2 };
      const all = [{ ...ALICE, commands: 3 }, ann, { ...BOB, commands: 2 }];
      expect(await busiest(10)).toEqual({ rows: all, complete: true });
      expect(await busiest(2)).toEqual({ rows: all.slice(0, 2), complete: true });
      await bench.backend.commands.settle(keyFor('a1'), { kind: 'cancel', reason: null, by: 'test' });
      expect((await busiest(10)).rows).toEqual([{ ...ALICE, commands: 2 }, ...all.slice(1)]);
    });

    describe('the listing', () => {
      it('is narrowed by each member of its filter, and by several at once', async () => {
        await dispatched(bench, 'done');
        await bench.backend.commands.finish(keyFor('done'), ending());
        await bench.advance(1_000);
        const middle = bench.now();
        await admit('queued');
        await bench.advance(1_000);
        await park('parked', 60_000);
        expect(await listed()).toEqual(['done', 'queued', 'parked']);
        expect(await listed({ userId: 'alice' })).toEqual(['done', 'queued']);
        expect(await listed({ userId: 'bob', clientId: 'other' })).toEqual([]);
        expect(await listed({ clientId: 'tab' })).toEqual(['done', 'queued', 'parked']);
        expect(await listed({ stage: 'queued' })).toEqual(['queued']);
        expect(await listed({ outcome: 'completed' })).toEqual(['done']);
        expect(await listed({ outcome: 'failed' })).toEqual([]);
        expect(await listed({ nodeId: 'n1' })).toEqual(['done', 'queued']);
        expect(await listed({ admittedAfter: middle })).toEqual(['parked']);
        expect(await listed({ admittedAfter: middle - 1, stage: 'queued', userId: 'alice' })).toEqual(['queued']);
      });

      it('returns the records without any payload', async () => {
        await dispatched(bench, 'c1', { params: toJson({ secret: 'in' }) });
        await bench.backend.commands.finish(keyFor('c1'), ending({ payload: toJson({ secret: 'out' }) }));
        const scan = await bench.backend.inspector.list(ALL, { first: 10, after: null });
        expect(scan.rows.map(({ row }) => row)).toEqual(await bench.backend.commands.get([keyFor('c1')]));
        expect(JSON.stringify([scan, await scopes(), await summary()])).not.toContain('secret');
      });

      it('forgets commands with their records', async () => {
        await dispatched(bench, 'c1');
        await bench.backend.commands.finish(keyFor('c1'), ending());
        await bench.advance(TERMINAL_MS);
        expect(await listed()).toEqual([]);
      });

      it('is in order of user, client and command for any names, and the same for any page size', async () => {
        const part = fc.constantFrom('a', 'a-b', 'a.b', 'a:b', 'a~', 'aa', 'A', '-', '0');
        const keys = fc.uniqueArray(fc.tuple(part, part, part), {
          minLength: 1,
          maxLength: 40,
          selector: (key) => key.join('/'),
        });
        const property = fc.asyncProperty(keys, fc.integer({ min: 1, max: 7 }), async (given, first) => {
          const own = await make();
          await Promise.all(
            given.map(async ([userId, clientId, commandId]) => {
              const request = admission(commandId, { userId, clientId, connectWithinMs: 9_000 });
              expect((await own.backend.commands.admit(request)).kind).toBe('admitted');
            }),
          );
          const seen: Position[] = [];
          let after: Position | null = null;
          do {
            const scan: Awaited<ReturnType<typeof own.backend.inspector.list>> = await own.backend.inspector.list(ALL, {
              first,
              after,
            });
            seen.push(...scan.rows.map(({ row }) => [row.userId, row.clientId, row.commandId]));
            after = scan.next;
          } while (after !== null);
          expect(seen).toEqual([...given].sort(comparePositions));
          const [userId, clientId] = given[0] ?? ['', ''];
          const ofClient = await own.backend.inspector.list({ ...ALL, userId, clientId }, { first: 100, after: null });
          const expected = seen.filter((position) => position[0] === userId && position[1] === clientId);
          expect(ofClient.rows.map(({ position }) => position)).toEqual(expected);
          await own.close();
        });
        await fc.assert(property, { numRuns: runs });
      });

      it('neither repeats nor loses a command that exists throughout the paging', async () => {
        for (let i = 0; i < 8; i++) await admit(`c${i}`);
        const first = await bench.backend.inspector.list(ALL, { first: 3, after: null });
        await dispatched(bench, 'c25');
        await admit('a0');
        await bench.backend.commands.settle(keyFor('c4'), { kind: 'cancel', reason: null, by: 'test' });
        const rest = await bench.backend.inspector.list(ALL, { first: 100, after: first.next });
        expect([...first.rows, ...rest.rows].map(({ row }) => row.commandId)).toEqual([
          'c0',
          'c1',
          'c2',
          'c25',
          'c3',
          'c4',
          'c5',
          'c6',
          'c7',
        ]);
      });
    });

    it('changes nothing by reading', async () => {
      const node = await openNode(bench);
      await dispatched(bench, 'c1');
      await admit('c2');
      await park('c3', 1_000);
      await bench.advance(2_000);
      await node.take();
      const { commands, nodes, waiters } = bench.backend;
      const keys = [keyFor('c1'), keyFor('c2'), { ...BOB, commandId: 'c3' }];
      const state = async () => [await commands.get(keys), await nodes.due(10), await countWaits(waiters, ANY_WAIT)];
      const before = await state();
      const looks = async () => [await summary(), await scopes(), await listed(), await listed({ stage: 'queued' })];
      const seen = await looks();
      expect(await looks()).toEqual(seen);
      expect(await state()).toEqual(before);
      expect(await node.take()).toEqual([]);
    });
  });
}
