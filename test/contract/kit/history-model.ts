/** Models history in a simple way, and draws random acts to compare a HistoryStore with the model. */
import * as fc from 'fast-check';
import { expect } from 'vitest';
import {
  isLinkKind,
  LINK_KINDS,
  LINK_STREAM,
  MESSAGE_KINDS,
  type Message,
  type MessageKind,
  type NewMessage,
  type MessageFilter,
} from '../../../src/core/history/message.ts';
import { toJson } from '../../../src/core/json.ts';
import type { MaybePromise } from '../../../src/core/maybe-promise.ts';
import type { Position, Scan } from '../../../src/core/page.ts';
import type { Bench, HistoryBounds } from './bench.ts';

type Retain = { userId: string; suffix: string; messageKind: MessageKind; commandId: string | null };
/** One random act. The messages of one `retain` are sent in one tick. */
type Act = { kind: 'retain'; messages: readonly Retain[] } | { kind: 'advance'; ms: number };

const retained: fc.Arbitrary<Retain> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      userId: fc.constantFrom('a', 'b'),
      suffix: fc.constantFrom('clients/x', 'clients/x.y', 'sites/s/events', 'other'),
      messageKind: fc.constantFrom(...MESSAGE_KINDS.filter((kind) => !isLinkKind(kind))),
      commandId: fc.constantFrom('c1', 'c2', null),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      userId: fc.constantFrom('a', 'b'),
      suffix: fc.constant(LINK_STREAM),
      messageKind: fc.constantFrom(...LINK_KINDS),
      commandId: fc.constant(null),
    }),
  },
);

export const historyActs: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('retain' as const),
      messages: fc.oneof(
        fc.array(retained, { minLength: 1, maxLength: 1 }),
        fc.array(retained, { minLength: 2, maxLength: 9 }),
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.constantFrom(0, 1, 7, 50, 99, 100) }),
  },
);

/** The limits of the model, so small that a few acts reach every one. */
export const MODEL_BOUNDS = {
  streamMessages: 4,
  retentionMs: 100,
  streamsPerUser: 3,
  linkMessages: 2,
} as const satisfies HistoryBounds;

/** Returns the details of a link that was open for this long. */
export function linkDetails(openMs: number): NonNullable<NewMessage['link']> {
  return {
    clientType: 'web',
    nodeId: 'n1',
    epoch: 7,
    cause: 'client_closed',
    closeCode: null,
    openMs,
    previousInstanceId: null,
  };
}

export function newMessage(over: Partial<NewMessage> = {}): NewMessage {
  return {
    id: 'm1',
    userId: 'alice',
    suffix: 'clients/tab',
    kind: 'event',
    clientId: 'tab',
    instanceId: 'i1',
    commandId: null,
    traceId: null,
    parentSpanId: null,
    payload: null,
    spill: null,
    error: null,
    ...over,
  };
}

/** A simple history: it keeps a plain list of messages, and applies every limit by scanning the whole list. */
export class HistoryModel {
  #rows: Message[] = [];
  /** For each user, the time of the newest message in any stream that was dropped completely for lack of room. */
  readonly #dropped = new Map<string, number>();
  readonly #lastSeq = new Map<string, number>();
  readonly #bench: Bench;
  #count = 0;

  constructor(bench: Bench) {
    this.#bench = bench;
  }

  async run(act: Act): Promise<void> {
    if (act.kind === 'advance') await this.#bench.advance(act.ms);
    this.#rows = this.#rows.filter(({ at }) => at > this.#oldest);
    if (act.kind === 'retain') await this.#retain(act.messages);
    await this.#compare();
  }

