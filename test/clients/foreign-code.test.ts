/** Tests that code of the program that never returns, and addresses that do not answer, are given up and told. */
import { describe, expect, test } from 'vitest';
import { createHttpCaller, createLinkCaller } from '../../src/clients/caller/index.ts';
import { createLive } from '../../src/clients/live/index.ts';
import { createRuntime, type LinkStatus } from '../../src/clients/runtime/index.ts';
import { CooperativeSiteBrowserClient } from '../../src/clients/site/index.ts';
import { FakeClock, settle } from '../kit/clock.ts';
import { startFakeRelay } from '../kit/fake-relay.ts';
import { freePort } from '../kit/free-port.ts';
import { startRuntimeBench, untilState } from './kit/runtime-bench.ts';

const never = (): Promise<string> => new Promise(() => {});
const target = { userId: 'alice', clientId: 'desk', action: 'lamp.set' };

describe('a token function that never returns', () => {
  test('costs a client one attempt, and is told', async () => {
    const tokens = [never, async () => 'token-2'];
    const errors: unknown[] = [];
    await using bench = await startRuntimeBench({
      token: () => tokens.shift()?.() ?? 'none-left',
      onError: (error) => errors.push(error),
    });
    bench.runtime.connect();
    await bench.clock.advance(15_000);
    const { reason, message, retryInMs } = await bench.until('disconnected');
    expect(reason).toBe('token_failed');
    expect(message).toContain('The token function did not return within 15000 ms.');
    expect(errors).toEqual([new Error('The token function did not return within 15000 ms.')]);
    await bench.clock.advance(retryInMs ?? 0);
    expect((await bench.relay.link()).hello.token).toBe('token-2');
  });

  test('at a renewal is asked again, while the link stays up', async () => {
    const tokens = [async () => 'token-1', never, async () => 'token-3'];
    await using bench = await startRuntimeBench({
      token: () => tokens.shift()?.() ?? 'none-left',
      admit: () => ({ token_expires_at: bench.clock.now() + 600_000, dead_ms: 3_600_000 }),
    });
    const link = await bench.up();
    await bench.clock.advance(540_000 + 15_000);
    expect(bench.errors).toEqual([new Error('The token function did not return within 15000 ms.')]);
    await bench.clock.advance(60_000);
    expect(await link.next('auth')).toMatchObject({ token: 'token-3' });
  });

  test('ends a call over HTTP with its budget: nothing was sent', async () => {
    const clock = new FakeClock();
    const fetch = (): Promise<Response> => expect.unreachable();
    const caller = createHttpCaller({ url: 'http://relay.test', token: never, clock, fetch });
    const called = expect(caller.invoke(target, {}, { respondWithinMs: 1_000 })).rejects.toMatchObject({
      code: 'unauthenticated',
      message: expect.stringContaining('1000 ms'),
      mayHaveRun: false,
    });
    await clock.advance(1_000);
    await called;
  });

  test('makes a stream of live and one of a site wait, and tries them again', async () => {
    const clock = new FakeClock();
    let asked = 0;
    const token = (): Promise<string> => (asked++, never());
    const options = { url: 'http://relay.test', token, clock, random: () => 0.5 };
    const states: string[] = [];
    const stop = new AbortController();
    const onStatus = (status: string): void => void states.push(status);
    const following = createLive(options).subscribe(
      'subscription { x }',
      {},
      { onData: () => {}, onStatus, signal: stop.signal },
    );
    const events = new CooperativeSiteBrowserClient({ ...options, sessionId: 's' }).subscribe({
      onStatus,
      signal: stop.signal,
    });
    const next = events[Symbol.asyncIterator]().next();
    await clock.advance(20_000);
    expect(asked).toBe(4);
    expect(states.filter((status) => status === 'waiting')).toHaveLength(2);
    stop.abort();
    await clock.advance(20_000);
    await Promise.all([following, next]);
  });
});

test('a renewal that the relay refuses is tried again before the token expires', async () => {
  let n = 0;
  await using bench = await startRuntimeBench({
    token: () => `token-${++n}`,
    admit: () => ({ token_expires_at: bench.clock.now() + 600_000, dead_ms: 3_600_000 }),
  });
  const link = await bench.up();
  await bench.clock.advance(540_000);
  const { token } = await link.next('auth');
  expect(token).toBe('token-2');
  link.send({ type: 'refused', code: 'store_unavailable', message: 'later', frame: 'auth' });
  await bench.until('connected');
  await expect.poll(() => bench.errors.length).toBe(1);
  await bench.clock.advance(60_000);
  expect(await link.next('auth')).toMatchObject({ token: 'token-3' });
});

