/** Tests listings of waits. They merge what each node of a deployment knows. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { PendingQuery, PendingRpc } from '../../src/core/core.ts';
import type { Page } from '../../src/core/page.ts';
import { answerQuestion, readAnswer } from '../../src/core/calls/pending.ts';
import { WAITS_ASK_MS } from '../../src/core/limits.ts';
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { FakeClock, meanwhile, settle } from '../kit/clock.ts';
import { admin, connect, user, type TestClient } from '../kit/core.ts';
import { deadNode, STORES, type TwoNodes } from '../kit/two-nodes.ts';

const alice = user('alice');

describe.each(Object.entries(STORES))('the waits of two nodes over %s', (store, open) => {
  let place: TwoNodes;
  let client: TestClient;
  let calls: Promise<unknown>[];
  beforeEach(async () => {
    place = await open();
    client = await connect(place.nodes[0].core, alice, { clientId: 'tab', instanceId: 'i1' });
    calls = [];
  });
  afterEach(async () => {
    for (const { command } of client.sent) await client.result(command);
    await Promise.all(calls);
    await place[Symbol.asyncDispose]();
  });

  /** Invokes one command through the node at this index. */
  async function call(commandId: string, at: number): Promise<void> {
    const request = { userId: 'alice', clientId: 'tab', action: 'open', params: null, commandId };
    calls.push(place.nodes[at]!.core.rpc.invoke(alice, { ...request, respondWithinMs: 300_000 }));
    await settle();
    await place.clock.advance(1);
  }
  const rpc = (at: number) => place.nodes[at]!.core.rpc;
  const soon = <T>(answer: Promise<T>): Promise<T> => meanwhile(place.clock, answer);
  const named = (list: readonly { readonly waiter: { readonly commandId: string } }[]): string[] =>
    list.map(({ waiter }) => waiter.commandId);
  const listed = async (query: PendingQuery = {}, at = 0): Promise<string[]> =>
    named((await soon(rpc(at).pending(admin, query, { first: 100 }))).nodes);

  it('are listed and counted by either node, oldest first, until they are answered', async () => {
    for (const [i, id] of ['c0', 'c1', 'c2', 'c3'].entries()) await call(id, i % 2);
    for (const at of [0, 1]) {
      expect(await listed({}, at)).toEqual(['c0', 'c1', 'c2', 'c3']);
      expect(await soon(rpc(at).count(admin, {}))).toMatchObject({ count: 4, completeness: { complete: true } });
      expect((await soon(rpc(at).countByNode(admin, {}))).items).toEqual([{ nodeId: 'n1', count: 4 }]);
      expect(await listed({ callerNodeId: 'n2' }, at)).toEqual(['c1', 'c3']);
      expect(await listed({ nodeId: 'n2' }, at)).toEqual([]);
      const [summary] = await soon(Promise.resolve(rpc(at).ofUsers(admin, ['alice'], 3)));
      expect([summary?.total, summary?.hasNextPage, named(summary?.nodes ?? [])]).toEqual([
        4,
        true,
        ['c0', 'c1', 'c2'],
      ]);
      const keys = ['c0', 'c1'].map((commandId) => ({ userId: 'alice', clientId: 'tab', commandId }));
      const lists = await soon(Promise.resolve(rpc(at).ofCommands(admin, keys)));
      expect(lists.map(named)).toEqual([['c0'], ['c1']]);
    }
    await client.result(client.sent[1]!.command);
    await settle();
    expect(await listed({}, 0)).toEqual(['c0', 'c2', 'c3']);
  });

  it('are paged without repeating or losing one, wherever its caller waits', async () => {
    for (let i = 0; i < 9; i++) await call(`c${i}`, i % 3 === 0 ? 0 : 1);
    const seen: string[] = [];
    for (let after: string | null = null; ;) {
      const page: Page<PendingRpc> = await soon(rpc(0).pending(admin, {}, { first: 2, after }));
      seen.push(...named(page.nodes));
      after = page.cursors.end();
      if (!page.hasNextPage) break;
    }
    expect(seen).toEqual(Array.from({ length: 9 }, (_, i) => `c${i}`));
  });

  it.runIf(store === 'Redis')(
    'of a node with a late beat are named as missing, and the node is not asked',
    async () => {
      await call('c0', 0);
      await deadNode(place.nodes[0].backend, 'n3');
      const began = place.clock.now();
      const asked = await soon(rpc(0).pending(admin, {}, {}));
      expect(place.clock.now() - began).toBeGreaterThanOrEqual(WAITS_ASK_MS);
      await place.clock.advance(6_000);
      const later = place.clock.now();
      const skipped = await soon(rpc(0).pending(admin, {}, {}));
      expect(place.clock.now() - later).toBeLessThan(WAITS_ASK_MS);
      for (const page of [asked, skipped]) {
        expect(named(page.nodes)).toEqual(['c0']);
        expect(page.completeness).toMatchObject({
          complete: false,
          sources: [
            { nodeId: null, complete: true },
            { nodeId: 'n3', observed: 0, reason: 'node_silent' },
          ],
        });
      }
    },
  );
});

describe('an answer about waits', () => {
  const { sha256 } = createCrypto('test');
  const clock = new FakeClock();
  const { waiters } = createMemoryBackend({
    markSecret: 'x',
    clock,
    log: silentLog,
    sha256,
    shares: createShares(),
    history: {},
  });

  it('is given only to a question of a known form', async () => {
    for (const text of ['{}', '{"form":1,"read":"list"}', '{"form":2,"read":"list"}', '{"form":3,"read":"other"}'])
      await expect(answerQuestion(waiters, text)).rejects.toThrow('another form');
  });

  it('is read only in its known form', () => {
    expect(readAnswer('{"form":3,"tooLong":true}')).toBe('limit_reached');
    const row = { row: { waiter: { rpcId: 'r' }, command: { stage: 'queued' } }, position: ['1'] };
    const list = { total: 1, rows: [row], next: null };
    const answer = { form: 3, lists: [list], counts: [['n1', 1]], complete: true };
    expect(readAnswer(JSON.stringify(answer))).toEqual(answer);
    for (const other of [
      null,
      { ...answer, form: 2 },
      { ...answer, lists: [{ ...list, next: 1 }] },
      { ...answer, lists: [{ ...list, rows: [{ ...row, position: null }] }] },
      { ...answer, counts: [[1, 1]] },
    ])
      expect(readAnswer(JSON.stringify(other))).toBe('not_supported');
  });
});
