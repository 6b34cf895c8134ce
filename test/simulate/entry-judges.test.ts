/** Tests the judges of events, viewers, sessions and revocations: each notices what it is for. */
import { describe, expect, it } from 'vitest';
import {
  streamFaults,
  verdictFaults,
  viewerFaults,
  type Segment,
  type Sent,
} from '../../faults/simulate/event-ledger.ts';
import type { HeldToken } from '../../faults/simulate/held-tokens.ts';
import { RevocationLedger } from '../../faults/simulate/revocation-ledger.ts';
import { invokeFaults, isLasting, isOver, type Given, type SiteInvoke } from '../../faults/simulate/session-ledger.ts';

const sent = (id: string, at: number, more: Partial<Sent> = {}): Sent => ({
  ...{ id, userId: 'alice', suffix: 'sites/board/events', name: 'changed', batch: at, place: 0, text: '' },
  ...{ sentAt: at, toldAt: at + 1, verdicts: [{ retained: true, duplicate: false, published: true, relay: 'a' }] },
  ...more,
});
const [ONE, TWO, THREE] = [sent('one', 10), sent('two', 20), sent('three', 30)];
const ALL = [ONE, TWO, THREE];
const ROWS = ['one', 'two', 'three'];

describe('the judge of streams', () => {
  it('accepts what was sent, in its order', () => {
    expect(streamFaults(ROWS, ALL, () => true)).toEqual([]);
    expect(streamFaults(['one', 'two'], ALL, (one) => one !== THREE)).toEqual([]);
  });

  it.each([
    [['one', 'three'], /two was told, and is lost/],
    [['one', 'two', 'three', 'two'], /a row is there twice/],
    [['two', 'one', 'three'], /one comes after two/],
    [['one', 'two', 'three', 'four'], /four was never sent/],
  ])('refuses %j', (rows, says) => {
    expect(streamFaults(rows, ALL, () => true).join()).toMatch(says);
  });

  it('refuses a batch in another order', () => {
    const pair = [sent('a', 1, { batch: 1, place: 0 }), sent('b', 1, { batch: 1, place: 1 })];
    expect(streamFaults(['a', 'b'], pair, () => true)).toEqual([]);
    expect(streamFaults(['b', 'a'], pair, () => true).join()).toMatch(/a comes after b of the same batch/);
  });

  it('refuses an event that was retained twice, and verdicts that contradict themselves', () => {
    const [verdict] = ONE.verdicts;
    if (!verdict) throw new Error('it has one');
    const duplicate = { ...verdict, retained: false, duplicate: true, published: false };
    expect(verdictFaults({ ...ONE, verdicts: [verdict, duplicate] })).toEqual([]);
    expect(verdictFaults({ ...ONE, verdicts: [verdict, verdict] }).join()).toMatch(/retained 2 times/);
    expect(verdictFaults({ ...ONE, verdicts: [{ ...verdict, duplicate: true }] }).join()).toMatch(/is told as/);
    expect(verdictFaults({ ...ONE, verdicts: [{ ...duplicate, published: true }] }).join()).toMatch(/and published/);
  });
});

describe('the judge of viewers', () => {
  const judged = (...segments: readonly Segment[]) =>
    viewerFaults({ viewer: 'v', segments, sent: ALL, rows: ROWS }).join();
  const segment = (ids: readonly string[], more: Partial<Segment> = {}): Segment => ({
    ...{ openedAt: 5, endedAt: Infinity, got: ids.map((id) => ({ id, missed: 0, at: 100 })) },
    ...more,
  });

  it('accepts all events, those from when it began on, and a gap that is named', () => {
    expect(judged(segment(ROWS))).toBe('');
    expect(judged(segment(['three'], { openedAt: 25 }))).toBe('');
    const named = [
      { id: 'one', missed: 0, at: 11 },
      { id: 'three', missed: 1, at: 31 },
    ];
    expect(judged(segment([], { got: named }))).toBe('');
    // What broke off is a gap of its own.
    expect(judged(segment(['one'], { endedAt: 25 }), segment(['three'], { openedAt: 26 }))).toBe('');
  });

  it.each([
    [['one', 'three'], /missed two of a, and nothing told it/],
    [['one', 'two', 'two', 'three'], /got two twice/],
    [['two', 'one', 'three'], /got one after two/],
    [['one', 'two', 'three', 'other'], /got other, which it may not see/],
  ])('refuses %j', (ids, says) => {
    expect(judged(segment(ids))).toMatch(says);
  });
});