  get #oldest(): number {
    return this.#bench.now() - MODEL_BOUNDS.retentionMs;
  }

  #of(userId: string, suffix?: string): Message[] {
    return this.#rows.filter((row) => row.userId === userId && (suffix === undefined || row.suffix === suffix));
  }

  #suffixes(userId: string): string[] {
    return [...new Set(this.#of(userId).map(({ suffix }) => suffix))].sort();
  }

  /** Returns a user's streams that are listed. Only these count towards the limit of streams per user. */
  #listedSuffixes(userId: string): string[] {
    return this.#suffixes(userId).filter((suffix) => suffix !== LINK_STREAM);
  }

  async #retain(messages: readonly Retain[]): Promise<void> {
    const given = messages.map(({ userId, suffix, messageKind, commandId }) => {
      const own = suffix === LINK_STREAM ? { link: linkDetails(this.#count) } : { payload: toJson('é') };
      return newMessage({ id: `m${++this.#count}`, userId, suffix, kind: messageKind, commandId, ...own });
    });
    const kept = await Promise.all(given.map((message) => this.#bench.backend.history.retain(message)));
    for (const [i, message] of kept.entries()) {
      const payloadBytes = message.link ? 0 : 4;
      expect(message).toEqual({ ...given[i], at: this.#bench.now(), seq: message.seq, payloadBytes });
      this.#note(message);
    }
  }

  #note(kept: Message): void {
    const { userId, suffix, seq } = kept;
    const known = this.#listedSuffixes(userId);
    const isNew = suffix !== LINK_STREAM && !known.includes(suffix);
    if (isNew && known.length >= MODEL_BOUNDS.streamsPerUser) this.#dropLongestUnwritten(userId);
    expect(seq).toBeGreaterThan(this.#lastSeq.get(`${userId}/${suffix}`) ?? 0);
    this.#lastSeq.set(`${userId}/${suffix}`, seq);
    this.#rows.push(kept);
    const most = suffix === LINK_STREAM ? MODEL_BOUNDS.linkMessages : MODEL_BOUNDS.streamMessages;
    for (const old of this.#of(userId, suffix).slice(0, -most)) this.#drop(old);
  }

  #drop(old: Message): void {
    this.#rows = this.#rows.filter((row) => row !== old);
  }

  #dropLongestUnwritten(userId: string): void {
    const last = (suffix: string): number =>
      this.#rows.findLastIndex((row) => row.userId === userId && row.suffix === suffix);
    const [suffix = ''] = this.#listedSuffixes(userId).sort((a, b) => last(a) - last(b));
    const gone = this.#of(userId, suffix);
    this.#dropped.set(userId, Math.max(this.#dropped.get(userId) ?? 0, gone.at(-1)?.at ?? 0));
    for (const old of gone) this.#drop(old);
  }

  #hasGap(userId: string): boolean {
    return (this.#dropped.get(userId) ?? -Infinity) > this.#oldest;
  }

  async #compare(): Promise<void> {
    const { history } = this.#bench.backend;
    const all = { first: 100, after: null };
    for (const userId of ['a', 'b']) {
      const summaries = this.#listedSuffixes(userId).map((suffix) => this.#summary(userId, suffix));
      const streams = await history.streams(userId, null, all);
      expect(values(streams)).toEqual(summaries);
      expect(streams.gaps.map(({ reason }) => reason)).toEqual(this.#hasGap(userId) ? ['evicted'] : []);
      const [ofUser] = await history.ofUsers([userId], 2);
      expect({ total: ofUser?.total, rows: ofUser?.rows }).toEqual({
        total: summaries.length,
        rows: summaries.slice(0, 2),
      });
      const clients = await history.streams(userId, 'clients/x', all);
      expect(values(clients)).toEqual(summaries.filter(({ suffix }) => suffix.startsWith('clients/x')));
      for (const suffix of this.#suffixes(userId)) await this.#compareStream(userId, suffix);
      for (const commandId of ['c1', 'c2']) await this.#compareCommand(userId, commandId);
    }
    const users = ['a', 'b'].map((userId) => ({ userId, count: this.#listedSuffixes(userId).length }));
    expect(values(await history.users(all))).toEqual(users.filter(({ count }) => count > 0));
  }

  #summary(userId: string, suffix: string) {
    const rows = this.#of(userId, suffix);
    const [firstAt, lastAt] = [rows[0]?.at ?? null, rows.at(-1)?.at ?? null];
    return { userId, suffix, messageCount: rows.length, firstAt, lastAt };
  }

  async #compareStream(userId: string, suffix: string): Promise<void> {
    const { history } = this.#bench.backend;
    const rows = this.#of(userId, suffix);
    const [afterTime, beforeTime] = [rows[0]?.at ?? 0, this.#bench.now()];
    const between = rows.filter(({ at }) => at > afterTime && at < beforeTime);
    const every = { afterTime: null, beforeTime: null, kinds: null };
    const all = { first: 100, after: null };
    const read = async (filter: Parameters<typeof history.messages>[2]): Promise<Message[]> =>
      values((await history.messages(userId, suffix, filter, all)) ?? { rows: [], next: null, gaps: [] });
    expect(await read(every)).toEqual(rows);
    for (const filter of [every, { ...every, afterTime, beforeTime }])
      expect(await this.#backwards(userId, suffix, filter)).toEqual((await read(filter)).reverse());
    expect(await read({ ...every, afterTime, beforeTime })).toEqual(between);
    expect(await read({ ...every, kinds: ['event', 'result'] })).toEqual(
      rows.filter(({ kind }) => kind === 'event' || kind === 'result'),
    );
  }

  async #compareCommand(userId: string, commandId: string): Promise<void> {
    const found = await this.#bench.backend.history.ofCommand(userId, commandId, { first: 100, after: null });
    const expected = this.#of(userId)
      .filter((row) => row.commandId === commandId)
      .sort((a, b) => a.at - b.at || (a.suffix < b.suffix ? -1 : a.suffix > b.suffix ? 1 : a.seq - b.seq));
    expect(values(found)).toEqual(expected);
    const { history } = this.#bench.backend;
    const newest = { first: 2, order: 'newest_first' } as const;
    const back = await pagesOf((after) => history.ofCommand(userId, commandId, { ...newest, after }));
    expect(back).toEqual(expected.reverse());
  }

  /** Returns the messages of a stream from the newest to the oldest. */
  #backwards(userId: string, suffix: string, filter: MessageFilter): Promise<Message[]> {
    const { history } = this.#bench.backend;
    const newest = { first: 2, order: 'newest_first' } as const;
    return pagesOf((after) => history.messages(userId, suffix, filter, { ...newest, after }));
  }
}

async function pagesOf(page: (after: Position | null) => MaybePromise<Scan<Message> | null>): Promise<Message[]> {
  const found: Message[] = [];
  let after: Position | null = null;
  do {
    const scan = await page(after);
    found.push(...(scan ? values(scan) : []));
    after = scan?.next ?? null;
  } while (after !== null);
  return found;
}

function values<T>(scan: Scan<T>): T[] {
  return scan.rows.map(({ row }) => row);
}
