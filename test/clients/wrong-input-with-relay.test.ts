/** Tests that wrong input of one call is refused where it is made, and costs no other call of the same caller. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  createHttpCaller,
  createLinkCaller,
  rawJson,
  type Caller,
  type InvokeOptions,
  type LinkStatus,
} from '../../src/clients/caller/index.ts';
import { createRuntime, type Runtime } from '../../src/clients/runtime/index.ts';
import { startRealRelay, type RealRelay } from './kit/real-relay.ts';

let relay: RealRelay;
let runtime: Runtime;
let linked: Caller;
let overHttp: Caller;
const statuses: LinkStatus[] = [];
/** What `call.progress` returned. */
const reported: boolean[] = [];
const gates = new Map<string, () => void>();

beforeAll(async () => {
  relay = await startRealRelay();
  const token = await relay.token('alice', 'connect', 'invoke');
  runtime = createRuntime({ url: relay.link, token, clientId: 'kiosk', clientType: 'console' });
  runtime.handle(
    'held',
    {},
    (_params, { commandId }) => new Promise((done) => gates.set(commandId, () => done('held'))),
  );
  runtime.handle('echo', {}, (params) => params);
  runtime.handle('wrap', {}, (params, call) => {
    reported.push(call.progress({ at: { of: { params } } }));
    return { ok: true, task: { input: params } };
  });
  runtime.connect();
  await runtime.ready();
  linked = createLinkCaller({
    url: relay.url.replace(/^http/, 'ws') + '/connect',
    token,
    onStatus: (s) => statuses.push(s),
  });
  overHttp = createHttpCaller({ url: relay.url, token, retries: 0 });
});
afterAll(async () => {
  await linked?.close();
  await overHttp?.close();
  await runtime?.close({ withinMs: 0 });
  await relay?.[Symbol.asyncDispose]();
});

const target = { userId: 'alice', clientId: 'kiosk', action: 'echo' };
const nested = (levels: number): object => JSON.parse('{"a":'.repeat(levels - 1) + '{}' + '}'.repeat(levels - 1));

type Wrong = readonly [what: string, given: object, member: string];
/** Each differs from a valid call in one value, which the error must name. */
const TARGETS: readonly Wrong[] = [
  ['a client id with a space', { clientId: 'my kiosk' }, 'clientId'],
  ['an empty client id', { clientId: '' }, 'clientId'],
  ['no client id', { clientId: undefined }, 'clientId'],
  ['a client id that is too long', { clientId: 'x'.repeat(129) }, 'clientId'],
  ['a client id that vanishes from paths', { clientId: '..' }, 'clientId'],
  ['an empty user id', { userId: '' }, 'userId'],
  ['no user id', { userId: undefined }, 'userId'],
  ['no action', { action: undefined }, 'action'],
  ['an action that is no name', { action: '9 lives' }, 'action'],
  ['a wrong instance id', { instanceId: 'a b' }, 'instanceId'],
];
const OPTIONS: readonly Wrong[] = [
  ['a wrong command id', { commandId: 'a/b' }, 'commandId'],
  ['a command id that is a number', { commandId: 5 }, 'commandId'],
  ['a wrong context id', { contextId: '.' }, 'contextId'],
  ['an unknown stage', { waitFor: 'done' }, 'waitFor'],
  ['a fraction of a millisecond', { respondWithinMs: 1500.5 }, 'respondWithinMs'],
  ['too short a time', { respondWithinMs: 999 }, 'respondWithinMs'],
  ['a time without end', { respondWithinMs: Infinity }, 'respondWithinMs'],
  ['a time that is no number', { connectWithinMs: Number.NaN }, 'connectWithinMs'],
  ['a negative time', { connectWithinMs: -1 }, 'connectWithinMs'],
  ['a time as a text', { connectWithinMs: '5' }, 'connectWithinMs'],
  ['a trace id that is too long', { traceId: 'x'.repeat(257) }, 'traceId'],
  ['a span id with a control character', { parentSpanId: 'a\nb' }, 'parentSpanId'],
];
const cyclic: Record<string, unknown> = {};
cyclic['self'] = cyclic;
const PARAMS: readonly (readonly [what: string, params: unknown, code?: string])[] = [
  ['nested too deeply', nested(201), 'invalid_argument'],
  ['of 1.1 MB', { x: 'x'.repeat(1_100_000) }, 'payload_too_large'],
  ['of 5 MB', { x: 'x'.repeat(5_000_000) }, 'payload_too_large'],
  ['of 400,000 characters of three bytes', { x: '€'.repeat(400_000) }, 'payload_too_large'],
  ['that are a list', [1]],
  ['that are null', null],
  ['that are a text', rawJson('"text"')],
  ['that are cyclic', cyclic],
  ['with a bigint', { x: 1n }],
];

