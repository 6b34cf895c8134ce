/**
 * Gives the libraries any JavaScript value for any argument: each throws at once, with an error that names what is
 * wrong, or works, and no other call notices. CALLBOARD_TEST_VALUES sets how many values are tried, by default 1,000.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  createHttpCaller,
  createLinkCaller,
  rawJson,
  type Caller,
  type LinkStatus,
} from '../../src/clients/caller/index.ts';
import { createSiteEventPublisher } from '../../src/clients/host/index.ts';
import { LibraryError } from '../../src/clients/link/library-error.ts';
import { createLive } from '../../src/clients/live/index.ts';
import { createRuntime, SiteRefusedError, type Runtime } from '../../src/clients/runtime/index.ts';
import { CooperativeSiteBrowserClient } from '../../src/clients/site/index.ts';
import { startRealRelay, type RealRelay } from './kit/real-relay.ts';

const VALUES = Number(process.env['CALLBOARD_TEST_VALUES'] ?? 1_000);
const SEED = Number(process.env['CALLBOARD_TEST_SEED'] ?? 20_261);

let relay: RealRelay;
let token: string;
let runtime: Runtime;
let linked: Caller;
let overHttp: Caller;
const statuses: LinkStatus[] = [];
/** The text of the params of each command, as its handler received it. */
const received = new Map<string, string>();
/** What the handler of `give` returns. */
let given: unknown;
let release = (): void => {};

beforeAll(async () => {
  relay = await startRealRelay();
  token = await relay.token('alice', 'connect', 'invoke', 'host');
  runtime = createRuntime({ url: relay.link, token, clientId: 'kiosk', clientType: 'console', onError: () => {} });
  runtime.handle('echo', {}, (_params, call) => {
    received.set(call.commandId, call.paramsText);
    return rawJson(call.paramsText);
  });
  runtime.handle('give', {}, (_params, call) => {
    call.progress(given);
    return given;
  });
  runtime.handle('hold', {}, () => new Promise((done) => (release = () => done('held'))));
  runtime.onStatus((status) => statuses.push(status));
  runtime.connect();
  await runtime.ready();
  const link = `${relay.url.replace(/^http/, 'ws')}/connect`;
  linked = createLinkCaller({ url: link, token, onStatus: (status) => statuses.push(status) });
  overHttp = createHttpCaller({ url: relay.url, token, retries: 0 });
});
afterAll(async () => {
  await linked?.close();
  await overHttp?.close();
  await runtime?.close({ withinMs: 0 });
  await relay?.[Symbol.asyncDispose]();
});

/** A small generator of pseudo-random numbers (mulberry32), from 0 up to 1. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const random = randomFrom(SEED);
const pick = <T>(list: readonly [T, ...T[]]): T => list[Math.floor(random() * list.length)] ?? list[0];
const TEXTS = [
  '',
  'a',
  'lamp',
  'my kiosk',
  '..',
  '__proto__',
  'ü€',
  '🎈',
  '\ud800',
  '"\\\n\u0000\u2028',
  '\u001e',
  'x'.repeat(200),
] as const;

/** Returns a value that JSON holds exactly. */
function jsonValue(depth = 0): unknown {
  const leaf = (): unknown => pick([null, true, false, 0, -1, 1.5, 1e21, 2 ** 53, pick(TEXTS), random()]);
  if (depth > 3 || random() < 0.4) return leaf();
  const size = Math.floor(random() * 4);
  if (random() < 0.5) return Array.from({ length: size }, () => jsonValue(depth + 1));
  return jsonObject(size, depth);
}

function jsonObject(size = Math.floor(random() * 5), depth = 0): object {
  return Object.fromEntries(Array.from({ length: size }, (_, i) => [`${pick(TEXTS)}${i}`, jsonValue(depth + 1)]));
}

