/**
 * Tests that an agent may change between the relays of a deployment: the repeat of a lost call comes to the other relay,
 * and a cancel reaches the relay that serves the call. With one relay, both addresses are its own.
 */
import { describe, expect, it } from 'vitest';
import { startRealRelay, type RealRelay } from '../clients/kit/real-relay.ts';
import { startResettingProxy } from '../kit/tcp-proxy.ts';
import { callTool, connectClient, postText, recordOf, textOf, type Endpoint, type RawAnswer } from './kit/agents.ts';

/** How a message names its request. `session`: absent, it names none. */
type Named = { readonly id?: unknown; readonly session?: string };

/** Two addresses of the relays of a topology, and a client whose `slow` ends when `release` is called. */
type Page = AsyncDisposable & {
  readonly relay: RealRelay;
  readonly token: string;
  /** The relay that callers use, and the one to which the client is connected. */
  readonly near: Endpoint;
  readonly far: Endpoint;
  readonly state: { clicks: number; slow: number; aborted: number };
  /** Resolves once `slow` has begun so often. */
  began(times: number): Promise<void>;
  /** Lets each `slow` end, and later ones at once. */
  release(): void;
  call(at: Endpoint, name: string, named?: Named): Promise<RawAnswer>;
  /** Sends the message that cancels a call. Resolves when it was handled. */
  cancel(at: Endpoint, named?: Named): Promise<void>;
  /** Begins a session, and returns its id. */
  initialize(at: Endpoint): Promise<string>;
};

/** The id of a request, if a message names none. */
const CALL_ID = 7;

async function startPage(): Promise<Page> {
  const relay = await startRealRelay({ mcp: 'on' });
  const state = { clicks: 0, slow: 0, aborted: 0 };
  const waiting: { readonly times: number; readonly resolve: () => void }[] = [];
  const released = Promise.withResolvers<void>();
  const desk = await connectClient(relay, (runtime) => {
    runtime.handle('click', {}, () => ({ clicks: ++state.clicks }));
    runtime.handle('slow', {}, async (_, { signal }) => {
      const slow = ++state.slow;
      signal.addEventListener('abort', () => state.aborted++);
      for (const { times, resolve } of waiting) if (state.slow >= times) resolve();
      await released.promise;
      return { slow };
    });
  });
  const token = await relay.token('alice', 'invoke');
  return {
    ...{ relay, token, state },
    near: { url: relay.url, token },
    far: { url: relay.linkUrl, token },
    began(times) {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push({ times, resolve });
      if (state.slow >= times) resolve();
      return promise;
    },
    release: () => released.resolve(),
    call: (at, name, { id = CALL_ID, session } = {}) =>
      send(at, { id, method: 'tools/call', params: { name, arguments: {} } }, session),
    async cancel(at, { id = CALL_ID, session } = {}) {
      await send(at, { method: 'notifications/cancelled', params: { requestId: id } }, session);
    },
    async initialize(at) {
      const clientInfo = { name: 'raw-host', version: '3.0' };
      const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
      const { headers } = await send(at, { id: 0, method: 'initialize', params });
      return String(headers['mcp-session-id']);
    },
    async [Symbol.asyncDispose]() {
      released.resolve();
      await desk.close();
      await relay[Symbol.asyncDispose]();
    },
  };
}

function send(at: Endpoint, message: object, session?: string): Promise<RawAnswer> {
  const headers: Record<string, string> = session === undefined ? {} : { 'mcp-session-id': session };
  return postText(at, JSON.stringify({ jsonrpc: '2.0', ...message }), headers);
}

/** How many calls are cut, at different bytes. */
const CUTS = 12;

