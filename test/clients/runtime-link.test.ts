/** Tests how a runtime reconnects, and what it does for each close code. */
import { describe, expect, test } from 'vitest';
import { createRuntime, LinkClosedError, type Call } from '../../src/clients/runtime/index.ts';
import { backoffMs, renewInMs } from '../../src/clients/link/reconnect.ts';
import { CLOSE, type CloseReason, reconnectAfter } from '../../src/protocol/codes.ts';
import { FakeClock, settle } from '../kit/clock.ts';
import { startFakeRelay, type FakeLink } from '../kit/fake-relay.ts';
import { gate, json, startRuntimeBench, untilState } from './kit/runtime-bench.ts';

describe('the delay before a reconnect', () => {
  test('is fully random below a bound that doubles up to 30 s', () => {
    const bounds = (random: number) =>
      [0, 1, 2, 5, 6, 50, 5_000].map((n) => backoffMs(n, { baseMs: 500, capMs: 30_000, random: () => random }));
    expect(bounds(0)).toEqual([0, 0, 0, 0, 0, 0, 0]);
    expect(bounds(0.5)).toEqual([250, 500, 1_000, 8_000, 15_000, 15_000, 15_000]);
    expect(bounds(1 - Number.EPSILON)).toEqual([499, 999, 1_999, 15_999, 29_999, 29_999, 29_999]);
  });

  test('grows while nothing answers, and resets only after a stable link', async () => {
    await using bench = await startRuntimeBench({ random: () => 0.5 });
    let link = await bench.up();
    const waits: (number | null)[] = [];
    for (const upMs of [0, 0, 0, 10_000, 0]) {
      await bench.clock.advance(upMs);
      const away = bench.until('disconnected');
      link.drop();
      const { retryInMs, reason } = await away;
      expect(reason).toBe('connection_lost');
      waits.push(retryInMs);
      await bench.clock.advance(retryInMs ?? 0);
      link = await bench.up();
    }
    expect(waits).toEqual([250, 500, 1_000, 250, 500]);
    expect(link.hello).toMatchObject({
      client_id: 'desk',
      instance_id: 'i-1',
      client_type: 'console',
      token: 'token-1',
    });
  });

  test('is at least what the relay requests in bye', async () => {
    await using bench = await startRuntimeBench({ random: () => 0.5 });
    const link = await bench.up();
    const away = bench.until('disconnected');
    link.bye('draining', 5_000);
    expect(await away).toEqual({
      state: 'disconnected',
      reason: 'draining',
      message: `The link to ${bench.relay.url} ended: draining. (docs/troubleshooting.md#draining)`,
      retryInMs: 5_250,
    });
    await bench.clock.advance(5_249);
    expect(bench.relay.connections).toBe(1);
    await bench.clock.advance(1);
    await bench.relay.link();
  });

  test('also applies after a connection that was never welcomed', async () => {
    await using bench = await startRuntimeBench({ admit: () => 'silence' });
    bench.runtime.connect();
    await bench.relay.link();
    const away = bench.until('disconnected');
    await bench.clock.advance(15_000);
    expect(await away).toMatchObject({ reason: 'connect_timeout' });
  });
});

describe('the close table', () => {
  const reasons = Object.keys(CLOSE).filter((reason): reason is CloseReason => reason in CLOSE);

  for (const how of ['bye', 'code'] as const) {
    test.each(reasons)(`is followed for %s, received by ${how}`, async (reason) => {
      await using bench = await startRuntimeBench();
      const link = await bench.up();
      const over = Promise.race([bench.until('closed'), bench.until('disconnected')]);
      if (how === 'bye') link.bye(reason);
      else link.close(CLOSE[reason]);
      const stays = reconnectAfter(reason) !== 'yes';
      expect(await over).toMatchObject({ state: stays ? 'closed' : 'disconnected', reason });
      await bench.clock.advance(120_000);
      if (stays) expect(bench.relay.connections).toBe(1);
      else await bench.relay.link();
    });
  }

  test('is overridden by bye', async () => {
    await using bench = await startRuntimeBench();
    const link = await bench.up();
    const closed = bench.until('closed');
    link.send({ type: 'bye', code: 4451, reason: 'operator', reconnect: false });
    expect(await closed).toMatchObject({ state: 'closed', reason: 'operator' });
  });

  test('makes ready() reject once closed permanently, and resolve while a reconnect is possible', async () => {
    await using bench = await startRuntimeBench({ admit: () => 'forbidden' });
    const ready = bench.runtime.ready();
    bench.runtime.connect();
    await expect(ready).rejects.toThrow(LinkClosedError);
    await expect(bench.runtime.ready()).rejects.toMatchObject({ reason: 'forbidden' });
  });
});

