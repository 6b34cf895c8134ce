/** Tests that frames.schema.json accepts and refuses the same frames as the relay and its clients. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { frameSession } from '../faults/fuzz/frames.ts';
import { createLinkCaller } from '../src/clients/caller/index.ts';
import { createRuntime } from '../src/clients/runtime/index.ts';
import { CallboardError } from '../src/core/errors.ts';
import { checkedJson } from '../src/core/json.ts';
import { ActionLists, BadPayload, readAdvertisement, readDefinition, readReport } from '../src/gateway/payloads.ts';
import type { Table } from '../src/protocol/fields.ts';
import { CONTEXT, WINDOW } from '../src/protocol/report-rows.ts';
import { FRAME_SEPARATOR, isFault, parseDown, parseUp } from '../src/protocol/frame-codec.ts';
import { DOWN, UP } from '../src/protocol/frames.ts';
import { startTestRelay } from './relay/kit/test-relay.ts';

const ROOT = join(import.meta.dirname, '..');
const page = readFileSync(join(ROOT, 'PROTOCOL.md'), 'utf8');
const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false });
ajv.addSchema(JSON.parse(readFileSync(join(ROOT, 'frames.schema.json'), 'utf8')), 'frames');

type Direction = 'up' | 'down';

/** Returns whether the schema accepts a frame, as an author would use it: split, parse, validate. */
function fits(direction: Direction, text: string): boolean {
  const validate = ajv.getSchema(`frames#/$defs/${direction}`);
  if (!validate) throw new Error(`The schema has no part ${direction}.`);
  const cut = text.indexOf('\n');
  try {
    const header: unknown = JSON.parse(cut < 0 ? text : text.slice(0, cut));
    return validate(cut < 0 ? { header } : { header, payload: JSON.parse(text.slice(cut + 1)) }) === true;
  } catch {
    return false;
  }
}

