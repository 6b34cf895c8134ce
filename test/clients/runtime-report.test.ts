/** Tests how a runtime reports contexts and windows. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ReportedContext, ReportedWindow } from '../../src/clients/runtime/index.ts';
import { readReport } from '../../src/gateway/payloads.ts';
import type { FakeLink } from '../kit/fake-relay.ts';
import { startRuntimeBench, type RuntimeBench } from './kit/runtime-bench.ts';

const tab: ReportedContext = { contextId: 'tab', status: 'active', ownership: 'user-owned' };
const work: ReportedContext = { contextId: 'work', status: 'idle', ownership: 'worker', windowId: 'w', taskId: null };
const window: ReportedWindow = {
  windowId: 'w',
  ownership: 'worker',
  focused: false,
  type: 'normal',
  state: 'minimized',
  incognito: false,
  tabCount: 1,
  draining: false,
  status: 'open',
};

/** Resolves with the next report, as the relay reads it. */
async function next(link: FakeLink) {
  return readReport((await link.next('report')).payload);
}

function idsOf(part: { readonly set: readonly { readonly contextId: string }[] } | null): string {
  return (part?.set ?? []).map(({ contextId }) => contextId).join(' ');
}

/** The rows that a relay holds after the reports that it took. */
class Held {
  readonly contexts = new Map<string, unknown>();
  readonly windows = new Map<string, unknown>();

  take(payload: string | null): void {
    const { contexts, windows } = readReport(payload);
    if (contexts?.snapshot) this.contexts.clear();
    if (windows?.snapshot) this.windows.clear();
    for (const id of contexts?.removed ?? []) this.contexts.delete(id);
    for (const id of windows?.removed ?? []) this.windows.delete(id);
    for (const row of contexts?.set ?? []) this.contexts.set(row.contextId, row);
    for (const row of windows?.set ?? []) this.windows.set(row.windowId, row);
  }
}

