/** Tests how much one call of a scan over Redis reads, and that scans end, stop and continue where they should. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ANY_COMMAND, type DeliveryFilter } from '../../src/core/commands/delivery-inspector.ts';
import type { Message, MessagePage } from '../../src/core/history/message.ts';
import { DocumentReading } from '../../src/core/document-reading.ts';
import { SCAN_BUDGET, type PageRequest, type Position, type Scan } from '../../src/core/page.ts';
import { SCANNED_AT_LEAST, SCANNED_TOGETHER } from '../../src/core/limits.ts';
import { NAMES } from '../../src/backends/redis/inspector-pages.ts';
import { READ_BATCH } from '../../src/backends/redis/commands/get.ts';
import { MAX_ROWS } from '../../src/backends/redis/program-calls.ts';
import { admission, ALICE, BOUND, dispatched, ending, keyFor } from '../contract/kit/bench.ts';
import { toJson } from '../../src/core/json.ts';
import { newMessage } from '../contract/kit/history-model.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';

const EVERY = { afterTime: null, beforeTime: null };
/** Returns the reads of a document whose requester hangs up as soon as this is true. */
const givenUpWhen = (aborted: () => boolean): DocumentReading =>
  new DocumentReading({
    get aborted() {
      return aborted();
    },
  });

/** The most blocks of one read. */
const MOST_BLOCKS = 256;