describe('valid frames fit', () => {
  const examples = [...page.matchAll(/^```\n(\{"type"[\s\S]*?)\n```$/gm)].flatMap(([, block = '']) =>
    block.split(/\n(?=\{"type")/),
  );

  test.each(examples)('the example %s', (frame) => {
    expect(fits('up', frame) || fits('down', frame)).toBe(true);
  });

  test('the frames that a relay, the runtime and the caller exchange', async () => {
    await using relay = await startTestRelay();
    const seen: { direction: Direction; frame: string }[] = [];
    /** A socket that records the frames of both directions. */
    class Recorder extends WebSocket {
      constructor(url: string, protocols: string) {
        super(url, protocols);
        this.on('message', (data) => void seen.push({ direction: 'down', frame: String(data) }));
      }
      override send(text: string): void {
        for (const frame of text.split(FRAME_SEPARATOR)) seen.push({ direction: 'up', frame });
        super.send(text);
      }
    }
    const tokenOf = async (requester: string): Promise<string> => (await relay.token(requester)) ?? '';
    const url = `${relay.linkUrl.replace(/^http/, 'ws')}/connect`;
    const runtime = createRuntime({
      ...{ url, token: await tokenOf('alice'), WebSocket: Recorder },
      ...{ clientId: 'desk', clientType: 'console', metadata: { room: 12 } },
    });
    runtime.handle('echo', { summary: 'Echoes', schema: { type: 'object' }, lease: true }, async (params, call) => {
      call.progress({ half: true });
      if (params['wait'] === true) await new Promise((done) => call.signal.addEventListener('abort', done));
      if (params['fail'] === true) throw new Error('It failed.');
      call.signal.throwIfAborted();
      return params;
    });
    runtime.connect();
    await runtime.ready();
    runtime.reportContexts([{ contextId: 'flow-1', status: 'idle', ownership: 'worker' }]);
    const caller = createLinkCaller({ url, token: await tokenOf('alice:invoke'), WebSocket: Recorder });
    const to = { userId: 'alice', clientId: 'desk', action: 'echo' };
    const running = { ...to, commandId: 'c1' };
    await caller.invoke(to, { text: 'line\nfeed' });
    await caller.invoke(to, { fail: true });
    await caller.invoke(to, { wait: true }, { commandId: 'c1', waitFor: 'acknowledged' });
    const ended = caller.await(running);
    await caller.cancel(running);
    await ended;
    await expect(caller.invoke({ ...to, clientId: 'nobody' })).rejects.toThrow();
    await relay.clock.advance(20_000);
    await runtime.close();
    await caller.close();
    const types = new Set(seen.map(({ frame }) => JSON.parse(frame.split('\n')[0] ?? '').type));
    expect([...types]).toEqual(
      expect.arrayContaining([
        ...['hello', 'welcome', 'report', 'invoke', 'command', 'ack', 'progress', 'result', 'result_ack', 'outcome'],
        ...['error', 'cancel', 'receipt', 'cancelled', 'await', 'refused', 'closing', 'closed', 'ping', 'pong'],
      ]),
    );
    expect(seen.filter(({ direction, frame }) => !fits(direction, frame))).toEqual([]);
  });
});

// Compares the schema with the parsers, over frames of which one member or the payload is wrong.

/** Values that at least one kind of field refuses. */
const HOSTILE: readonly unknown[] = [
  ...[null, true, 0, -1, 1.5, 1e300, 2 ** 53, 1_000_001, '', ' ', 'a', 'a b', '.', '9lives', 'a/b', 'ä', '0\n'],
  ...['x'.repeat(64), 'x'.repeat(65), 'x'.repeat(128), 'x'.repeat(129), 'x'.repeat(257), 'x'.repeat(1025)],
  ...['x'.repeat(8193), 'browser', 'completed', 'first', 'register', 'idle', 'worker', 'open', [], {}],
];

/** Values with which a table's header is valid. */
const VALID: Readonly<Record<string, unknown>> = {
  ...{
    id: 'a1',
    name: 'lamp.set',
    user: 'alice',
    text: 'a text',
    prose: 'a text',
    token: 'eyJ',
    title: 'T',
    word: 'w',
  },
  ...{ int: 7, count: 7, bool: true, clientType: 'console', waitFor: 'admitted', stages: 'all' },
  ...{ contextStatus: 'idle', windowStatus: 'open', ownership: 'worker', siteOp: 'register' },
  ...{ pauseOp: 'pause', pauseQueued: 'keep', pauseRunning: 'leave' },
};

function validRow(table: Table): Record<string, unknown> {
  return Object.fromEntries(Object.entries(table).map(([name, kind]) => [name, VALID[kind.replace('?', '')]]));
}

/** Returns a valid row, and for each member the rows in which it is missing or hostile. */
function rowsOf(table: Table): readonly Record<string, unknown>[] {
  const row = validRow(table);
  const wrong = Object.keys(table).flatMap((name) => [
    ...HOSTILE.map((value) => ({ ...row, [name]: value })),
    Object.fromEntries(Object.entries(row).filter(([other]) => other !== name)),
  ]);
  return [row, { ...row, of_a_newer_peer: 1 }, ...wrong];
}

const without = (row: Record<string, unknown>, ...names: string[]): Record<string, unknown> =>
  Object.fromEntries(Object.entries(row).filter(([name]) => !names.includes(name)));

/** Whether the relay reads this frame: its header, the parts of a client's hello, and a payload that it reads itself. */
function relayReads(text: string): boolean {
  const frame = parseUp(text);
  if (isFault(frame) || (frame.payload !== null && checkedJson(frame.payload) === null)) return false;
  const has = (value: unknown): boolean => value !== undefined;
  if (frame.type === 'hello' && has(frame.client_id) && !(has(frame.instance_id) && has(frame.client_type)))
    return false;
  try {
    if (frame.type === 'hello' || frame.type === 'actions') readAdvertisement(frame.payload, new ActionLists());
    if (frame.type === 'report') readReport(frame.payload);
    if (frame.type === 'site') readDefinition(frame.payload === null ? null : checkedJson(frame.payload));
    return true;
  } catch (error) {
    if (error instanceof CallboardError || error instanceof BadPayload) return false;
    throw error;
  }
}

const clientReads = (text: string): boolean => parseDown(text) !== null;
const shown = (text: string): string => text.slice(0, 200);
/** Returns the frames about which the schema and the code disagree. */
const disputed = (direction: Direction, reads: (text: string) => boolean, frames: readonly string[]): string[] =>
  frames.filter((text) => fits(direction, text) !== reads(text)).map(shown);

describe('hostile variants', () => {
  test.each(Object.entries(UP))('of %s to the relay are judged as the relay does', (type, table) => {
    const payload = type === 'report' ? '\n{}' : '';
    const frames = rowsOf(table).map((row) => `${JSON.stringify({ type, ...row })}${payload}`);
    expect(disputed('up', relayReads, frames)).toEqual([]);
    expect(frames.filter((text) => !fits('up', text)).length).toBeGreaterThanOrEqual(
      5 * Object.values<string>(table).filter((kind) => kind !== 'prose').length,
    );
  });

  test.each(Object.entries(DOWN))('of %s from the relay are judged as a client does', (type, table) => {
    const payload = type === 'closed' ? '\n{"commands":["c1"]}' : '';
    const frames = rowsOf(table).map((row) => `${JSON.stringify({ type, ...row })}${payload}`);
    expect(disputed('down', clientReads, frames)).toEqual([]);
  });

  test('a payload on a frame that takes none does not fit', () => {
    for (const [type, table] of Object.entries(UP)) {
      const frame = JSON.stringify({ type, ...validRow(table) });
      expect([type, fits('up', `${frame}\n{}`)]).toEqual([type, relayReads(`${frame}\n{}`)]);
    }
    expect(fits('up', '{"type":"pong"}\n{}')).toBe(false);
    expect(fits('down', '{"type":"ping"}\n{}')).toBe(false);
    expect(fits('down', '{"type":"command","command_id":"c","action":"a","remaining_ms":1}\n[]')).toBe(false);
    expect(fits('up', '{"type":"teleport"}')).toBe(false);
    expect(fits('up', '["hello"]')).toBe(false);
  });

  test('a hello of a client without an instance or a type does not fit', () => {
    const row = { type: 'hello', ...validRow(UP.hello) };
    const frames = [without(row, 'instance_id'), without(row, 'client_type'), { ...row, instance_id: null }];
    expect(frames.map((frame) => fits('up', JSON.stringify(frame)))).toEqual([false, false, false]);
    const caller = without(row, 'client_id', 'instance_id', 'client_type');
    expect(fits('up', JSON.stringify(caller))).toBe(true);
  });

  const ACTION = { name: 'a', summary: 's', description: 'd', version: '1', checks_arguments: true, schema: true };
  const actions = [
    ...HOSTILE.flatMap((value) => [
      ...Object.keys(ACTION).map((name) => ({ ...ACTION, [name]: value })),
      ...[
        { ...ACTION, guards: value },
        { ...ACTION, guards: { lease: value } },
        { ...ACTION, metadata: value },
      ],
      ...[{ ...ACTION, effects: value }, { ...ACTION, effects: { read_only: value } }, value],
    ]),
    { summary: 'without a name' },
  ];

  test.each(['hello', 'actions'])('of the payload of %s are judged as the relay does', (type) => {
    const header = JSON.stringify({ type, token: 'eyJ' });
    const payloads = [
      ...actions.map((action) => ({ actions: [action] })),
      ...HOSTILE.flatMap((value) => [value, { actions: value }, { metadata: value }]),
      { actions: Array.from({ length: 257 }, (_, i) => ({ name: `a${i}` })) },
      { actions: Array.from({ length: 256 }, (_, i) => ({ name: `a${i}` })) },
    ];
    const frames = payloads.map((payload) => `${header}\n${JSON.stringify(payload)}`);
    expect(disputed('up', relayReads, frames)).toEqual([]);
  });

  test('of a report are judged as the relay does', () => {
    const parts = [
      ...HOSTILE.map((value) => ({ contexts: value })),
      ...HOSTILE.flatMap((value) => [{ windows: { set: value } }, { windows: { removed: [value] } }]),
      ...HOSTILE.map((value) => ({ contexts: { snapshot: value, removed: ['a'] } })),
      ...rowsOf(CONTEXT).map((row) => ({ contexts: { snapshot: true, set: [row] } })),
      ...rowsOf(WINDOW).map((row) => ({ windows: { set: [row], removed: ['w9'] } })),
    ];
    const frames = parts.map((payload) => `{"type":"report"}\n${JSON.stringify(payload)}`);
    expect(disputed('up', relayReads, [...frames, '{"type":"report"}', '{"type":"report"}\n7'])).toEqual([]);
  });

  test('of a site that the relay cannot read do not fit', () => {
    const header = '{"type":"site","ref":"r","op":"register","site_id":"board"}';
    const payloads = HOSTILE.flatMap((value) => [
      ...[value, { title: value }, { event_names: value }, { actions: value }, { actions: [value] }],
      ...[{ capability_profile: value }, { capability_profile: { sharing: value } }],
    ]);
    const frames = payloads.map((payload) => `${header}\n${JSON.stringify(payload)}`);
    // The relay checks titles and names only when it registers the site, so the schema may refuse more.
    expect(frames.filter((text) => fits('up', text) && !relayReads(text)).map(shown)).toEqual([]);
    expect(frames.filter((text) => !fits('up', text)).length).toBeGreaterThan(HOSTILE.length);
  });

  test('of the fuzzer are judged as the relay does, by their headers', () => {
    // Payloads of the fuzzer are too large or too deep, which no schema says.
    const headers = Array.from({ length: 150 }, (_, i) => frameSession(7, i, () => 'eyJ')).flatMap((session) =>
      [session.hello, ...session.frames].flatMap((frame) =>
        typeof frame === 'string' ? (frame.split('\n')[0] ?? '') : [],
      ),
    );
    const readable = headers.filter((text) => !text.includes('"report"'));
    expect(disputed('up', relayReads, readable)).toEqual([]);
    expect(readable.filter((text) => !relayReads(text)).length).toBeGreaterThan(200);
  });
});