describe('reporting contexts and windows', () => {
  test('sends a snapshot first and then changes, all of one turn in one report', async () => {
    await using bench = await startRuntimeBench();
    const { runtime } = bench;
    const link = await bench.up();
    runtime.reportContexts([tab, { ...work, title: 'Work', metadata: { n: 1 } }]);
    runtime.reportWindows([{ ...window, capacity: 2, workerCount: 1, idleCount: 1, busyCount: 0 }]);
    const first = await next(link);
    expect(first.contexts).toMatchObject({
      snapshot: true,
      set: [
        { contextId: 'tab' },
        { contextId: 'work', windowId: 'w', taskId: null, title: 'Work', metadata: '{"n":1}' },
      ],
    });
    expect(first.windows).toMatchObject({ snapshot: true, set: [{ windowId: 'w', capacity: 2, workerCount: 1 }] });
    runtime.reportContexts({ set: [{ ...work, status: 'active', taskId: 't' }], removed: ['tab', 'unknown'] });
    runtime.reportContexts({ set: [{ ...tab, contextId: 'new' }] });
    runtime.reportContexts({ removed: ['new'], set: [{ ...tab, contextId: 'newer' }] });
    const second = await next(link);
    expect(second.windows).toBeNull();
    expect(second.contexts?.snapshot).toBe(false);
    expect([...(second.contexts?.removed ?? [])].sort()).toEqual(['new', 'tab']);
    expect(idsOf(second.contexts)).toBe('work newer');
    runtime.reportContexts([{ ...tab, contextId: 'newer' }]);
    expect(await next(link)).toMatchObject({ contexts: { snapshot: false, set: [], removed: ['work'] } });
    expect(await link.untaken('report')).toBe(0);
  });

  test('sends nothing without a change, and nothing of a kind that is never reported', async () => {
    await using bench = await startRuntimeBench();
    let link = await bench.up();
    expect(await link.untaken('report')).toBe(0);
    bench.runtime.reportContexts([tab]);
    expect((await next(link)).windows).toBeNull();
    bench.runtime.reportContexts([{ ...tab }]);
    bench.runtime.reportContexts({});
    expect(await link.untaken('report')).toBe(0);
    link = await bench.again(link);
    expect((await next(link)).windows).toBeNull();
  });

  test('sends a snapshot after each welcome, including changes in between, also if it is empty', async () => {
    await using bench = await startRuntimeBench();
    bench.runtime.reportContexts([tab, work]);
    let link = await bench.up();
    expect(idsOf((await next(link)).contexts)).toBe('tab work');
    const away = bench.until('disconnected');
    link.drop();
    await away;
    bench.runtime.reportContexts({ removed: ['tab'] });
    bench.runtime.reportWindows([]);
    await bench.clock.advance(500);
    link = await bench.up();
    const report = await next(link);
    expect(report).toMatchObject({ contexts: { snapshot: true }, windows: { snapshot: true, set: [], removed: [] } });
    expect(idsOf(report.contexts)).toBe('work');
    link = await bench.again(link);
    expect(idsOf((await next(link)).contexts)).toBe('work');
    expect(await link.untaken('report')).toBe(0);
  });

  test('splits what does not fit into a frame, without loss, each part within the limit', async () => {
    await using bench = await startRuntimeBench({ admit: () => ({ max_frame_bytes: 50_000 }) });
    const metadata = 'é'.repeat(8_000);
    const many = Array.from({ length: 100 }, (_, i) => ({ ...tab, contextId: `c${i}`, metadata }));
    bench.runtime.reportContexts(many);
    bench.runtime.reportWindows([window]);
    const link = await bench.up();
    const held = new Held();
    let frames = 0;
    while (held.windows.size === 0) {
      const { payload } = await link.next('report');
      expect(Buffer.byteLength(`{"type":"report"}\n${payload}`)).toBeLessThanOrEqual(50_000);
      expect(JSON.parse(payload ?? '').contexts?.snapshot).toBe(frames === 0 ? true : undefined);
      held.take(payload);
      frames++;
    }
    expect([...held.contexts.keys()]).toEqual(many.map(({ contextId }) => contextId));
    expect(frames).toBeGreaterThan(30);
    expect(bench.relay.faults).toEqual([]);
  });

  test('is delayed when it is too frequent, and then sends everything at once', async () => {
    await using bench = await startRuntimeBench();
    const link = await bench.up();
    for (let i = 0; i < 60; i++) {
      bench.runtime.reportContexts([{ ...tab, title: `${i}` }]);
      await Promise.resolve();
    }
    const report = await link.untaken('report');
    expect(report).toBe(20);
    for (let i = 0; i < report; i++) await link.next('report');
    await bench.clock.advance(100);
    expect((await next(link)).contexts?.set).toMatchObject([{ title: '59' }]);
    expect(await link.untaken('report')).toBe(0);
  });

  test('sends everything again after a temporary refusal, and nothing after a permanent one', async () => {
    await using bench = await startRuntimeBench();
    const link = await bench.up();
    bench.runtime.reportContexts([tab]);
    await next(link);
    bench.runtime.reportContexts({ set: [work] });
    await next(link);
    const refused = { type: 'refused', message: 'no', frame: 'report' } as const;
    link.send({ ...refused, code: 'rate_limited', retry_after_ms: 2_500 });
    link.send({ ...refused, code: 'rate_limited', retry_after_ms: 2_500 });
    await link.untaken('report');
    await bench.clock.advance(2_499);
    expect(await link.untaken('report')).toBe(0);
    await bench.clock.advance(1);
    const again = await next(link);
    expect([again.contexts?.snapshot, idsOf(again.contexts)]).toEqual([true, 'tab work']);
    link.send({ ...refused, code: 'invalid_argument' });
    await link.untaken('report');
    await bench.clock.advance(10_000);
    expect(await link.untaken('report')).toBe(0);
    expect(bench.errors).toHaveLength(3);
  });

  test('leaves the relay with the current state after any sequence of changes and broken links', async () => {
    const rowId = fc.constantFrom('a', 'b', 'c');
    const row = fc.record({ contextId: rowId, title: fc.constantFrom('x', 'y', null) });
    const act = fc.oneof(
      fc.record({ rows: fc.uniqueArray(row, { selector: ({ contextId }) => contextId, maxLength: 3 }) }),
      fc.record({ set: fc.uniqueArray(row, { selector: ({ contextId }) => contextId, maxLength: 2 }), removed: rowId }),
      fc.constantFrom('turn' as const, 'break' as const),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 12 }), async (acts) => {
        await using bench = await startRuntimeBench();
        let link = await bench.up();
        let held = new Held();
        const expected = new Map<string, unknown>();
        const settle = async () => {
          await bench.clock.advance(100);
          for (let left = await link.untaken('report'); left > 0; left--)
            held.take((await link.next('report')).payload);
        };
        for (const one of acts) {
          if (one === 'turn') await settle();
          else if (one === 'break') [link, held] = [await bench.again(link), new Held()];
          else if ('rows' in one) {
            expected.clear();
            for (const { contextId, title } of one.rows) expected.set(contextId, title);
            bench.runtime.reportContexts(one.rows.map((given) => ({ ...tab, ...given })));
          } else {
            const removed = one.set.some(({ contextId }) => contextId === one.removed) ? [] : [one.removed];
            for (const id of removed) expected.delete(id);
            for (const { contextId, title } of one.set) expected.set(contextId, title);
            bench.runtime.reportContexts({ set: one.set.map((given) => ({ ...tab, ...given })), removed });
          }
        }
        await settle();
        const titles = [...held.contexts.values()].map((context) => Object.entries(context as object));
        const seen = titles.map((members) => {
          const of = new Map(members);
          return [of.get('contextId'), of.get('title')];
        });
        expect(seen.sort()).toEqual([...expected].sort());
        expect(bench.relay.faults).toEqual([]);
      }),
      { numRuns: 40 },
    );
  });
});

