/** Tests the caller libraries and the runtime with a real relay. */
import { describe, expect, test } from 'vitest';
import {
  createHttpCaller,
  createLinkCaller,
  type Caller,
  type ProgressUpdate,
} from '../../src/clients/caller/index.ts';
import { ActionCancelled, createRuntime, type Handler, type Runtime } from '../../src/clients/runtime/index.ts';
import { gate, untilState } from './kit/runtime-bench.ts';
import { startRealRelay, type RealRelay } from './kit/real-relay.ts';

/** How often the action `count` reports progress. */
const REPORTS = 1000;

type ClientOptions = { readonly instanceId?: string; readonly slow?: Handler };

/** Connects a client. All its actions are registered before, so that each relay knows them once this resolves. */
async function client(relay: RealRelay, { slow, ...more }: ClientOptions = {}): Promise<Runtime> {
  const token = () => relay.token('alice', 'connect');
  const runtime = createRuntime({ url: relay.link, token, clientId: 'desk', clientType: 'console', ...more });
  runtime.handle('echo', { schema: { type: 'object', required: ['say'] } }, ({ say }) => ({ text: say }));
  runtime.handle('wait', {}, (_, { signal }) => {
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new ActionCancelled({ done: 1 })));
    });
  });
  runtime.handle('count', {}, (_, call) => {
    for (let i = 1; i <= REPORTS; i++) call.progress({ step: i });
    return 'done';
  });
  if (slow) runtime.handle('slow', {}, slow);
  runtime.connect();
  await runtime.ready();
  return runtime;
}

const callers: readonly [string, (relay: RealRelay) => Caller][] = [
  ['HTTP', ({ url, token }) => createHttpCaller({ url, token: () => token('alice', 'invoke') })],
  ['a link', ({ link, token }) => createLinkCaller({ url: link, token: () => token('alice', 'invoke') })],
];
const desk = { userId: 'alice', clientId: 'desk' };
const echo = { ...desk, action: 'echo' };

describe.each(callers)('with a real relay, a caller over %s', (_, createCaller) => {
  test('gets the result of a real client, and the same result again for the same command id', async () => {
    await using relay = await startRealRelay();
    await using _runtime = await client(relay);
    await using caller = createCaller(relay);
    const invocation = await caller.invoke<{ text: string }>(echo, { say: 'hé\n' }, { commandId: 'c1' });
    expect(invocation).toMatchObject({ outcome: 'completed', result: { text: 'hé\n' }, stage: 'terminal' });
    expect(invocation).toMatchObject({ execution: 'reported_by_client', handle: { ...desk, commandId: 'c1' } });
    expect(await caller.invoke(echo, { say: 'hé\n' }, { commandId: 'c1' })).toMatchObject({ outcome: 'completed' });
    const other = caller.invoke(echo, { say: 'else' }, { commandId: 'c1' });
    await expect(other).rejects.toMatchObject({ code: 'command_conflict' });
  });

  test("distinguishes a client's refusal from the relay's", async () => {
    await using relay = await startRealRelay();
    await using _runtime = await client(relay);
    await using caller = createCaller(relay);
    const refused = await caller.invoke(echo, {});
    expect(refused).toMatchObject({ outcome: 'failed', execution: 'refused_by_client' });
    expect(refused).toMatchObject({ error: { code: 'arguments_invalid' } });
    const absent = caller.invoke({ ...echo, clientId: 'nobody' }, {});
    await expect(absent).rejects.toMatchObject({ code: expect.stringMatching(/^not_(connected|found)$/) });
    const nothing = caller.await({ ...desk, commandId: 'never' }, { withinMs: 0 });
    await expect(nothing).rejects.toMatchObject({ code: 'not_found' });
  });

  test('waits for the acknowledgement only, cancels, and awaits the outcome', async () => {
    await using relay = await startRealRelay();
    await using _runtime = await client(relay);
    await using caller = createCaller(relay);
    const pending = await caller.invoke({ ...desk, action: 'wait' }, {}, { waitFor: 'acknowledged' });
    expect(pending).toMatchObject({ outcome: 'pending', stage: 'acknowledged', execution: 'may_have_run' });
    expect(await caller.cancel(pending.handle, 'enough')).toEqual({ handle: pending.handle, state: 'requested' });
    expect(await caller.await(pending.handle)).toMatchObject({ outcome: 'cancelled', partial: { done: 1 } });
    expect(await caller.cancel(pending.handle)).toMatchObject({ state: 'too_late' });
  });

  test('that leaves a wait does not affect the command', async () => {
    await using relay = await startRealRelay();
    const started = gate<string>();
    const go = gate();
    await using _runtime = await client(relay, {
      async slow(_params, { commandId }) {
        started.open(commandId);
        await go.opened;
        return 'done';
      },
    });
    await using caller = createCaller(relay);
    const abort = new AbortController();
    const left = caller.invoke({ ...desk, action: 'slow' }, {}, { signal: abort.signal });
    const commandId = await started.opened;
    abort.abort(new Error('gone'));
    await expect(left).rejects.toThrow('gone');
    go.open();
    expect(await caller.await({ ...desk, commandId })).toMatchObject({ outcome: 'completed', result: 'done' });
  });
});