describe('scans over Redis', () => {
  let bench: RedisBench;
  beforeEach(async () => {
    bench = await redisBench({ partitions: 1, streamMessages: 20_000 });
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await bench.close();
  });

  type Call = { readonly name: string; readonly args: readonly unknown[] };
  /** Notes the acts that run and the names that are read, and how many of these calls run at the same time. */
  const watchCalls = () => {
    const seen: Call[] = [];
    const running = { now: 0, most: 0 };
    const note = <T>(calls: readonly Call[], answer: Promise<T>): Promise<T> => {
      seen.push(...calls);
      running.most = Math.max(running.most, ++running.now);
      return answer.finally(() => running.now--);
    };
    const { act, read } = bench.store;
    vi.spyOn(bench.store, 'act').mockImplementation((partition, name, args) =>
      note([{ name, args }], act(partition, name, args)),
    );
    vi.spyOn(bench.store, 'read').mockImplementation((commands) => {
      const named = commands.filter(([name, key]) => name !== 'ZLEXCOUNT' && /:(names|admitted):/.test(String(key)));
      const calls = named.map(([name, ...args]) => ({ name, args }));
      return calls.length === 0 ? read(commands) : note(calls, read(commands));
    });
    return { seen, running };
  };
  /** Returns how many names a read or an act asks for. */
  const namesAsked = ({ args }: Call): number | null => {
    return args.includes('LIMIT') ? Number(args[args.indexOf('LIMIT') + 2]) : null;
  };
  const admitMany = async (count: number, from = 0): Promise<void> => {
    const request = (i: number) =>
      admission(`c${String(i).padStart(5, '0')}`, {
        ...{ clientId: `t${i % 20}`, connectWithinMs: 300_000, scopeLimit: 50_000, params: null },
        kept: { payload: null, spill: null },
      });
    for (let at = 0; at < count; at += 500)
      await Promise.all(
        Array.from({ length: Math.min(500, count - at) }, (_, i) =>
          bench.backend.commands.admit(request(from + at + i)),
        ),
      );
  };
  const list = async (filter: Partial<DeliveryFilter>, page: PageRequest & { order?: 'newest' | 'key' }) =>
    bench.backend.inspector.list({ ...ANY_COMMAND, ...filter }, page);

  describe('of commands', () => {
    for (const order of ['key', 'newest'] as const)
      it(`read a bounded part in each call, one after the other, in the order ${order}`, async () => {
        await admitMany(3 * NAMES);
        const { seen, running } = watchCalls();
        const page = await list({ action: 'rare' }, { first: 10, after: null, order });
        expect([page.rows, page.next]).toEqual([[], null]);
        const reads = seen.filter(({ name }) => name === 'commands-read');
        const steps = seen.map(namesAsked).filter((step) => step !== null);
        expect(steps.length).toBeGreaterThan(2);
        expect(steps).toEqual([SCANNED_AT_LEAST, ...Array.from(steps.slice(1), () => NAMES)]);
        const rows = reads.map(({ args }) => (args.length - 3 - Number(args[1]) - Number(args[2])) / 3);
        expect(rows.reduce((sum, one) => sum + one, 0)).toBe(3 * NAMES);
        expect(Math.max(...rows)).toBeLessThanOrEqual(READ_BATCH);
        expect(running.most).toBe(1);
      });

    it('leave out in Redis what cannot match, so that the relay does not decode it', async () => {
      await bench.backend.commands.rebind(ALICE, BOUND, 'up');
      const failure = { code: 'no_such_tab', message: 'There is no such tab.' };
      for (const id of ['a', 'b', 'c']) {
        await dispatched(bench, id, { action: id === 'b' ? 'rare' : 'open' });
        await bench.backend.commands.finish(keyFor(id), ending({ kind: 'error', error: failure, payload: null }));
      }
      // Decoding the record of a command that failed parses the JSON of its error and of its sightings.
      const parse = vi.spyOn(JSON, 'parse');
      for (const filter of [
        { action: 'other' },
        { outcome: 'completed' },
        { code: 'other' },
        { stage: 'queued' },
      ] as const)
        for (const order of ['key', 'newest'] as const)
          expect((await list(filter, { first: 10, after: null, order })).rows).toEqual([]);
      expect(parse).not.toHaveBeenCalled();
      const rare = await list({ action: 'rare', code: 'no_such_tab', stage: 'terminal' }, { first: 10, after: null });
      expect(rare.rows.map(({ row }) => row.commandId)).toEqual(['b']);
      expect(parse).toHaveBeenCalledTimes(2);
    });

    it('show each command that stays exactly once, while others are admitted and end', async () => {
      await admitMany(2 * NAMES + 10);
      for (const order of ['key', 'newest'] as const) {
        const found: string[] = [];
        let after: Position | null = null;
        for (let turn = 0; ; turn++) {
          const page: Awaited<ReturnType<typeof list>> = await list(
            { stage: 'admitted' },
            { first: 100, after, order },
          );
          found.push(...page.rows.map(({ row }) => row.commandId));
          after = page.next;
          if (after === null) break;
          await bench.advance(1);
          await admitMany(3, 10_000 + 100 * turn + (order === 'key' ? 0 : 50));
        }
        const stayed = found.filter((id) => id < 'c10000');
        expect(new Set(found).size).toBe(found.length);
        expect(stayed).toHaveLength(2 * NAMES + 10);
      }
    });

    it('stop between two calls once their answer is given up', async () => {
      await admitMany(3 * NAMES);
      const { seen } = watchCalls();
      for (const most of [1, 2]) {
        seen.length = 0;
        const reading = givenUpWhen(() => seen.length >= most);
        const page = list({ action: 'rare' }, { first: 10, after: null, reading });
        await expect(page).rejects.toMatchObject({ code: 'store_unavailable' });
        expect(seen).toHaveLength(most);
      }
    });

    it('scan for all pages of a document together as much as for one, and a few for each page, which then goes on', async () => {
      await admitMany(3 * NAMES);
      const { seen } = watchCalls();
      const readRecords = () => {
        const reads = seen.splice(0).filter(({ name }) => name === 'commands-read');
        return reads.reduce((sum, { args }) => sum + (args.length - 3 - Number(args[1]) - Number(args[2])) / 3, 0);
      };
      for (const order of ['key', 'newest'] as const) {
        const reading = new DocumentReading();
        reading.countScanned(SCANNED_TOGETHER - SCANNED_AT_LEAST - 1);
        const rare = (after: Position | null) => list({ action: 'rare' }, { first: 10, after, order, reading });
        const cut = await rare(null);
        expect([cut.rows, cut.cut, readRecords()]).toEqual([[], true, SCANNED_AT_LEAST + NAMES]);
        let after: Position | null = null;
        for (let pages = 1; ; pages++) {
          const page: Awaited<ReturnType<typeof list>> = await rare(after);
          after = page.next;
          if (after !== null) expect([page.cut, readRecords()]).toEqual([true, SCANNED_AT_LEAST]);
          else break;
          expect(pages).toBeLessThanOrEqual((3 * NAMES) / SCANNED_AT_LEAST);
        }
        // A listing that filters nothing reads no more than it shows, so it is not cut.
        expect((await list({ userId: 'alice' }, { first: 200, after: null, reading })).rows).toHaveLength(200);
        readRecords();
      }
    });

    it('read many records of one tick in calls of MAX_ROWS at most', async () => {
      // Each 12 arguments of this act count as a row; the first two arguments name no command.
      const name = (i: number) => [bench.store.hash('a', 'b'), `c${i}`, bench.store.hash('a')];
      const names = Array.from({ length: 4 * MAX_ROWS }, (_, i) => name(i));
      const before = bench.store.roundTrips;
      await Promise.all(
        Array.from({ length: 4 }, () => bench.store.act(0, 'commands-read', [null, 0, 0, ...names.flat()])),
      );
      expect(bench.store.roundTrips - before).toBe(4);
      const few = bench.store.roundTrips;
      await Promise.all(Array.from({ length: 4 }, () => bench.store.act(0, 'commands-read', [null, 0, 0, ...name(0)])));
      expect(bench.store.roundTrips - few).toBe(1);
      const alone = bench.store.roundTrips;
      await Promise.all(Array.from({ length: 3 }, () => bench.store.act(0, 'history-sweep', [1000, 1])));
      expect(bench.store.roundTrips - alone).toBe(1);
      const whole = bench.store.roundTrips;
      await Promise.all(Array.from({ length: 3 }, () => bench.store.act(0, 'dedup-evict', [1, 1, 1])));
      expect(bench.store.roundTrips - whole).toBe(3);
    });
  });

  describe('of messages', () => {
    const ROWS = SCAN_BUDGET + 300;
    const error = { code: 'no_such_tab', message: 'There is no such tab.' };
    const retain = (id: string, kind: Message['kind'] = 'error') =>
      bench.backend.history.retain(newMessage({ id, kind, error: kind === 'error' ? error : null, payload: null }));
    const fill = async (): Promise<void> => {
      for (let at = 0; at < ROWS; at += 500)
        await Promise.all(
          Array.from({ length: Math.min(500, ROWS - at) }, (_, i) => {
            const kind = at + i === 5_000 || at + i === ROWS - 5 ? 'progress' : 'error';
            return retain(`m${at + i}`, kind);
          }),
        );
    };
    const page = async (kinds: readonly Message['kind'][] | null, request: MessagePage) => {
      const scan = await bench.backend.history.messages('alice', 'clients/tab', { ...EVERY, kinds }, request);
      if (scan === null) throw new Error('There is no such stream.');
      return scan;
    };

    it('end a page at SCAN_BUDGET rows, say so, and continue exactly there, without decoding other rows', async () => {
      await fill();
      const parse = vi.spyOn(JSON, 'parse');
      const { read } = bench.store;
      const counts: number[] = [];
      vi.spyOn(bench.store, 'read').mockImplementation((commands) => {
        for (const [name, ...args] of commands)
          if (name.startsWith('X') && args.length > 3) counts.push(Number(args[4]));
        return read(commands);
      });
      for (const order of ['oldest_first', 'newest_first'] as const) {
        const absent = await page(['cancel'], { first: 10, after: null, order });
        expect([absent.rows, absent.cut, absent.next === null]).toEqual([[], true, false]);
        // The row after the cut is the first of the next page.
        const rest = await page(null, { first: 1000, after: absent.next, order });
        expect(rest.rows).toHaveLength(300);
        parse.mockClear();
        const [first, second] = await pagesOf(['progress'], order);
        const ids = order === 'oldest_first' ? ['m5000', `m${ROWS - 5}`] : [`m${ROWS - 5}`, 'm5000'];
        expect([...(first ?? []), ...(second ?? [])]).toEqual(ids);
        expect(parse).not.toHaveBeenCalled();
      }
      expect(Math.max(...counts)).toBeLessThanOrEqual(MOST_BLOCKS);
      expect(counts.length).toBeGreaterThan(8);
    });

    const pagesOf = async (kinds: readonly Message['kind'][], order: MessagePage['order']): Promise<string[][]> => {
      const pages: string[][] = [];
      let after: Position | null = null;
      do {
        const scan: Scan<Message> = await page(kinds, { first: 10, after, order });
        pages.push(scan.rows.map(({ row }) => row.id));
        after = scan.next;
      } while (after !== null);
      return pages;
    };

    it('stop between two reads once their answer is given up', async () => {
      for (let i = 0; i < 40; i++) await retain(`m${i}`);
      const read = vi.spyOn(bench.store, 'read');
      const reading = givenUpWhen(() => read.mock.calls.length > 1);
      const given = page(['cancel'], { first: 10, after: null, reading });
      await expect(given).rejects.toMatchObject({ code: 'store_unavailable' });
      expect(read).toHaveBeenCalledTimes(2);
      const ofCommand = bench.backend.history.ofCommand('alice', 'c1', { first: 10, after: null, reading });
      await expect(ofCommand).rejects.toMatchObject({ code: 'store_unavailable' });
    });
  });

  describe('of clients', () => {
    it('return the rows of large clients in several calls, each with about 256 KiB', async () => {
      const schema = toJson({ text: 'x'.repeat(60_000) });
      const action = { name: 'open', summary: null, description: null, version: null, checksArguments: null };
      const actions = [0, 1].map((i) => ({ ...action, name: `open${i}`, schema, metadata: null }));
      const keys = Array.from({ length: 8 }, (_, i) => ({ userId: 'alice', clientId: `t${i}` }));
      const hello = { instanceId: 'i1', nodeId: 'n1', clientType: 'browser', host: false, metadata: null } as const;
      for (const key of keys) await bench.backend.connections.connect({ ...key, ...hello, actions });
      const beside = await redisBench({ beside: bench, partitions: 1 });
      const before = beside.store.roundTrips;
      const rows = await beside.backend.connections.get(keys);
      expect(rows.map((row) => [row?.clientId, row?.actions.length])).toEqual(
        keys.map(({ clientId }) => [clientId, 2]),
      );
      expect(beside.store.roundTrips - before).toBe(3);
      await beside.close();
    });

    it('count the commands of busy clients in several calls', async () => {
      // Each command has four fields, and a call reads about 10,000.
      await admitMany(6_000);
      const { seen } = watchCalls();
      const clients = Array.from({ length: 20 }, (_, i) => ({ userId: 'alice', clientId: `t${i}` }));
      const loads = await bench.backend.commands.loads(clients);
      expect(loads).toEqual(clients.map(() => ({ inFlight: 0, queued: 300 })));
      const left = seen.filter(({ name }) => name === 'commands-loads').map(({ args }) => args.length);
      expect(left.length).toBeGreaterThan(1);
      expect(left[0]).toBe(20);
    });

    it('remove the places of a bounded number of rows when a stream makes room for another', async () => {
      const small = await redisBench({ partitions: 1, streamMessages: 5_000, streamsPerUser: 1 });
      const { history } = small.backend;
      const row = (i: number) => newMessage({ id: `m${i}`, commandId: `c${i}` });
      for (let at = 0; at < 2_000; at += 500)
        await Promise.all(Array.from({ length: 500 }, (_, i) => history.retain(row(at + i))));
      const places = async (): Promise<number> => {
        const names = await small.store.read([['ZRANGE', small.store.key(0, 'rowspans'), 0, -1]]);
        const spans = (names[0] as string[]).map((name) => name.split('\0'));
        const counts = await small.store.read(
          spans.map(([uh = '', start = '']) => ['HLEN', small.store.key(0, 'cmdrows', `${uh}:${start}`)]),
        );
        return counts.reduce<number>((sum, count) => sum + Number(count), 0);
      };
      expect(await places()).toBe(2_000);
      await history.retain(newMessage({ suffix: 'clients/other', id: 'later', commandId: 'later' }));
      const left = await places();
      expect(left).toBeGreaterThan(2_001 - 512 - 16 * 64 - 1);
      expect(left).toBeLessThan(2_001);
      // The places that are left name no message.
      for (const id of ['c0', 'c1999'])
        expect((await history.ofCommand('alice', id, { first: 10, after: null })).rows).toEqual([]);
      await small.close();
    });
  });
});