describe('tokens', () => {
  test('that the relay refuses are replaced by another one, and never tried again', async () => {
    const tokens = ['old', 'old', 'new'];
    await using bench = await startRuntimeBench({
      token: () => tokens.shift() ?? 'none left',
      admit: (() => {
        let first = true;
        return () => (first ? ((first = false), 'unauthenticated' as const) : {});
      })(),
    });
    bench.runtime.connect();
    const link = await bench.relay.link();
    expect(link.hello.token).toBe('old');
    await bench.until('disconnected');
    await bench.clock.advance(10_000);
    const next = await bench.relay.link();
    expect(next.hello.token).toBe('new');
    expect(bench.relay.connections).toBe(2);
  });

  test('are renewed before they expire, over the same link', async () => {
    let n = 0;
    const clock = new FakeClock();
    await using bench = await startRuntimeBench({
      clock,
      token: async () => `token-${++n}`,
      admit: () => ({ token_expires_at: clock.now() + 600_000, dead_ms: 3_600_000 }),
    });
    bench.runtime.connect();
    const link = await bench.relay.link();
    await bench.runtime.ready();
    await clock.advance(539_999);
    expect(await link.untaken('auth')).toBe(0);
    await clock.advance(1);
    expect(await link.next('auth')).toMatchObject({ token: 'token-2' });
    link.send({ type: 'renewed', token_expires_at: clock.now() + 100_000 });
    await link.untaken('auth');
    await clock.advance(90_000);
    expect(await link.next('auth')).toMatchObject({ token: 'token-3' });
    expect(bench.relay.connections).toBe(1);
  });

  test('are not requested in a storm, whatever the clocks say', () => {
    expect(renewInMs(0, 1_000_000)).toBe(5_000);
    expect(renewInMs(1_001_000, 1_000_000)).toBe(5_000);
    expect(renewInMs(1e15, 0)).toBeLessThan(2 ** 31);
  });

  test('that cannot be obtained leave the runtime disconnected and retrying', async () => {
    let broken = true;
    await using bench = await startRuntimeBench({
      token: () => {
        if (broken) throw new Error('no token service');
        return 'fine';
      },
    });
    bench.runtime.connect();
    expect(await bench.until('disconnected')).toMatchObject({ reason: 'token_failed' });
    expect(bench.errors).toHaveLength(1);
    broken = false;
    await bench.clock.advance(500);
    expect((await bench.relay.link()).hello.token).toBe('fine');
  });
});

describe('the heartbeat', () => {
  test('answers pings, also while a handler is busy', async () => {
    await using bench = await startRuntimeBench();
    bench.runtime.handle('busy', {}, () => new Promise(() => {}));
    const link = await bench.up();
    link.command('c1', 'busy');
    await link.next('ack');
    link.send({ type: 'ping' });
    await link.next('pong');
  });

  test('gives up a silent socket after dead_ms, and any frame counts', async () => {
    await using bench = await startRuntimeBench();
    const link = await bench.up();
    await bench.clock.advance(50_000);
    expect(await link.untaken('ack')).toBe(0);
    await bench.clock.advance(59_999);
    expect(bench.runtime.status.state).toBe('connected');
    await bench.clock.advance(1);
    expect(bench.runtime.status).toMatchObject({ state: 'disconnected', reason: 'heartbeat_lost' });
  });

  test('ignores frames that only a newer relay sends', async () => {
    await using bench = await startRuntimeBench();
    bench.runtime.handle('a', {}, () => 1);
    const link = await bench.up();
    for (const text of ['', 'null', '{}', '{"type":"new"}', '{"type":"command"}', '[1]\n2']) link.sendText(text);
    link.command('c1', 'a');
    await link.next('result');
  });
});