describe.each([
  ['over a link', () => linked],
  ['over HTTP', () => overHttp],
] as const)('wrong input %s', (_how, callerOf) => {
  test.each(TARGETS)('%s is refused by its name', async (_what, wrong, member) => {
    await expect(callerOf().invoke({ ...target, ...wrong })).rejects.toMatchObject({
      name: 'TypeError',
      message: expect.stringContaining(member),
    });
  });

  test.each(OPTIONS)('%s is refused by its name', async (_what, wrong, member) => {
    await expect(callerOf().invoke(target, {}, wrong as InvokeOptions)).rejects.toMatchObject({
      name: 'TypeError',
      message: expect.stringContaining(member),
    });
  });

  test.each(PARAMS)('params %s are refused at once', async (_what, params, code) => {
    await expect(callerOf().invoke(target, params as object)).rejects.toMatchObject({
      ...(code === undefined ? { name: 'TypeError' } : { name: 'CallerError', code }),
      message: expect.stringContaining('params'),
    });
  });

  test('of an await and of a cancel is refused by its name', async () => {
    const handle = { userId: 'alice', clientId: 'kiosk', commandId: 'c1' };
    const wrongs = [{ withinMs: Infinity }, { withinMs: 600_001 }, { waitFor: 'done' as 'completed' }];
    for (const wrong of wrongs) await expect(callerOf().await(handle, wrong)).rejects.toThrow(TypeError);
    await expect(callerOf().await({ ...handle, commandId: '..' })).rejects.toThrow(TypeError);
    const reason = 'x'.repeat(1025);
    await expect(callerOf().cancel(handle, reason)).rejects.toThrow(TypeError);
  });
});

test('all of them together leave the other calls of the link alone', async () => {
  const commandId = `held-${crypto.randomUUID()}`;
  const held = linked.invoke({ ...target, action: 'held' }, {}, { commandId });
  await expect.poll(() => gates.has(commandId)).toBe(true);
  const before = statuses.length;
  const wrong = [
    ...TARGETS.map(([, given]) => linked.invoke({ ...target, ...given })),
    ...OPTIONS.map(([, given]) => linked.invoke(target, {}, given as InvokeOptions)),
    ...PARAMS.map(([, params]) => linked.invoke(target, params as object)),
  ];
  for (const one of await Promise.allSettled(wrong)) expect(one.status).toBe('rejected');
  expect(await linked.invoke(target, { n: 1 })).toMatchObject({ outcome: 'completed', result: { n: 1 } });
  gates.get(commandId)?.();
  expect(await held).toMatchObject({ outcome: 'completed', result: 'held' });
  expect(statuses.slice(before)).toEqual([]);
});

test.each([
  ['over a link', () => linked],
  ['over HTTP', () => overHttp],
] as const)('params and a result of the greatest depth arrive %s', async (_how, callerOf) => {
  const deepest = nested(200);
  expect(await callerOf().invoke(target, deepest)).toMatchObject({ outcome: 'completed', result: deepest });
});

test('a handler that returns its params in an envelope loses results that become too deep, and no link', async () => {
  const call = (levels: number) => linked.invoke({ ...target, action: 'wrap' }, nested(levels));
  for (let i = 0; i < 6; i++)
    expect(await call(199)).toMatchObject({
      ...{ outcome: 'failed', execution: 'reported_by_client' },
      error: { code: 'result_unavailable' },
    });
  expect(reported).toEqual(reported.map(() => false));
  expect(await call(197)).toMatchObject({ outcome: 'completed', result: { ok: true, task: { input: nested(197) } } });
  expect(reported.at(-1)).toBe(true);
  expect(runtime.status.state).toBe('connected');
});