test('a fetch that never returns is given up when the budget is over, and may have run', async () => {
  const clock = new FakeClock();
  const caller = createHttpCaller({ url: 'http://relay.test', token: 't', clock, fetch: () => new Promise(() => {}) });
  const called = expect(caller.invoke(target, {}, { respondWithinMs: 1_000, commandId: 'c1' })).rejects.toMatchObject({
    code: 'unreachable',
    mayHaveRun: true,
    handle: { userId: 'alice', clientId: 'desk', commandId: 'c1' },
    message: expect.stringContaining('it may have run'),
  });
  await clock.advance(3_000);
  await called;
});

test('a check of a result that never ends is given up at the deadline', async () => {
  const validate = (): Promise<never> => new Promise(() => {});
  const result = { '~standard': { version: 1, vendor: 'own', validate } } as const;
  await using bench = await startRuntimeBench();
  bench.runtime.handle('a', { result }, () => 1);
  const link = await bench.up();
  link.command('c1', 'a', {}, 5_000);
  await link.next('ack');
  await bench.clock.advance(5_000);
  expect(await link.next('error')).toMatchObject({ command_id: 'c1', code: 'client_timeout' });
});

describe('several addresses', () => {
  test('are tried in turn by a client, with one backoff', async () => {
    await using first = await startFakeRelay();
    await using second = await startFakeRelay();
    const nowhere = `ws://127.0.0.1:${await freePort()}/connect`;
    const clock = new FakeClock();
    const states: LinkStatus[] = [];
    const base = { token: 't', clientId: 'desk', clientType: 'console', clock, random: () => 0.999 } as const;
    const runtime = createRuntime({ ...base, url: [nowhere, first.url, second.url], onStatus: (s) => states.push(s) });
    runtime.connect();
    const { retryInMs, message } = await untilState(runtime, 'disconnected');
    expect(message).toContain(nowhere);
    await clock.advance(retryInMs ?? 0);
    const link = await first.link();
    await untilState(runtime, 'connected');
    expect(runtime.url).toBe(first.url);
    const away = untilState(runtime, 'disconnected');
    link.drop();
    await clock.advance((await away).retryInMs ?? 0);
    await second.link();
    await untilState(runtime, 'connected');
    expect(runtime.url).toBe(second.url);
    const waits = states.flatMap((status) => (status.state === 'disconnected' ? [status.retryInMs] : []));
    expect(waits).toEqual([499, 999]);
    await runtime.close();
  });

  test('are tried in turn by a caller over a link', async () => {
    await using relay = await startFakeRelay();
    const clock = new FakeClock();
    const url = [`ws://127.0.0.1:${await freePort()}/connect`, relay.url];
    await using caller = createLinkCaller({ url, token: 't', clock, onStatus: () => {} });
    const called = caller.invoke(target, {}, { commandId: 'c1' });
    const linked = relay.link();
    for (let up = false; !up;) {
      await clock.advance(100);
      await settle();
      up = relay.connections > 0;
    }
    const link = await linked;
    const { ref } = await link.next('invoke');
    link.send({
      type: 'outcome',
      ref,
      command_id: 'c1',
      outcome: 'completed',
      stage: 'terminal',
      execution: 'reported_by_client',
    });
    expect(await called).toMatchObject({ outcome: 'completed' });
  });

  test('are tried in turn by a caller over HTTP, also past a relay that drains', async () => {
    const asked: string[] = [];
    const done = {
      command_id: 'c1',
      outcome: 'completed',
      stage: 'terminal',
      execution: 'reported_by_client',
      result: 1,
    };
    const fetch: typeof globalThis.fetch = async (url) => {
      const { host } = new URL(String(url));
      asked.push(host);
      if (host === 'a') throw new TypeError('fetch failed');
      if (host === 'b') return Response.json({ code: 'draining', detail: 'soon' }, { status: 503 });
      return Response.json(done);
    };
    const clock = new FakeClock();
    const caller = createHttpCaller({ url: ['http://a', 'http://b', 'http://c'], token: 't', fetch, clock });
    const called = caller.invoke(target);
    await clock.advance(5_000);
    expect(await called).toMatchObject({ outcome: 'completed', result: 1 });
    expect(asked).toEqual(['a', 'b', 'c']);
  });

  test('are an error if one of them is wrong, or there is none', () => {
    for (const url of [[], ['http://a', 'ws://b']]) expect(() => createHttpCaller({ url, token: 't' })).toThrow('url:');
  });
});