describe('the result outbox', () => {
  test('sends an end again after a lost link, until it is acknowledged', async () => {
    await using bench = await startRuntimeBench();
    bench.runtime.handle('a', {}, ({ n }) => n);
    let link = await bench.up();
    link.command('c1', 'a', { n: 1 });
    link.command('c2', 'a', { n: 2 });
    await link.next('result');
    await link.next('result');
    link.acknowledge('c1');
    await link.untaken('result');
    link = await bench.again(link);
    expect(await link.next('result')).toMatchObject({ command_id: 'c2', payload: '2' });
    expect(await link.untaken('result')).toBe(0);
    link.acknowledge('c2');
    await link.untaken('result');
    expect(bench.runtime.unacknowledged).toBe(0);
    link = await bench.again(link);
    expect(await link.untaken('result')).toBe(0);
  });

  test('keeps an end without a link: the handler runs on, and the same instance sends its end later', async () => {
    await using bench = await startRuntimeBench();
    const go = gate();
    bench.runtime.handle('slow', {}, () => go.opened.then(() => 'late but true'));
    const link = await bench.up();
    link.command('c1', 'slow');
    await link.next('ack');
    const away = bench.until('disconnected');
    link.drop();
    await away;
    go.open();
    await settle();
    expect(bench.runtime).toMatchObject({ running: 0, unacknowledged: 1 });
    await bench.clock.advance(500);
    const next = await bench.up();
    expect(next.hello.instance_id).toBe('i-1');
    expect(json((await next.next('result')).payload)).toBe('late but true');
  });

  test('holds 256 ends and 1 MiB, and reports which it dropped', async () => {
    await using bench = await startRuntimeBench();
    bench.runtime.handle('a', {}, ({ size }) => 'x'.repeat(Number(size)));
    const link = await bench.up();
    // The commands run one after the other, because the runtime refuses commands above its limit of running ones.
    for (let n = 0; n < 258; n++) {
      link.command(`c${n}`, 'a', { size: 1 });
      await link.next('result');
    }
    expect(bench.runtime.unacknowledged).toBe(256);
    expect(bench.dropped).toEqual(['c0 outbox_full', 'c1 outbox_full']);
    link.command('big', 'a', { size: 1024 * 1024 - 200 });
    await link.next('result');
    expect(bench.runtime.unacknowledged).toBeLessThan(5);
    expect(bench.dropped).toContain('c250 outbox_full');
  });

  test('is sent again in portions, so that a full outbox stays below the rate of a link', async () => {
    await using bench = await startRuntimeBench();
    bench.runtime.handle('a', {}, () => 1);
    const link = await bench.up();
    for (let n = 0; n < 150; n++) link.command(`c${n}`, 'a');
    for (let n = 0; n < 150; n++) await link.next('result');
    const next = await bench.again(link);
    for (let n = 0; n < 100; n++) next.acknowledge((await next.next('result')).command_id);
    expect(await next.untaken('result')).toBe(0);
    await bench.clock.advance(1_000);
    for (let n = 100; n < 150; n++) expect((await next.next('result')).command_id).toBe(`c${n}`);
    expect(await next.untaken('result')).toBe(0);
  });

  test('drops an end that the relay refuses permanently, and keeps one that it refuses temporarily', async () => {
    await using bench = await startRuntimeBench();
    bench.runtime.handle('a', {}, () => 1);
    const link = await bench.up();
    link.command('c1', 'a');
    await link.next('result');
    const refused = { type: 'refused', message: 'no', frame: 'result', command_id: 'c1' } as const;
    link.send({ ...refused, code: 'store_unavailable', retry_after_ms: 3_000 });
    await link.untaken('ack');
    await bench.clock.advance(2_999);
    expect(await link.untaken('result')).toBe(0);
    await bench.clock.advance(1);
    await link.next('result');
    link.send({ ...refused, code: 'invalid_argument' });
    await link.untaken('ack');
    expect(bench.runtime.unacknowledged).toBe(0);
    expect(bench.dropped).toEqual(['c1 invalid_argument']);
  });
});