/** Returns any value of JavaScript. */
function anyValue(): unknown {
  const cyclic: Record<string, unknown> = {};
  cyclic['self'] = cyclic;
  class Own {
    readonly secret = 1;
  }
  return pick<() => unknown>([
    () => undefined,
    () => null,
    () => pick([0, -0, 1, -1, 1.5, Number.NaN, Infinity, -Infinity, 2 ** 31, 2 ** 53, 1e300]),
    () => pick(TEXTS),
    () => pick([0n, 10n ** 30n]),
    () => Symbol('s'),
    () => pick<unknown>([() => 1, async () => 1, class {}]),
    () => cyclic,
    () => new Map([['a', 1]]),
    () => new Set([1]),
    () => Promise.resolve(1),
    () => new Date(pick([0, Number.NaN])),
    () => new Own(),
    () => Object.create(null),
    () => ({
      toJSON() {
        throw new Error('no JSON');
      },
    }),
    () => ({
      get a() {
        throw new Error('no member');
      },
    }),
    () => new Proxy({}, {}),
    () => new Uint8Array(3),
    () => /x/,
    () => JSON.parse('['.repeat(300) + ']'.repeat(300)),
    () => JSON.parse('{"a":'.repeat(250) + '1' + '}'.repeat(250)),
    () => ({ text: 'x'.repeat(1_200_000) }),
    () => new AbortController().signal,
    () => jsonValue(),
    () => [anyValue(), anyValue()],
    () => ({ [pick(TEXTS)]: anyValue(), a: anyValue() }),
  ])();
}

/** Returns a copy of valid options in which one member has another value, or a value in place of the options. */
function spoilt(valid: object, names: readonly [string, ...string[]]): never {
  const wrong = random() < 0.2 ? anyValue() : { ...valid, [pick(names)]: anyValue() };
  // The types refuse it, as a program in JavaScript does not know.
  return wrong as never;
}

const target = { userId: 'alice', clientId: 'kiosk', action: 'echo' };
const handle = { userId: 'alice', clientId: 'kiosk', commandId: 'none' };
const caller = (): Caller => pick([linked, linked, overHttp]);
const LINK = ['url', 'token', 'onStatus', 'onError', 'WebSocket', 'clock', 'random', 'x'] as const;
const REQUEST = ['url', 'token', 'retries', 'fetch', 'clock', 'random', 'x'] as const;
const INVOKE = [
  'commandId',
  'contextId',
  'waitFor',
  'connectWithinMs',
  'respondWithinMs',
  'traceId',
  'onStage',
] as const;