test('a client whose link is cut sends the result over its next link', async () => {
  await using relay = await startRealRelay();
  const sockets: WebSocket[] = [];
  class Watched extends WebSocket {
    constructor(url: string, protocols: string) {
      super(url, protocols);
      sockets.push(this);
    }
  }
  const token = () => relay.token('alice', 'connect');
  const base = { url: relay.link, token, clientId: 'desk', clientType: 'console', WebSocket: Watched } as const;
  await using runtime = createRuntime({ ...base, random: () => 0 });
  const go = gate();
  const started = gate();
  let runs = 0;
  runtime.handle('slow', {}, async () => {
    runs += 1;
    started.open();
    await go.opened;
    return 'kept';
  });
  runtime.connect();
  await runtime.ready();
  await using caller = createHttpCaller({ url: relay.url, token: () => relay.token('alice', 'invoke') });
  const invoked = caller.invoke({ ...desk, action: 'slow' });
  await started.opened;
  const away = untilState(runtime, 'disconnected');
  sockets[0]?.close(3000, 'cut');
  await away;
  go.open();
  expect(await invoked).toMatchObject({ outcome: 'completed', result: 'kept' });
  expect(runtime.status).toMatchObject({ state: 'connected', welcome: { resumed: true } });
  expect(runs).toBe(1);
  expect(sockets).toHaveLength(2);
});

test('a new instance replaces the old one, which does not reconnect', async () => {
  await using relay = await startRealRelay();
  await using old = await client(relay, { instanceId: 'i-1' });
  const closed = untilState(old, 'closed');
  await using next = await client(relay, { instanceId: 'i-2' });
  expect(await closed).toMatchObject({
    state: 'closed',
    reason: 'replaced',
    message: expect.stringContaining('Give each its own'),
  });
  expect(next.status).toMatchObject({ state: 'connected', welcome: { replaced_instance_id: 'i-1' } });
});

test('a token that the relay refuses closes a client and ends a caller', async () => {
  await using relay = await startRealRelay();
  const options = { url: relay.link, token: 'nonsense', clientId: 'desk', clientType: 'web' } as const;
  await using runtime = createRuntime(options);
  runtime.connect();
  await expect(runtime.ready()).rejects.toMatchObject({ reason: 'unauthenticated' });
  await using caller = createLinkCaller({ url: relay.link, token: 'nonsense' });
  await expect(caller.invoke(echo)).rejects.toMatchObject({ code: 'unauthenticated' });
  await using http = createHttpCaller({ url: relay.url, token: 'nonsense' });
  await expect(http.invoke(echo)).rejects.toMatchObject({ code: 'unauthenticated' });
});

test.each(callers)(
  'a caller over %s receives the progress that it requested, in order, and sees how many reports it missed',
  async (_, createCaller) => {
    await using relay = await startRealRelay();
    await using _runtime = await client(relay);
    await using caller = createCaller(relay);
    const seen: ProgressUpdate[] = [];
    const counted = caller.invoke({ ...desk, action: 'count' }, {}, { onProgress: (progress) => seen.push(progress) });
    expect(await counted).toMatchObject({ outcome: 'completed', result: 'done' });
    let last = 0;
    for (const { value, number, missed } of seen) {
      expect(number).toBe(last + missed + 1);
      expect(value).toEqual({ step: number });
      last = number ?? 0;
    }
    expect(seen.length).toBeGreaterThan(1);
    expect(last).toBe(REPORTS);
  },
);
