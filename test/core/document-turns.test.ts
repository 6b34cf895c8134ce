/** Tests that users take turns with documents, and that a user has a bounded number of them in progress. */
import { describe, expect, it } from 'vitest';
import type { Principal } from '../../src/core/auth/principal.ts';
import type { EventLoop } from '../../src/core/ports.ts';
import { DOCUMENT_TURN_COST, QUERY_MS } from '../../src/core/limits.ts';
import { DocumentReading } from '../../src/core/document-reading.ts';
import { shareBounds } from '../../src/core/shares/share-bounds.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { createDocumentTurns } from '../../src/core/shares/turns.ts';
import { readDocument } from '../../src/graphql/execute/executor.ts';
import { FakeClock, settle } from '../kit/clock.ts';
import { admin, user } from '../kit/core.ts';

const [alice, bob, carol] = [user('alice'), user('bob'), user('carol')];
const DEAR = DOCUMENT_TURN_COST;

/** A loop whose turns end when the test says so. */
class SteppedLoop implements EventLoop {
  #waiting: (() => void)[] = [];

  afterOthers(run: () => void): void {
    this.#waiting.push(run);
  }

  atTurnEnd(run: () => void): void {
    this.#waiting.push(run);
  }

  async turn(): Promise<void> {
    this.#waiting.splice(0).forEach((run) => run());
    await settle();
  }
}

function opened(guarantee = 100) {
  const loop = new SteppedLoop();
  const shares = createShares(shareBounds({ documents: { guarantee } }));
  const documents = createDocumentTurns({ shares, loop });
  const begun: string[] = [];
  const run = (who: Principal, name: string, cost = DEAR, reading = new DocumentReading()) =>
    documents.run(who, { cost, reading }, () => (begun.push(name), name));
  return { loop, shares, documents, begun, run };
}

describe('the turns of documents', () => {
  it('begin one dear document in a turn of the event loop, with the users in turn', async () => {
    const { loop, begun, run } = opened();
    expect(run(alice, 'a1')).toBe('a1');
    const rest = ['a2', 'a3', 'a4'].map((name) => run(alice, name));
    rest.push(run(bob, 'b1'), run(bob, 'b2'), run(carol, 'c1'));
    expect(begun).toEqual(['a1']);
    for (let turn = 0; turn < 6; turn++) {
      await loop.turn();
      expect(begun).toHaveLength(turn + 2);
    }
    expect(begun).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4']);
    expect(await Promise.all(rest)).toEqual(['a2', 'a3', 'a4', 'b1', 'b2', 'c1']);
  });

  it('take the events of subscriptions, which wait for no document and make none wait', async () => {
    const { loop, begun, documents, run } = opened(1);
    const event = (name: string) => documents.event(alice, 1, () => (begun.push(name), name));
    const feeds = Array.from({ length: DOCUMENT_TURN_COST }, (_, n) => event(`e${n}`));
    const first = begun.length;
    expect(first).toBeLessThanOrEqual(1_000);
    const read = run(alice, 'a1', 1);
    await loop.turn();
    expect(begun.indexOf('a1')).toBeGreaterThanOrEqual(first);
    expect(await read).toBe('a1');
    while (begun.length <= feeds.length) await loop.turn();
    expect(await Promise.all(feeds)).toHaveLength(DOCUMENT_TURN_COST);
  });

  it('begin cheap documents at once, as many as cost as much as a turn', async () => {
    const { loop, begun, run } = opened();
    const tenth = DEAR / 10;
    for (let i = 0; i < 12; i++) void run(alice, `a${i}`, tenth);
    expect(begun).toHaveLength(10);
    // What another user asks for waits no longer than one turn, and comes before the rest of the first one.
    void run(bob, 'b', tenth);
    await loop.turn();
    expect(begun.slice(10)).toEqual(['b', 'a10', 'a11']);
    expect(run(bob, 'alone', 20 * DEAR)).toBeInstanceOf(Promise);
    await loop.turn();
    expect(begun.at(-1)).toBe('alone');
  });

  it('have at most two dear documents of a user in progress at the same time', async () => {
    const { loop, documents, begun } = opened();
    const open = new Map<string, () => void>();
    const wait = (who: typeof alice, name: string, cost: number) =>
      documents.run(who, { cost, reading: new DocumentReading() }, () => {
        begun.push(name);
        return new Promise<void>((resolve) => open.set(name, resolve));
      });
    for (const name of ['a1', 'a2', 'a3']) void wait(alice, name, DEAR);
    void wait(bob, 'b1', DEAR);
    void wait(alice, 'small', 10);
    for (let i = 0; i < 5; i++) await loop.turn();
    expect(begun).toEqual(['a1', 'b1', 'a2']);
    open.get('a1')?.();
    await settle();
    for (let i = 0; i < 2; i++) await loop.turn();
    expect(begun).toEqual(['a1', 'b1', 'a2', 'a3', 'small']);
  });

  it('do not run a document whose answer was given up', async () => {
    const { loop, shares, begun, run } = opened();
    const gone = new AbortController();
    void run(alice, 'a1');
    const late = run(alice, 'a2', DEAR, new DocumentReading(gone.signal));
    gone.abort();
    const refused = expect(late).rejects.toMatchObject({ code: 'store_unavailable' });
    await loop.turn();
    await refused;
    expect(begun).toEqual(['a1']);
    expect(shares.used('documents')).toBe(0);
  });
});

describe('the share of documents in progress', () => {
  it('bounds each user, and is free again after an answer and after an error', async () => {
    const { loop, shares, documents, run } = opened(2);
    void run(alice, 'a1');
    const waiting = [run(alice, 'a2'), run(alice, 'a3')];
    expect(shares.of('alice').held('documents')).toBe(2);
    expect(() => run(alice, 'a4')).toThrow(expect.objectContaining({ code: 'share_exceeded' }));
    expect(() => run(alice, 'cheap', 1)).toThrow(expect.objectContaining({ code: 'share_exceeded' }));
    const others = [run(bob, 'b1'), run(admin, 'x1')];
    for (let i = 0; i < 5; i++) await loop.turn();
    await Promise.all([...waiting, ...others]);
    expect(shares.used('documents')).toBe(0);
    const broken = documents.run(alice, { cost: 1, reading: new DocumentReading() }, () =>
      Promise.reject(new Error('x')),
    );
    expect(shares.used('documents')).toBe(1);
    await expect(broken).rejects.toThrow('x');
    expect(shares.used('documents')).toBe(0);
  });
});

it('the reads of a document end when its time is over or its requester hangs up', async () => {
  const { documents } = opened();
  const clock = new FakeClock();
  const gone = new AbortController();
  const readings: DocumentReading[] = [];
  const never = (reading: DocumentReading) => (readings.push(reading), new Promise<never>(() => {}));
  const late = readDocument({ documents, clock }, { requester: alice, cost: 1 }, never);
  const left = readDocument({ documents, clock }, { requester: alice, cost: 1, signal: gone.signal }, never);
  const over = Promise.all(
    [late, left].map((each) => expect(each).rejects.toMatchObject({ code: 'store_unavailable' })),
  );
  gone.abort();
  expect(readings.map(({ aborted }) => aborted)).toEqual([false, true]);
  await clock.advance(QUERY_MS);
  await over;
  expect(readings[0]?.aborted).toBe(true);
  expect(() => readings[0]?.check()).toThrow(expect.objectContaining({ code: 'store_unavailable' }));
});