/** Each gives a library one value of `anyValue`. */
const ARGUMENTS: readonly [() => unknown, ...(() => unknown)[]] = [
  () => caller().invoke(spoilt(target, ['userId', 'clientId', 'action', 'instanceId', 'x'])),
  () => caller().invoke(target, anyValue() as never),
  () => caller().invoke(target, {}, spoilt({}, [...INVOKE, 'onProgress', 'signal', 'parentSpanId', 'timeoutMs'])),
  () => caller().await(spoilt(handle, ['userId', 'clientId', 'commandId']), { withinMs: 0 }),
  () => caller().await(handle, spoilt({ withinMs: 0 }, ['waitFor', 'onStage', 'onProgress', 'signal', 'x'])),
  () => caller().cancel(spoilt(handle, ['userId', 'clientId', 'commandId'])),
  () => caller().cancel(handle, anyValue() as never),
  () => createHttpCaller(spoilt({ url: relay.url, token }, [...REQUEST, 'tracing', 'onError'])).close(),
  () => createLinkCaller(spoilt({ url: relay.link, token }, [...LINK, 'tracing'])).close(),
  () => {
    const valid = { url: relay.link, token, clientId: 'other', clientType: 'console' };
    const more = [
      'clientId',
      'clientType',
      'instanceId',
      'places',
      'metadata',
      'actions',
      'authorize',
      'approve',
    ] as const;
    return createRuntime(spoilt(valid, [...LINK, ...more])).close();
  },
  () => runtime.handle(anyValue() as never, {}, () => 1)(),
  () => runtime.handle('spare', anyValue() as never, () => 1)(),
  () => {
    const spec = [
      'summary',
      'schema',
      'jsonSchema',
      'result',
      'metadata',
      'lease',
      'timeoutMs',
      'effects',
      'x',
    ] as const;
    return runtime.handle('spare', spoilt({}, spec), () => 1)();
  },
  () => runtime.handle('spare', {}, anyValue() as never)(),
  () =>
    runtime.site(spoilt({ siteId: 's' }, ['siteId', 'title', 'eventNames', 'actions', 'capabilityProfile', 'x']))
      .registered,
  () => runtime.removeSite(anyValue() as never),
  () => runtime.reportContexts(anyValue() as never),
  () =>
    runtime.reportContexts([
      spoilt({ contextId: 'c', status: 'idle', ownership: 'worker' }, ['contextId', 'status', 'metadata']),
    ]),
  () => runtime.reportWindows(anyValue() as never),
  () => runtime.onStatus(anyValue() as never)(),
  () => createSiteEventPublisher(spoilt({ runtime, siteId: 's' }, ['runtime', 'siteId', 'fetch', 'retries', 'x'])),
  () =>
    createSiteEventPublisher({ runtime, siteId: 's', retries: 0 }).publish(
      spoilt({ name: 'n' }, ['name', 'data', 'messageId', 'x']),
    ),
  () =>
    new CooperativeSiteBrowserClient(
      spoilt({ url: relay.url, token, sessionId: 's' }, ['url', 'token', 'sessionId', 'fetch', 'x']),
    ),
  () =>
    new CooperativeSiteBrowserClient({ url: relay.url, token, sessionId: 's' }).subscribe(
      spoilt({}, ['names', 'signal', 'onStatus', 'x']),
    ),
  () => {
    const site = new CooperativeSiteBrowserClient({ url: relay.url, token, sessionId: 's' });
    return site.invoke(
      pick(['n', anyValue()]) as never,
      pick([{}, anyValue()]) as never,
      spoilt({}, ['timeoutMs', 'signal', 'commandId']),
    );
  },
  () => createLive(spoilt({ url: relay.url, token }, REQUEST)),
  () =>
    createLive({ url: relay.url, token }).subscribe(
      anyValue() as never,
      {},
      { onData() {}, signal: AbortSignal.abort() },
    ),
  () =>
    createLive({ url: relay.url, token }).connections(
      spoilt({ onChange() {}, signal: AbortSignal.abort() }, ['userId', 'status', 'limit', 'x']),
    ),
  () =>
    createLive({ url: relay.url, token }).command(spoilt(handle, ['userId', 'clientId', 'commandId']), {
      onUpdate() {},
      signal: AbortSignal.abort(),
    }),
  // The result and the progress of a handler.
  async () => {
    given = anyValue();
    const { outcome, ...answer } = await linked.invoke({ ...target, action: 'give' });
    if (outcome === 'completed') return;
    expect(answer).toMatchObject({ error: { code: 'result_unavailable' }, execution: 'reported_by_client' });
  },
];

/** Whether it says what is wrong: a TypeError, or the answer of the relay or of a library. */
function isExpected(error: unknown): boolean {
  return error instanceof TypeError || error instanceof LibraryError || error instanceof SiteRefusedError;
}

async function useOne(act: () => unknown): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (!isExpected(error)) throw error;
  }
}

/** Calls with params that are valid, and compares what the handler received with what was sent. */
async function callValid(): Promise<void> {
  const object = jsonObject();
  const text = JSON.stringify(object);
  const isRaw = random() < 0.3;
  // A number of more digits than a double holds, and white space between tokens, arrive as they are.
  const raw = isRaw ? `{ "n" : 1.00000000000000000001, "o":${text} }` : text;
  const commandId = `v-${crypto.randomUUID()}`;
  const answer = await caller().invoke(target, isRaw ? rawJson(raw) : object, { commandId });
  expect(answer.outcome).toBe('completed');
  expect(received.get(commandId)).toBe(raw);
  received.clear();
}

test(`${VALUES} values for any argument: no link is closed, and no other call notices`, async () => {
  const held = linked.invoke({ ...target, action: 'hold' }, {}, { respondWithinMs: 300_000 });
  await callValid();
  const before = statuses.length;
  let valid = 0;
  for (let n = 0; n < VALUES; n++) {
    if (n % 5 < 2) {
      await callValid();
      valid++;
    } else await useOne(pick(ARGUMENTS));
  }
  expect(valid / VALUES).toBeGreaterThanOrEqual(0.3);
  release();
  expect(await held).toMatchObject({ outcome: 'completed', result: 'held' });
  expect(statuses.slice(before)).toEqual([]);
});
