/** Tests reports of contexts and windows over a link. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CallboardError } from '../../src/core/errors.ts';
import { CLIENT_CONTEXTS, CLIENT_WINDOWS, METADATA_BYTES } from '../../src/core/limits.ts';
import { readReport } from '../../src/gateway/payloads.ts';
import { CONTEXTS_MAX, METADATA_MAX_BYTES, WINDOWS_MAX } from '../../src/protocol/report-rows.ts';
import { admin } from '../kit/core.ts';
import { caller, client, startGateway, type TestGateway, type Peer } from './kit/test-gateway.ts';

const context = { context_id: 'c1', status: 'active', ownership: 'worker' };
const window = {
  window_id: 'w1',
  ownership: 'user-owned',
  focused: true,
  type: 'normal',
  state: 'maximized',
  incognito: false,
  tab_count: 3,
  draining: false,
  status: 'open',
};

function contextsOf(...set: unknown[]): string {
  return JSON.stringify({ contexts: { set } });
}

function windowsOf(...set: unknown[]): string {
  return JSON.stringify({ windows: { set } });
}

function faultOf(payload: string | null): string {
  try {
    readReport(payload);
  } catch (error) {
    if (error instanceof CallboardError && error.code === 'invalid_argument') return error.message;
    throw error;
  }
  throw new Error('it was taken');
}

describe('the payload of a report', () => {
  test('is read completely, with unchanged metadata; null and absent members count as absent', () => {
    const metadata = '{ "b":1.0, "a":[1e2, 12345678901234567890],"a":"\\u00e9" }';
    const full = '"context_id":"a:1","status":"idle","ownership":"user-owned","window_id":"w","task_id":"t","title":""';
    const payload = ` {"contexts":{"set":[ {${full},"metadata":${metadata} } , ${JSON.stringify({
      ...context,
      window_id: null,
      title: null,
      metadata: null,
      unknown: [1],
    })}],"removed":["gone"],"more":1},"windows":{"snapshot":true,"set":[${JSON.stringify(window)}]},"x":0}`;
    expect(readReport(payload)).toEqual({
      contexts: {
        snapshot: false,
        set: [
          {
            contextId: 'a:1',
            status: 'idle',
            ownership: 'user-owned',
            windowId: 'w',
            taskId: 't',
            title: '',
            metadata,
          },
          {
            contextId: 'c1',
            status: 'active',
            ownership: 'worker',
            windowId: null,
            taskId: null,
            title: null,
            metadata: null,
          },
        ],
        removed: ['gone'],
      },
      windows: {
        snapshot: true,
        set: [
          {
            windowId: 'w1',
            ownership: 'user-owned',
            focused: true,
            type: 'normal',
            state: 'maximized',
            incognito: false,
            tabCount: 3,
            capacity: null,
            draining: false,
            status: 'open',
            workerCount: 0,
            idleCount: 0,
            busyCount: 0,
          },
        ],
        removed: [],
      },
    });
    expect(readReport('{"contexts":null}')).toEqual({ contexts: null, windows: null });
    expect(readReport('{"contexts":{"snapshot":true}}').contexts).toEqual({ snapshot: true, set: [], removed: [] });
  });

  test.each([
    [null, /^payload/],
    ['', /^payload/],
    ['{', /^payload/],
    ['[]', /^payload: an object/],
    [`{"contexts":{"set":[{"metadata":${'['.repeat(300)}${']'.repeat(300)}}]}}`, /^payload: nested deeper than 200/],
    ['{"contexts":[]}', /^contexts: an object/],
    ['{"windows":"all"}', /^windows: an object/],
    ['{"contexts":{"snapshot":"yes"}}', /^contexts\.snapshot: true or false/],
    ['{"contexts":{"set":{}}}', /^contexts\.set: an array/],
    ['{"contexts":{"removed":"c1"}}', /^contexts\.removed: an array/],
    ['{"contexts":{"removed":["a",7]}}', /^contexts\.removed\[1\]: a string/],
    ['{"windows":{"removed":["a b"]}}', /^windows\.removed\[0\]: expected 1 to 128/],
    ['{"contexts":{"snapshot":true,"removed":["a"]}}', /^contexts\.removed: a snapshot/],
    ['{"contexts":{"removed":["a","b","a"]}}', /^contexts: a appears twice/],
    [contextsOf(context, { ...context, title: 'x' }), /^contexts: c1 appears twice/],
    [JSON.stringify({ contexts: { set: [context], removed: ['c1'] } }), /^contexts: c1 appears twice/],
    [contextsOf(7), /^contexts\.set\[0\]: an object/],
    [contextsOf(context, null), /^contexts\.set\[1\]: an object/],
    [contextsOf({ ...context, context_id: undefined }), /^contexts\.set\[0\]\.context_id: required/],
    [contextsOf({ ...context, context_id: 'a/b' }), /^contexts\.set\[0\]\.context_id: expected 1 to 128/],
    [contextsOf({ ...context, status: 'stale' }), /^contexts\.set\[0\]\.status: expected one of active, idle, closed/],
    [contextsOf({ ...context, status: null }), /^contexts\.set\[0\]\.status: required/],
    [contextsOf({ ...context, ownership: 'USER_OWNED' }), /^contexts\.set\[0\]\.ownership: .*user-owned, worker/],
    [contextsOf({ ...context, window_id: 1 }), /^contexts\.set\[0\]\.window_id/],
    [contextsOf({ ...context, task_id: '' }), /^contexts\.set\[0\]\.task_id/],
    [contextsOf({ ...context, title: 'x'.repeat(257) }), /^contexts\.set\[0\]\.title: .*256/],
    [contextsOf({ ...context, title: ['x'] }), /^contexts\.set\[0\]\.title/],
    [
      contextsOf({ ...context, metadata: 'x'.repeat(METADATA_BYTES - 1) }),
      /^contexts\.set\[0\]\.metadata: at most 16384/,
    ],
    [windowsOf({ ...window, focused: 1 }), /^windows\.set\[0\]\.focused: expected true or false/],
    [windowsOf({ ...window, type: '' }), /^windows\.set\[0\]\.type: .*1 to 64/],
    [windowsOf({ ...window, state: 'x'.repeat(65) }), /^windows\.set\[0\]\.state: .*1 to 64/],
    [windowsOf({ ...window, tab_count: -1 }), /^windows\.set\[0\]\.tab_count: .*0 to 1000000/],
    [windowsOf({ ...window, tab_count: 1_000_001 }), /^windows\.set\[0\]\.tab_count/],
    [windowsOf({ ...window, capacity: 1.5 }), /^windows\.set\[0\]\.capacity/],
    [windowsOf({ ...window, worker_count: '1' }), /^windows\.set\[0\]\.worker_count/],
    [windowsOf({ ...window, status: 'stale' }), /^windows\.set\[0\]\.status: expected one of open, closed/],
    [windowsOf({ ...window, draining: undefined }), /^windows\.set\[0\]\.draining: required/],
  ])('%.70s is refused by name', (payload, expected) => {
    expect(faultOf(payload)).toMatch(expected);
  });

  test('is accepted exactly at each bound, and the documented bounds are those of the relay', () => {
    const metadata = 'x'.repeat(METADATA_BYTES - 2);
    const most = { ...context, context_id: 'x'.repeat(128), title: 'x'.repeat(256), metadata };
    expect(readReport(contextsOf(most)).contexts?.set[0]?.metadata).toHaveLength(METADATA_BYTES);
    const large = { ...window, type: 'x'.repeat(64), tab_count: 1_000_000, capacity: 0 };
    expect(readReport(windowsOf(large)).windows?.set[0]).toMatchObject({ tabCount: 1_000_000, capacity: 0 });
    expect([CONTEXTS_MAX, WINDOWS_MAX, METADATA_MAX_BYTES]).toEqual([CLIENT_CONTEXTS, CLIENT_WINDOWS, METADATA_BYTES]);
  });

  test('of any form is either read within the bounds or refused by name', () => {
    const value = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.constantFrom('worker', 'active', 'open', 'a', '__proto__', 'x'.repeat(257), -0, 1e7),
    );
    const row = fc.dictionary(
      fc.constantFrom(...Object.keys({ ...context, ...window }), 'metadata', '__proto__'),
      value,
    );
    const good = fc.record({ ...constants(context), title: fc.option(fc.string()), metadata: fc.jsonValue() });
    const rows = fc.array(fc.oneof(row, good, value), { maxLength: 4 });
    const part = fc.oneof(value, fc.record({ snapshot: value, set: rows, removed: value }, { requiredKeys: [] }));
    const payloads = fc
      .record({ contexts: part, windows: part }, { requiredKeys: [] })
      .map((one) => JSON.stringify(one));
    fc.assert(
      fc.property(fc.oneof(payloads, fc.json(), fc.string()), (payload) => {
        let report;
        try {
          report = readReport(payload);
        } catch (error) {
          expect(error).toMatchObject({ code: 'invalid_argument' });
          return;
        }
        for (const { contextId, title, status } of report.contexts?.set ?? []) {
          expect(contextId).toMatch(/^[A-Za-z0-9_.:@~-]{1,128}$/);
          expect((title ?? '').length).toBeLessThanOrEqual(256);
          expect(['active', 'idle', 'closed']).toContain(status);
        }
      }),
      { numRuns: 500 },
    );
  });
});

function constants<T extends object>(record: T) {
  return Object.fromEntries(Object.entries(record).map(([key, one]) => [key, fc.constant(one)]));
}

async function seen({ core }: TestGateway): Promise<string[]> {
  const { nodes } = await core.contexts.list(admin, {}, {});
  return nodes.map(({ clientId, contextId }) => `${clientId}/${contextId}`);
}

function say(peer: Peer, payload: unknown): Promise<void> {
  peer.send({ type: 'report' }, payload);
  return peer.sync();
}

describe('a report over a link', () => {
  test('shows contexts and windows of its client, and gets no answer', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    await say(peer, { contexts: { snapshot: true, set: [context] }, windows: { set: [window] } });
    expect(await seen(at)).toEqual(['tab/c1']);
    expect((await at.core.contexts.window(admin, 'alice', 'w1'))?.live).toEqual({ workers: 0, idle: 0, busy: 0 });
    await say(peer, { contexts: { set: [{ ...context, context_id: 'c2' }], removed: ['c1'] } });
    expect(await seen(at)).toEqual(['tab/c2']);
    expect(peer.seen('refused').filter(({ frame }) => frame === 'report')).toEqual([]);
    expect(at.counts.get('context_reports:taken')).toBe(2);
  });

  test('is refused as a whole, by name, and the link stays up', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    await say(peer, { contexts: { set: [context] } });
    peer.send({ type: 'report' }, { contexts: { snapshot: true }, windows: { set: [{ ...window, status: 'gone' }] } });
    expect(await peer.next('refused')).toMatchObject({
      code: 'invalid_argument',
      frame: 'report',
      message: 'windows.set[0].status: expected one of open, closed',
    });
    const many = Array.from({ length: CLIENT_CONTEXTS }, (_, i) => ({ ...context, context_id: `m${i}` }));
    peer.send({ type: 'report' }, { contexts: { set: many }, windows: { set: [window] } });
    expect(await peer.next('refused')).toMatchObject({ code: 'capacity_exceeded', frame: 'report' });
    expect(await seen(at)).toEqual(['tab/c1']);
    expect(await at.core.contexts.window(admin, 'alice', 'w1')).toBeNull();
    peer.send({ type: 'report' });
    expect(await peer.next('refused')).toMatchObject({ code: 'invalid_argument', frame: 'report' });
    await peer.sync();
  });

  test('of a caller alone is forbidden', async () => {
    await using at = await startGateway();
    const peer = await caller(at);
    peer.send({ type: 'report' }, { contexts: { set: [context] } });
    expect(await peer.next('refused')).toMatchObject({ code: 'forbidden', frame: 'report' });
    expect(await seen(at)).toEqual([]);
  });

  test('counts as an unsolicited frame', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    for (let i = 0; i < 210; i++) peer.send({ type: 'report' }, { contexts: { set: [{ ...context, title: `${i}` }] } });
    const refused = await peer.next('refused');
    expect(refused).toMatchObject({ code: 'rate_limited', frame: 'report' });
    expect(refused.retry_after_ms).toBeGreaterThan(0);
  });

  test('shows nothing once another instance took over, whatever the old one still reports', async () => {
    await using at = await startGateway();
    const old = await client(at);
    await say(old, { contexts: { set: [context] } });
    const next = await client(at, { instance_id: 'i2' });
    if (old.ws.readyState === old.ws.OPEN) old.send({ type: 'report' }, { contexts: { set: [context] } });
    await old.end();
    await say(next, { contexts: { snapshot: true, set: [{ ...context, context_id: 'mine' }] } });
    expect(await seen(at)).toEqual(['tab/mine']);
  });
});