describe('the repeat of a lost call at the other relay', () => {
  it('causes no second run, wherever the answer was cut, and the next equal call runs', async () => {
    await using page = await startPage();
    const { relay, state, near, far, token } = page;
    await using proxy = await startResettingProxy(relay.url);
    const cut = { url: proxy.url, token };
    await callTool(cut, 'click');
    const whole = proxy.received;
    for (let n = 1; n <= CUTS; n++) {
      const before = state.clicks;
      proxy.resetAfter(Math.floor((whole * n) / CUTS));
      await callTool(cut, 'click').catch(() => null);
      proxy.resetAfter(Infinity);
      expect(state.clicks).toBe(before + 1);
      const { result } = await callTool(far, 'click');
      expect(textOf(result)).toContain('This call did not run the action again');
      expect(textOf(result)).toContain(`"clicks":${before + 1}`);
      expect(state.clicks).toBe(before + 1);
      for (const at of [near, far]) await callTool(at, 'click');
      expect(state.clicks).toBe(before + 3);
    }
  });

  it('waits for the lost call that still runs', async () => {
    await using page = await startPage();
    const { state, near, far } = page;
    const hungUp = new AbortController();
    const lost = callTool(near, 'slow', {}, { signal: hungUp.signal }).catch(() => null);
    await page.began(1);
    hungUp.abort();
    expect(await lost).toBeNull();
    await expect.poll(() => state.aborted).toBe(1);
    const repeat = callTool(far, 'slow');
    page.release();
    expect(textOf((await repeat).result)).toContain('"slow":1');
    expect(state.slow).toBe(1);
  });

  it('gets the answer once: of two repeats, one at each relay, the other one runs or gets the same end', async () => {
    await using page = await startPage();
    const { state, near, far } = page;
    await using proxy = await startResettingProxy(page.relay.url);
    proxy.resetAfter(0);
    await callTool({ ...near, url: proxy.url }, 'click').catch(() => null);
    expect(state.clicks).toBe(1);
    const said = (await Promise.all([near, far].map((at) => callTool(at, 'click')))).map(({ result }) =>
      textOf(result),
    );
    const repeats = said.filter((text) => text.includes('did not run the action again'));
    expect(repeats.length).toBeGreaterThanOrEqual(1);
    expect(state.clicks).toBe(1 + 2 - repeats.length);
  });
});

describe('a cancel without a session', () => {
  const finish = async (page: Page, calls: readonly Promise<unknown>[]): Promise<void> => {
    page.release();
    await Promise.all(calls);
  };

  it.each(['the same', 'the other'])('at %s relay reaches the only running call of its id', async (which) => {
    await using page = await startPage();
    const { state, near, far } = page;
    const call = page.call(near, 'slow');
    await page.began(1);
    const other = page.call(far, 'slow', { id: 'another' });
    await page.began(2);
    await page.cancel(which === 'the same' ? near : far);
    await expect.poll(() => state.aborted).toBe(1);
    await finish(page, [call, other]);
    expect(state).toMatchObject({ slow: 2, aborted: 1 });
  });

  it('cancels nothing if two running calls have its id, and then nobody has evidence', async () => {
    await using page = await startPage();
    const { relay, state, near, far } = page;
    const calls = [near, far].map((at) => page.call(at, 'slow'));
    await page.began(2);
    for (const at of [near, far]) await page.cancel(at);
    page.release();
    for (const call of calls) {
      const { result } = await call;
      expect(textOf(result)).not.toContain('did not run');
      expect(await recordOf(relay.callboard.core, result)).toMatchObject({
        outcome: 'completed',
        cancelRequestedAt: null,
      });
    }
    expect(state).toMatchObject({ slow: 2, aborted: 0 });
    await page.call(near, 'slow');
    expect(state.slow).toBe(3);
  });

  it('cancels nothing if no running call has its id', async () => {
    await using page = await startPage();
    const { relay, state, near, far } = page;
    const call = page.call(near, 'slow');
    await page.began(1);
    for (const at of [near, far]) await page.cancel(at, { id: 'unknown' });
    await finish(page, [call]);
    expect(await recordOf(relay.callboard.core, (await call).result)).toMatchObject({ cancelRequestedAt: null });
    expect(state).toMatchObject({ slow: 1, aborted: 0 });
    for (const at of [near, far]) await page.cancel(at);
    await page.call(far, 'slow');
    expect(state.slow).toBe(2);
  });

  it('does not reach a call of a session, and one of another user reaches none', async () => {
    await using page = await startPage();
    const { relay, state, near, far } = page;
    const session = await page.initialize(near);
    const call = page.call(near, 'slow', { session });
    await page.began(1);
    await page.cancel(far);
    await page.cancel({ url: far.url, token: await relay.token('bob', 'invoke') }, { session });
    await finish(page, [call]);
    expect(await recordOf(relay.callboard.core, (await call).result)).toMatchObject({ cancelRequestedAt: null });
    expect(state.aborted).toBe(0);
  });
});

it('a cancel of a session reaches its call at the other relay, and no call of another session', async () => {
  await using page = await startPage();
  const { state, near, far } = page;
  const [one, two] = [await page.initialize(near), await page.initialize(far)];
  expect(one).not.toBe(two);
  const calls = [page.call(near, 'slow', { session: one }), page.call(near, 'slow', { session: two })];
  await page.began(2);
  await page.cancel(far, { session: one });
  await expect.poll(() => state.aborted).toBe(1);
  page.release();
  await Promise.all(calls);
  expect(state).toMatchObject({ slow: 2, aborted: 1 });
});