describe('invalid reports', () => {
  const cases: readonly [string, (bench: RuntimeBench) => void, RegExp][] = [
    ['no object', ({ runtime }) => runtime.reportContexts([7 as never]), /^contexts\[0\]: an object/],
    [
      'no id',
      ({ runtime }) => runtime.reportContexts([tab, { ...tab, contextId: 'a b' }]),
      /^contexts\[1\]\.contextId: expected/,
    ],
    [
      'a missing member',
      ({ runtime }) => runtime.reportContexts([{ contextId: 'a' } as never]),
      /^contexts\[0\]\.status: required/,
    ],
    [
      'a derived status',
      ({ runtime }) => runtime.reportContexts([{ ...tab, status: 'stale' as never }]),
      /^contexts\[0\]\.status: .*active/,
    ],
    [
      'a wrong window',
      ({ runtime }) => runtime.reportContexts({ set: [{ ...tab, windowId: '' }] }),
      /^contexts\.set\[0\]\.windowId/,
    ],
    [
      'a long title',
      ({ runtime }) => runtime.reportContexts([{ ...tab, title: 'x'.repeat(257) }]),
      /^contexts\[0\]\.title: .*256/,
    ],
    [
      'large metadata',
      ({ runtime }) => runtime.reportContexts([{ ...tab, metadata: 'é'.repeat(8_192) }]),
      /^contexts\[0\]\.metadata/,
    ],
    [
      'metadata that is no JSON',
      ({ runtime }) => runtime.reportContexts([{ ...tab, metadata: 1n }]),
      /^contexts\[0\]\.metadata/,
    ],
    [
      'deep metadata',
      ({ runtime }) => runtime.reportContexts([{ ...tab, metadata: deep(191) }]),
      /^contexts\[0\]\.metadata/,
    ],
    ['the same one twice', ({ runtime }) => runtime.reportContexts([tab, work, tab]), /^contexts: tab appears twice/],
    [
      'one set and removed',
      ({ runtime }) => runtime.reportContexts({ set: [tab], removed: ['tab'] }),
      /^contexts: tab is both set and removed/,
    ],
    ['a wrong id removed', ({ runtime }) => runtime.reportContexts({ removed: ['x', '/'] }), /^contexts\.removed\[1\]/],
    ['too many contexts', ({ runtime }) => runtime.reportContexts(numbered(1001)), /^contexts: more than 1000/],
    [
      'one context too many',
      ({ runtime }) => runtime.reportContexts({ set: numbered(1000) }),
      /^contexts: more than 1000/,
    ],
    ['too many windows', ({ runtime }) => runtime.reportWindows(windows(101)), /^windows: more than 100/],
    [
      'a fraction of a tab',
      ({ runtime }) => runtime.reportWindows([{ ...window, tabCount: 1.5 }]),
      /^windows\[0\]\.tabCount: .*integer/,
    ],
    [
      'a negative count',
      ({ runtime }) => runtime.reportWindows([{ ...window, idleCount: -1 }]),
      /^windows\[0\]\.idleCount/,
    ],
    [
      'an empty type',
      ({ runtime }) => runtime.reportWindows({ set: [{ ...window, type: '' }] }),
      /^windows\.set\[0\]\.type/,
    ],
  ];

  test.each(cases)(
    '%s is refused at once by a TypeError that names it, and nothing changes',
    async (_, report, message) => {
      await using bench = await startRuntimeBench();
      const link = await bench.up();
      bench.runtime.reportContexts([work]);
      await next(link);
      expect(() => report(bench)).toThrow(TypeError);
      expect(() => report(bench)).toThrow(message);
      expect(await link.untaken('report')).toBe(0);
      const again = await bench.again(link);
      const reported = await next(again);
      expect([idsOf(reported.contexts), reported.windows]).toEqual(['work', null]);
    },
  );

  test('the maximum is accepted by the relay', async () => {
    await using bench = await startRuntimeBench();
    const link = await bench.up();
    bench.runtime.reportContexts(numbered(1000));
    bench.runtime.reportWindows(windows(100));
    const most = await next(link);
    expect([most.contexts?.set.length, most.windows?.set.length]).toEqual([1000, 100]);
    const full = { ...tab, title: 'x'.repeat(256), metadata: deep(190), contextId: 'x'.repeat(128) };
    bench.runtime.reportContexts([full, { ...tab, metadata: 'x'.repeat(16 * 1024 - 2) }]);
    const large = await next(link);
    expect(large.contexts?.set.map(({ metadata }) => metadata?.length)).toEqual([380, 16 * 1024]);
  });
});

function deep(levels: number): unknown {
  return JSON.parse('['.repeat(levels) + ']'.repeat(levels));
}

function numbered(count: number): ReportedContext[] {
  return Array.from({ length: count }, (_, i) => ({ ...tab, contextId: `c${i}` }));
}

function windows(count: number): ReportedWindow[] {
  return Array.from({ length: count }, (_, i) => ({ ...window, windowId: `w${i}` }));
}