describe('a command that arrives twice', () => {
  test('does not run twice: a running one continues, and the end of an ended one is sent again', async () => {
    await using bench = await startRuntimeBench();
    let runs = 0;
    const go = gate();
    bench.runtime.handle('once', {}, () => {
      runs += 1;
      return go.opened.then(() => 'done');
    });
    let link = await bench.up();
    link.command('c1', 'once');
    await link.next('ack');
    link = await bench.again(link);
    link.command('c1', 'once');
    await link.next('ack');
    go.open();
    await link.next('result');
    link.acknowledge('c1');
    link.command('c1', 'once');
    expect(json((await link.next('result')).payload)).toBe('done');
    expect(runs).toBe(1);
    expect(bench.runtime.unacknowledged).toBe(1);
  });

  test('is recognized among the last 1000, without its end if that would need too much memory', async () => {
    await using bench = await startRuntimeBench();
    const runs = new Map<string, number>();
    bench.runtime.handle('count', {}, ({ size }, { commandId }) => {
      runs.set(commandId, (runs.get(commandId) ?? 0) + 1);
      return 'x'.repeat(Number(size ?? 0));
    });
    const link = await bench.up();
    async function run(commandId: string, params?: object): Promise<void> {
      link.command(commandId, 'count', params);
      await link.next('result');
      link.acknowledge(commandId);
    }
    await run('big-1', { size: 800_000 });
    await run('big-2', { size: 800_000 });
    link.command('big-1', 'count', { size: 800_000 });
    expect(await link.next('error')).toMatchObject({ command_id: 'big-1', code: 'result_unavailable' });
    link.acknowledge('big-1');
    for (let n = 0; n < 998; n++) await run(`c${n}`);
    await run('c0');
    expect(runs.get('c0')).toBe(1);
    expect(runs.get('big-1')).toBe(1);
    for (let n = 998; n < 1_100; n++) await run(`c${n}`);
    await run('c1');
    expect(runs.get('c1')).toBe(2);
  });
});

describe('closing', () => {
  test('is bounded: it aborts running commands, and reports which ends are lost', async () => {
    await using bench = await startRuntimeBench();
    const call = gate<Call>();
    bench.runtime.handle('stuck', {}, (_, given) => {
      call.open(given);
      return new Promise(() => {});
    });
    bench.runtime.handle('quick', {}, () => 1);
    const link = await bench.up();
    link.command('c1', 'stuck');
    link.command('c2', 'quick');
    await link.next('result');
    const { signal } = await call.opened;
    const closing = bench.runtime.close({ withinMs: 1_000 });
    await bench.clock.advance(1_000);
    await closing;
    expect(signal.aborted).toBe(true);
    expect(await link.next('error')).toMatchObject({ command_id: 'c1', code: 'handler_failed' });
    expect(bench.dropped).toEqual(['c2 closed', 'c1 closed']);
    await link.closed;
  });

  test('because another instance took over aborts the handlers: their ends no longer count', async () => {
    await using bench = await startRuntimeBench();
    const call = gate<Call>();
    bench.runtime.handle('wait', {}, (_, given) => {
      call.open(given);
      return new Promise((_resolve, reject) =>
        given.signal.addEventListener('abort', () => reject(given.signal.reason)),
      );
    });
    const link = await bench.up();
    link.command('c1', 'wait');
    await call.opened;
    const closed = bench.until('closed');
    link.send({ type: 'replaced', instance_id: 'i-2' });
    link.bye('replaced');
    expect(await closed).toMatchObject({ reason: 'replaced' });
    await settle();
    expect(bench.dropped).toEqual(['c1 closed']);
    expect(bench.runtime.running).toBe(0);
  });

  test('by await using works, also before the first connection', async () => {
    await using relay = await startFakeRelay();
    const options = { url: relay.url, token: 't', clientId: 'c', clientType: 'web' } as const;
    {
      await using runtime = createRuntime(options);
      expect(runtime.instanceId).toMatch(/^i-[0-9a-f]{32}$/);
    }
    const closed: string[] = [];
    {
      await using runtime = createRuntime({ ...options, onStatus: ({ state }) => closed.push(state) });
      runtime.connect();
      await untilState(runtime, 'connected');
    }
    expect(closed).toEqual(['connecting', 'connected', 'closed']);
  });
});

