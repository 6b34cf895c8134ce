/** Defines the contract tests of the port HistoryStore, which retains messages. Every backend must pass them. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as fc from 'fast-check';
import type { Message, HistoryStore, MessageFilter, MessagePage } from '../../src/core/history/message.ts';
import { toJson } from '../../src/core/json.ts';
import type { MaybePromise } from '../../src/core/maybe-promise.ts';
import type { Position, Scan } from '../../src/core/page.ts';
import { historyActs, HistoryModel, MODEL_BOUNDS, newMessage } from './kit/history-model.ts';
import type { Bench, MakeHistoryBench } from './kit/bench.ts';

const EVERY: MessageFilter = { afterTime: null, beforeTime: null, kinds: null };
const ALL = { first: 1000, after: null };

/** Defines the tests that every HistoryStore must pass. */
export function historyContract(name: string, make: MakeHistoryBench, { runs = 150 } = {}): void {
  describe(`history on ${name}`, () => {
    let bench: Bench;
    let history: HistoryStore;
    beforeEach(async () => {
      bench = await make({ streamMessages: 50, retentionMs: 1000, streamsPerUser: 20 });
      history = bench.backend.history;
    });
    afterEach(() => bench.close());

    const retain = async (ids: readonly string[], over: Parameters<typeof newMessage>[0] = {}): Promise<void> => {
      for (const id of ids) await history.retain(newMessage({ id, ...over }));
    };

    it('keeps a message member for member, with a time and a sequence number', async () => {
      const given = newMessage({
        kind: 'error',
        commandId: 'c1',
        traceId: 't1',
        parentSpanId: 's1',
        payload: toJson({ text: 'é\u{1f600}' }),
        error: { code: 'handler_failed', message: 'no' },
      });
      const kept = await history.retain(given);
      expect(kept).toEqual({ ...given, seq: kept.seq, at: bench.now(), payloadBytes: 17 });
      expect(rowsOf(await history.messages('alice', 'clients/tab', EVERY, ALL))).toEqual([kept]);
    });

    it('keeps the order of retention within a stream, and pages by sequence number', async () => {
      const ids = Array.from({ length: 30 }, (_, i) => `m${i}`);
      await retain(ids);
      const seqs = rowsOf(await history.messages('alice', 'clients/tab', EVERY, ALL)).map(({ seq }) => seq);
      expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
      expect(await paged(history, EVERY, 7)).toEqual(ids);
      expect(await paged(history, EVERY, 30)).toEqual(ids);
    });

    it('distinguishes an absent stream from one without a match', async () => {
      await retain(['m1']);
      expect(await history.messages('alice', 'clients/other', EVERY, ALL)).toBeNull();
      expect(await history.messages('bob', 'clients/tab', EVERY, ALL)).toBeNull();
      const none = await history.messages('alice', 'clients/tab', { ...EVERY, kinds: ['cancel'] }, ALL);
      expect(none).toEqual({ rows: [], next: null, gaps: [] });
    });

    it('takes both time bounds as exclusive, and pages within them', async () => {
      for (let i = 0; i < 10; i++) {
        await retain([`m${i}a`, `m${i}b`]);
        await bench.advance(10);
      }
      const start = bench.now() - 100;
      const within = (after: number | null, before: number | null): MessageFilter => ({
        ...EVERY,
        afterTime: after === null ? null : start + after,
        beforeTime: before === null ? null : start + before,
      });
      expect(await paged(history, within(10, 30), 1)).toEqual(['m2a', 'm2b']);
      expect(await paged(history, within(9, 21), 3)).toEqual(['m1a', 'm1b', 'm2a', 'm2b']);
      expect(await paged(history, within(70, null), 3)).toEqual(['m8a', 'm8b', 'm9a', 'm9b']);
      expect(await paged(history, within(null, 10), 1)).toEqual(['m0a', 'm0b']);
      expect(await paged(history, within(50, 50), 1)).toEqual([]);
      expect(await paged(history, within(60, 20), 1)).toEqual([]);
    });

    it('lists the requested kinds, over pages that may be short', async () => {
      for (let i = 0; i < 9; i++) await retain([`m${i}`], { kind: i % 3 === 0 ? 'result' : 'progress' });
      expect(await paged(history, { ...EVERY, kinds: ['result'] }, 2)).toEqual(['m0', 'm3', 'm6']);
      expect(await paged(history, { ...EVERY, kinds: ['result', 'progress'] }, 4)).toHaveLength(9);
    });

    it("lists one user's streams in order, by prefix, with count and times", async () => {
      const start = bench.now();
      await retain(['m1', 'm2'], { suffix: 'sites/b/events' });
      await bench.advance(5);
      await retain(['m3'], { suffix: 'sites/a/events' });
      await retain(['m4'], { suffix: 'clients/x' });
      await retain(['m5'], { suffix: 'sites/b/events' });
      await retain(['m6'], { suffix: 'sites/0/events', userId: 'bob' });
      const suffixes = async (prefix: string | null, after: Position | null = null): Promise<string[]> =>
        (await history.streams('alice', prefix, { first: 2, after })).rows.map(({ row }) => row.suffix);
      expect(await suffixes(null)).toEqual(['clients/x', 'sites/a/events']);
      expect(await suffixes(null, ['sites/a/events'])).toEqual(['sites/b/events']);
      expect(await suffixes('sites/')).toEqual(['sites/a/events', 'sites/b/events']);
      expect(await suffixes('sites/', ['sites/a/events'])).toEqual(['sites/b/events']);
      expect(await suffixes('sites/b', ['clients/x'])).toEqual(['sites/b/events']);
      expect(await suffixes('t')).toEqual([]);
      if (!bench.backend.capabilities.cheapStreamSummaries) return;
      const [summary] = (await history.streams('alice', 'sites/b', ALL)).rows;
      expect(summary?.row).toMatchObject({ messageCount: 3, firstAt: start, lastAt: start + 5 });
    });

    it("returns each user's first streams and their total, and the users that have a stream", async () => {
      for (const suffix of ['c', 'a', 'b']) await retain(['m'], { suffix });
      await retain(['m'], { suffix: 'x', userId: 'bob' });
      const found = await history.ofUsers(['bob', 'carol', 'alice'], 2);
      expect(found.map(({ total, rows }) => [total, rows.map(({ suffix }) => suffix)])).toEqual([
        [1, ['x']],
        [0, []],
        [3, ['a', 'b']],
      ]);
      const first = await history.users({ first: 1, after: null });
      expect(first.rows.map(({ row }) => row)).toEqual([{ userId: 'alice', count: 3 }]);
      expect((await history.users({ first: 1, after: first.next })).rows[0]?.row).toEqual({ userId: 'bob', count: 1 });
    });

    it("collects a command's messages over the user's streams in order of time, stream and sequence", async () => {
      await retain(['m1'], { commandId: 'c1', suffix: 'clients/b' });
      await retain(['m2'], { commandId: 'c1', suffix: 'clients/a' });
      await retain(['m3'], { commandId: 'c2', suffix: 'clients/a' });
      await retain(['m4'], { commandId: 'c1', suffix: 'clients/b' });
      await retain(['m5'], { commandId: 'c1', suffix: 'clients/a', userId: 'bob' });
      await bench.advance(1);
      await retain(['m6'], { commandId: 'c1', suffix: 'clients/a' });
      const found: string[] = [];
      let after: Position | null = null;
      do {
        const scan: Scan<Message> = await history.ofCommand('alice', 'c1', { first: 2, after });
        found.push(...scan.rows.map(({ row }) => row.id));
        after = scan.next;
      } while (after !== null);
      expect(found).toEqual(['m2', 'm1', 'm4', 'm6']);
      expect((await history.ofCommand('alice', 'c9', ALL)).rows).toEqual([]);
    });

    describe('newest first', () => {
      const newest = { order: 'newest_first' } as const;

      it('pages through a stream backwards, within exclusive time bounds and by kind', async () => {
        for (let i = 0; i < 10; i++) {
          await retain([`m${i}a`, `m${i}b`], { kind: i % 2 === 0 ? 'result' : 'progress' });
          await bench.advance(10);
        }
        const start = bench.now() - 100;
        const all = Array.from({ length: 10 }, (_, i) => [`m${i}a`, `m${i}b`]).flat();
        for (const first of [1, 3, 20, 100])
          expect(await paged(history, EVERY, { first, ...newest })).toEqual(all.toReversed());
        const within = { ...EVERY, afterTime: start + 10, beforeTime: start + 40 };
        for (const first of [1, 3, 100])
          expect(await paged(history, within, { first, ...newest })).toEqual(['m3b', 'm3a', 'm2b', 'm2a']);
        const kinds = { ...within, kinds: ['result'] } as const;
        expect(await paged(history, kinds, { first: 1, ...newest })).toEqual(['m2b', 'm2a']);
        expect(await paged(history, { ...EVERY, beforeTime: start }, { first: 1, ...newest })).toEqual([]);
      });

      it('neither repeats nor hides a row while others are appended and dropped', async () => {
        await retain(Array.from({ length: 50 }, (_, i) => `m${i}`));
        const found: string[] = [];
        let [after, turn]: [Position | null, number] = [null, 0];
        do {
          const scan = await history.messages('alice', 'clients/tab', EVERY, { first: 7, after, ...newest });
          found.push(...rowsOf(scan).map(({ id }) => id));
          after = scan?.next ?? null;
          // The stream is full, so each new message drops the oldest.
          if (turn++ < 3) await retain(['new1', 'new2', 'new3'].map((id) => `${id}-${turn}`));
        } while (after !== null);
        expect(found).toEqual(Array.from({ length: 41 }, (_, i) => `m${49 - i}`));
        expect((await paged(history, EVERY, { first: 3, ...newest })).slice(0, 2)).toEqual(['new3-3', 'new2-3']);
      });

      it("collects a command's messages over streams backwards, and hides those that are too old", async () => {
        await retain(['old'], { commandId: 'c1', suffix: 'clients/a' });
        await bench.advance(999);
        await retain(['m1'], { commandId: 'c1', suffix: 'clients/b' });
        await retain(['m2', 'm3'], { commandId: 'c1', suffix: 'clients/a' });
        await retain(['m4'], { commandId: 'c2', suffix: 'clients/a' });
        await bench.advance(1);
        await retain(['m5'], { commandId: 'c1', suffix: 'clients/b' });
        const page = async (first: number, after: Position | null): Promise<Scan<Message>> =>
          history.ofCommand('alice', 'c1', { first, after, ...newest });
        for (const first of [1, 2, 10]) {
          const found: string[] = [];
          let after: Position | null = null;
          do {
            const scan = await page(first, after);
            found.push(...scan.rows.map(({ row }) => row.id));
            after = scan.next;
          } while (after !== null);
          expect(found).toEqual(['m5', 'm1', 'm3', 'm2']);
        }
        // No row follows a position that is older than every retained row.
        const { next } = await page(3, null);
        await bench.advance(999);
        expect((await page(3, next)).rows).toEqual([]);
      });
    });

    it('hides rows beyond the age or the count at once, and reports no gap for them', async () => {
      await retain(['old']);
      await bench.advance(999);
      expect(await paged(history, EVERY, 10)).toEqual(['old']);
      await retain(['new']);
      await bench.advance(1);
      expect(await paged(history, EVERY, 10)).toEqual(['new']);
      await retain(Array.from({ length: 50 }, (_, i) => `m${i}`));
      expect(await paged(history, EVERY, 100)).toEqual(Array.from({ length: 50 }, (_, i) => `m${i}`));
      expect((await history.messages('alice', 'clients/tab', EVERY, ALL))?.gaps).toEqual([]);
      await bench.advance(1000);
      expect((await history.streams('alice', null, ALL)).rows).toEqual([]);
      expect(await history.messages('alice', 'clients/tab', EVERY, ALL)).toBeNull();
    });

    it('keeps a stream until its newest row is too old, also if that row followed soon after the one before', async () => {
      await retain(['m1']);
      await bench.advance(50);
      await retain(['m2']);
      await bench.advance(999);
      expect((await history.streams('alice', null, ALL)).rows).toHaveLength(1);
      expect(await paged(history, EVERY, 10)).toEqual(['m2']);
      await bench.advance(1);
      expect((await history.streams('alice', null, ALL)).rows).toEqual([]);
    });

    it('never assigns a sequence number twice, also if a stream was removed and created again', async () => {
      const first = await history.retain(newMessage({ id: 'm1' }));
      await bench.advance(1000);
      expect((await history.streams('alice', null, ALL)).rows).toEqual([]);
      const second = await history.retain(newMessage({ id: 'm2' }));
      expect(second.seq).toBeGreaterThan(first.seq);
    });

    it("drops a user's least recently written stream to make room for a new one, and reports it", async () => {
      await retain(['b'], { suffix: 'x', userId: 'bob' });
      for (let i = 0; i < 20; i++) await retain([`m${i}`], { suffix: `s${i}` });
      await retain(['again'], { suffix: 's0' });
      await retain(['new'], { suffix: 'one-more' });
      const { rows, gaps } = await history.streams('alice', null, ALL);
      expect(rows.map(({ row }) => row.suffix)).not.toContain('s1');
      expect(rows.map(({ row }) => row.suffix)).toEqual(expect.arrayContaining(['s0', 's2', 'one-more']));
      expect(rows).toHaveLength(20);
      expect(gaps).toMatchObject([{ source: 'streams', complete: false, reason: 'evicted' }]);
      expect(await history.ofUsers(['alice', 'bob'], 1)).toMatchObject([
        { gaps: [{ reason: 'evicted' }] },
        { gaps: [] },
      ]);
      const dropped = await history.messages('alice', 's1', EVERY, ALL);
      expect(dropped).toMatchObject({ rows: [], next: null, gaps: [{ source: 'messages', reason: 'evicted' }] });
      expect(await history.messages('bob', 's1', EVERY, ALL)).toBeNull();
      await bench.advance(1000);
      expect((await history.streams('alice', null, ALL)).gaps).toEqual([]);
      expect(await history.messages('alice', 's1', EVERY, ALL)).toBeNull();
    });

    it('measures the age of a stream from its last write, not its first', async () => {
      const suffixes = Array.from({ length: 20 }, (_, i) => `s${i}`);
      for (const suffix of [...suffixes, ...suffixes.toReversed(), 's18']) await retain(['m'], { suffix });
      for (const suffix of ['n1', 'n2']) await retain(['m'], { suffix });
      const { rows } = await history.streams('alice', 's', ALL);
      const kept = suffixes.filter((suffix) => suffix !== 's19' && suffix !== 's17');
      expect(rows.map(({ row }) => row.suffix)).toEqual(kept.sort());
    });

    it('measures it also among streams that are written at once', async () => {
      const own = await make(MODEL_BOUNDS);
      const write = (suffix: string): Promise<unknown> =>
        Promise.resolve(own.backend.history.retain(newMessage({ userId: 'alice', suffix })));
      for (const suffix of ['often', 'once']) await write(suffix);
      await Promise.all(['often', 'once', 'often'].map(write));
      for (const suffix of ['new-1', 'new-2']) await write(suffix);
      const { rows } = await own.backend.history.streams('alice', null, ALL);
      expect(rows.map(({ row }) => row.suffix)).toEqual(['new-1', 'new-2', 'often']);
      await own.close();
    });

    it.each([1, 2, 5])(
      'keeps the order of new streams of which a message is written every %i turns of the event loop',
      async (pause) => {
        const suffixes = ['new-1', 'new-2', 'new-3'];
        const kept: { readonly suffix: string; readonly message: MaybePromise<Message> }[] = [];
        for (let i = 0; i < 60; i++) {
          const suffix = suffixes[i % 3]!;
          kept.push({ suffix, message: history.retain(newMessage({ id: `m${i}`, suffix })) });
          for (let turn = 0; turn < pause; turn++) await nextTurn();
        }
        for (const suffix of suffixes) {
          const own = kept.filter((one) => one.suffix === suffix).map(({ message }) => message);
          const numbers = (await Promise.all(own)).map(({ seq }) => seq);
          expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
        }
      },
    );

    it('keeps as many streams as allowed when more are written at once', async () => {
      const own = await make(MODEL_BOUNDS);
      const suffixes = ['s1', 's2', 's3', 's4', 's5', 's1'];
      const write = (suffix: string): MaybePromise<Message> =>
        own.backend.history.retain(newMessage({ userId: 'alice', suffix }));
      await Promise.all(suffixes.map(write));
      const { rows, gaps } = await own.backend.history.streams('alice', null, ALL);
      expect(rows).toHaveLength(MODEL_BOUNDS.streamsPerUser);
      for (const { row } of rows) expect([1, 2]).toContain(row.messageCount);
      expect(gaps).toMatchObject([{ reason: 'evicted' }]);
      await own.close();
    });

    it('behaves like a plain list of messages, for any sequence of writes', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(historyActs, { maxLength: 40 }), async (acts) => {
          const own = await make(MODEL_BOUNDS);
          const model = new HistoryModel(own);
          for (const act of acts) await model.run(act);
          await own.close();
        }),
        { numRuns: runs },
      );
    });
  });
}

function rowsOf(scan: Scan<Message> | null): Message[] {
  return (scan?.rows ?? []).map(({ row }) => row);
}

/** Returns the ids of the stream under test, read page by page to the end. */
async function paged(
  history: HistoryStore,
  filter: MessageFilter,
  pages: number | Pick<MessagePage, 'first' | 'order'>,
): Promise<string[]> {
  const page = typeof pages === 'number' ? { first: pages } : pages;
  const found: string[] = [];
  let after: Position | null = null;
  do {
    const scan: Scan<Message> | null = await history.messages('alice', 'clients/tab', filter, { ...page, after });
    found.push(...rowsOf(scan).map(({ id }) => id));
    after = scan?.next ?? null;
  } while (after !== null);
  return found;
}