describe('the judge of sessions', () => {
  const given: Given = {
    ...{ sessionId: 's1', userId: 'alice', grantId: 'g1', token: 't', events: null, actions: ['open'], share: false },
    ...{ parentId: null, askedAt: 0, toldAt: 10, ttlMs: 60_000, endedAt: Infinity, endingFrom: Infinity },
  };
  const ended = { ...given, endedAt: 500, endingFrom: 400 };
  const run = { commandId: 'c1', action: 'open', sessionId: 's1' };
  const invoke = (more: Partial<SiteInvoke> = {}): SiteInvoke => ({
    ...{ commandId: 'c1', action: 'open', given, sentAt: 600 },
    answer: { status: 200, code: null, outcome: 'completed' },
    ...more,
  });

  it('knows when a grant is over, and when it lasts', () => {
    expect([isOver(given, 1_000), isOver(ended, 600), isOver(given, 81_000)]).toEqual([false, true, true]);
    expect([isLasting(given, 1_000), isLasting(ended, 300), isLasting(given, 50_000)]).toEqual([true, false, false]);
  });

  it('accepts an action that is granted, and a refusal of any', () => {
    expect(invokeFaults(invoke(), [run])).toEqual([]);
    const answer = { status: 403, code: 'site_action_denied', outcome: undefined };
    expect(invokeFaults(invoke({ action: 'erase', answer }), [])).toEqual([]);
  });

  it.each([
    [{}, [run, run], /ran 2 times/],
    [{}, [], /is completed, and never ran/],
    [{}, [{ ...run, sessionId: 's2' }], /ran for the session s2/],
    [{ action: 'erase' }, [{ ...run, action: 'erase' }], /is not granted, and ran/],
    [{ action: 'erase' }, [], /is not granted, and was answered/],
    [{ given: ended }, [run], /came after the end, and ran/],
  ])('refuses %j', (more, ran, says) => {
    expect(invokeFaults(invoke(more), ran).join()).toMatch(says);
  });
});

describe('what is known of revocations', () => {
  const NOTHING = { userId: null, clientId: null, tokenId: null, issuedBefore: null };
  const token: HeldToken = { text: 't', userId: 'alice', id: 't1', issuedAt: 1_000, expiresAt: Infinity };
  const request = { token, clientId: null };
  const link = { token, clientId: 'desk' };
  const undated = { token: { ...token, issuedAt: null }, clientId: null };
  const other = { token: { ...token, id: 't2', userId: 'bob', issuedAt: 5_000 }, clientId: null };

  it.each([
    [{ userId: 'alice' }, [true, true, true, false]],
    [{ userId: 'alice', clientId: 'desk' }, [false, true, false, false]],
    [{ tokenId: 't1' }, [true, true, true, false]],
    [{ issuedBefore: 1_001 }, [true, true, true, false]],
    [{ issuedBefore: 1_000 }, [false, false, true, false]],
    [{ userId: 'bob', tokenId: 't1' }, [false, false, false, false]],
  ])('covers what matches all of %j', (named, covered) => {
    const ledger = new RevocationLedger(() => false);
    ledger.ask({ ...NOTHING, ...named }, null, 10).from = 20;
    const times = { began: 20, now: 30 };
    const uses = [request, link, undated, other];
    expect(uses.map((use) => ledger.holding(use, 'a', times) !== undefined)).toEqual(covered);
    expect(uses.map((use) => ledger.mayCover(use))).toEqual(covered);
  });

  it('holds from the answer on, at relays that the answer does not name as silent, unless it may be lost', () => {
    const lost = { value: false };
    const ledger = new RevocationLedger(() => lost.value);
    const revoked = ledger.ask({ ...NOTHING, userId: 'alice' }, null, 10);
    const holds = (relay: string | null, began = 25) => ledger.holding(request, relay, { began, now: 30 }) === revoked;
    expect([holds('a'), ledger.mayCover(request)]).toEqual([false, true]);
    Object.assign(revoked, { from: 20, silent: new Set(['b']) });
    expect([holds('a'), holds('b'), holds(null), holds('a', 19)]).toEqual([true, false, true, false]);
    lost.value = true;
    expect(holds('a')).toBe(false);
  });

  it('takes a revocation without an answer for one of any time', () => {
    const ledger = new RevocationLedger(() => false);
    ledger.ask({ ...NOTHING, issuedBefore: 500 }, null, 10);
    expect(ledger.mayCover(request)).toBe(true);
  });
});