test('callbacks that throw or reject break nothing, and onError receives their errors', async () => {
  const errors: unknown[] = [];
  await using bench = await startRuntimeBench({
    // oxlint-disable-next-line typescript/no-misused-promises -- a program may pass such a callback by mistake
    onStatus: async () => {
      throw new Error('status');
    },
    onDrop: () => {
      throw new Error('drop');
    },
    onError: (error) => {
      errors.push(error);
      throw error;
    },
  });
  bench.runtime.handle('a', {}, () => 1);
  bench.runtime.onStatus(() => {
    throw new Error('listener');
  });
  const link: FakeLink = await bench.up();
  link.command('c1', 'a');
  await link.next('result');
  link.send({ type: 'refused', code: 'not_found', message: 'no', frame: 'result', command_id: 'c1' });
  await link.untaken('ack');
  await settle();
  const messages = new Set(errors.map((error) => (error instanceof Error ? error.message : '')));
  expect(messages).toEqual(new Set(['status', 'listener', 'drop', 'The relay refused result: not_found: no']));
});

test('invalid options are refused at once', () => {
  const options = { url: 'ws://127.0.0.1:1/connect', token: 't', clientId: 'c', clientType: 'web' } as const;
  expect(() => createRuntime({ ...options, url: 'ftp://x' })).toThrow(TypeError);
  expect(() => createRuntime({ ...options, clientId: 'a b' })).toThrow(/clientId/);
  expect(() => createRuntime({ ...options, instanceId: '' })).toThrow(/instanceId/);
  expect(() => createRuntime({ ...options, metadata: 'x'.repeat(20_000) })).toThrow(/metadata/);
});

describe('what the client advertises', () => {
  const bytes = (count: number) => ({ metadata: 'x'.repeat(count) });

  test('is refused where it is registered if all of it does not fit into a hello, and the rest still connects', async () => {
    await using bench = await startRuntimeBench();
    let registered = 0;
    expect(() => {
      for (; registered < 60; registered++) bench.runtime.handle(`a${registered}`, bytes(20_000), () => 1);
    }).toThrow(/^action a51: payload_too_large: all actions have \d+ bytes, of 1032188$/);
    expect(registered).toBe(51);
    const link = await bench.up();
    expect(Buffer.byteLength(link.hello.payload ?? '')).toBeLessThan(1_048_576);
    expect(bench.relay.connections).toBe(1);
  });

  test('is measured by what the last relay accepts', async () => {
    await using bench = await startRuntimeBench({ admit: () => ({ max_frame_bytes: 65_536 }) });
    bench.runtime.handle('a', bytes(20_000), () => 1);
    await bench.up();
    bench.runtime.handle('b', bytes(20_000), () => 1);
    expect(() => bench.runtime.handle('c', bytes(20_000), () => 1)).toThrow('payload_too_large');
  });

  test.each([
    ['a summary that is no text', { summary: 5 }],
    ['a guard that is no boolean', { lease: 'yes' }],
    ['metadata that is nested too deeply', { metadata: JSON.parse('['.repeat(191) + ']'.repeat(191)) }],
  ])('is refused where it is registered: %s', async (_what, wrong) => {
    await using bench = await startRuntimeBench();
    expect(() => bench.runtime.handle('a', wrong as object, () => 1)).toThrow(/^action a/);
  });

  test('may be refused by a relay with another bound: then the client ends, and says which total is too large', async () => {
    const said = 'this frame has 20000 bytes, and a frame may have at most 10000';
    await using bench = await startRuntimeBench({ admit: () => 'silence' });
    bench.runtime.connect();
    const link = await bench.relay.link();
    link.send({ type: 'refused', code: 'payload_too_large', message: said, frame: 'hello' });
    link.send({ type: 'bye', code: 4413, reason: 'frame_too_large', reconnect: false });
    expect(await bench.until('closed')).toMatchObject({
      reason: 'frame_too_large',
      message: expect.stringContaining(said),
    });
  });
});

test('a client whose hello is larger than the relay reads ends, and says why', async () => {
  await using bench = await startRuntimeBench({ admit: () => 'silence' });
  bench.runtime.connect();
  (await bench.relay.link()).close(4413);
  expect(await bench.until('closed')).toMatchObject({
    ...{ reason: 'frame_too_large', message: expect.stringContaining('larger than the relay accepts') },
  });
});

test.each([4400, 4413, 4429])('a link that is closed with %i comes back', async (code) => {
  await using bench = await startRuntimeBench();
  const link = await bench.up();
  const away = bench.until('disconnected');
  link.close(code);
  expect((await away).retryInMs).not.toBeNull();
});
