/** Tests how a link goes to the relay that is nearest to its user's data: when, to which hosts, and what it leaves. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createLinkCaller } from '../../src/clients/caller/index.ts';
import { createRuntime, type LinkStatus, type Runtime, type RuntimeOptions } from '../../src/clients/runtime/index.ts';
import { FakeClock } from '../kit/clock.ts';
import { FakeSockets, type FakeSocket } from './kit/fake-sockets.ts';
import { gate, json } from './kit/runtime-bench.ts';

const A = 'wss://a.relays.example/connect';
const B = 'wss://b.relays.example/connect';

let clock: FakeClock;
let sockets: FakeSockets;
let states: string[];
let ran: string[];
const ends: (() => Promise<void>)[] = [];
beforeEach(() => {
  clock = new FakeClock();
  sockets = new FakeSockets();
  states = [];
  ran = [];
});
afterEach(async () => {
  const ended = ends.splice(0).map((end) => end());
  await clock.advance(0);
  await Promise.all(ended);
});

/** The options of both libraries. Their delays have no jitter: each is as long as possible. */
const common = () => ({
  ...{ url: [A, B], token: 't', clock, random: () => 0.999999, WebSocket: sockets.Socket },
  onStatus: ({ state }: LinkStatus) => void states.push(state),
});

function begin(options: Partial<RuntimeOptions> = {}): Runtime {
  const runtime = createRuntime({
    ...{ ...common(), clientId: 'desk', instanceId: 'i-1', clientType: 'console' },
    actions: [{ name: 'note', run: (_, { commandId }) => void ran.push(commandId) }],
    ...options,
  });
  ends.push(() => runtime.close({ withinMs: 0 }));
  runtime.connect();
  return runtime;
}

/** Takes the next socket, opens it, and welcomes its program. */
async function welcomed(over: Parameters<FakeSocket['welcome']>[0] = {}): Promise<FakeSocket> {
  const socket = await sockets.next();
  socket.open();
  socket.welcome(over);
  return socket;
}

/** Lets the time pass in which a link goes home at the latest, unless homes have failed it. */
const seekMs = 5_000;

function receivedIn({ payload }: { readonly payload: string | null }): unknown {
  return (json(payload) as { received?: unknown }).received;
}

describe('a client whose welcome names a home', () => {
  test('goes there once: it leaves its link when the socket of the home is open, with all that runs', async () => {
    const held = gate();
    const runtime = begin();
    const signals: AbortSignal[] = [];
    runtime.handle('hold', {}, async (_, { signal }) => {
      signals.push(signal);
      await held.opened;
      return 'held';
    });
    const first = await welcomed({ home: B });
    await clock.advance(seekMs);
    const second = await sockets.next();
    expect([second.url, first.closed, states.at(-1)]).toEqual([B, false, 'connected']);
    // Until the socket is open, the link serves as before.
    first.command('c1', 'hold');
    first.command('c2', 'note');
    await clock.advance(0);
    expect([first.of('ack').length, first.of('result').length]).toEqual([2, 1]);
    second.open();
    expect([second.hello.link_attempt, receivedIn(second.hello)]).toEqual([2, ['c1', 'c2']]);
    // The home was told that this never arrived.
    first.command('c3', 'note');
    await clock.advance(0);
    expect([ran, first.closed, states.at(-1)]).toEqual([['c2'], false, 'connecting']);
    second.welcome({ epoch: 2, resumed: true });
    expect([first.closed, states.at(-1), runtime.url]).toEqual([true, 'connected', B]);
    second.command('c3', 'note');
    held.open();
    await clock.advance(0);
    expect(ran).toEqual(['c2', 'c3']);
    expect(second.of('result').map(({ command_id, payload }) => [command_id, json(payload)])).toContainEqual([
      'c1',
      'held',
    ]);
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
    await clock.advance(50_000);
    expect(sockets.waiting).toBe(0);
  });

  test('stays where it is while the home cannot be reached, and tries again ever more rarely', async () => {
    const runtime = begin();
    const first = await welcomed({ home: B, dead_ms: 3_600_000 });
    for (const ms of [5_000, 10_000, 20_000]) {
      await clock.advance(ms - 1_000);
      expect(sockets.waiting).toBe(0);
      await clock.advance(1_000);
      const next = await sockets.next();
      next.emit('close', { code: 1006 });
    }
    await clock.advance(40_000);
    const silent = await sockets.next();
    // It neither opens nor ends.
    await clock.advance(15_000);
    first.command('c1', 'note');
    await clock.advance(0);
    expect([silent.closed, silent.sent, first.closed, ran]).toEqual([true, [], false, ['c1']]);
    expect([states, runtime.url]).toEqual([['connecting', 'connected'], A]);
  });

  test.each([
    ['another host', 'wss://c.relays.example/connect', {}],
    ['another port', 'wss://b.relays.example:4401/connect', {}],
    ['a host that only begins like a named one', 'wss://b.relays.example.evil.example/connect', {}],
    ['a host that no pattern matches', 'wss://b.evil.example/connect', { url: A, homes: ['*.relays.example'] }],
    ['two labels where one was named', 'wss://x.y.relays.example/connect', { url: A, homes: ['*.relays.example'] }],
    ['an address without TLS', 'ws://b.relays.example/connect', {}],
    ['an address of HTTP', 'https://b.relays.example/connect', {}],
    ['what is no address', 'b.relays.example', {}],
  ])('never goes to %s', async (_what, home, options) => {
    begin(options);
    await welcomed({ home });
    await clock.advance(59_000);
    expect(sockets.waiting).toBe(0);
  });

  test.each([
    ['a host of a pattern', 'wss://b.relays.example/connect', { url: A, homes: ['*.relays.example'] }],
    ['any port of a pattern', 'wss://B.relays.example:4401/x', { url: A, homes: ['b.relays.example:*'] }],
    ['TLS from without', 'wss://b.relays.example/connect', { url: 'ws://a.relays.example/connect', homes: ['b.*.*'] }],
    ['without TLS from the same', 'ws://[::1]:9/connect', { url: ['ws://a.example/connect', 'ws://[::1]:9/c'] }],
  ])('goes to %s', async (_what, home, options) => {
    begin(options);
    await welcomed({ home });
    await clock.advance(seekMs);
    expect((await sockets.next()).url).toBe(home);
  });

  test('goes back to the relay that named the home if the home refuses it, and not for good', async () => {
    const runtime = begin();
    const first = await welcomed({ home: B });
    await clock.advance(seekMs);
    const second = await sockets.next();
    second.open();
    // It may have bound the client, so what the first socket still receives does not count.
    first.command('c1', 'note');
    second.receive({ type: 'refused', code: 'forbidden', message: 'no', frame: 'hello' });
    second.receive({ type: 'bye', code: 4403, reason: 'forbidden', reconnect: false });
    expect([first.closed, states.at(-1)]).toEqual([true, 'disconnected']);
    await clock.advance(500);
    const third = await welcomed({ home: B });
    expect([third.url, receivedIn(third.hello), third.hello.link_attempt]).toEqual([A, [], 3]);
    await clock.advance(seekMs);
    expect([sockets.waiting, ran, runtime.url]).toEqual([0, [], A]);
    await clock.advance(seekMs);
    expect((await sockets.next()).url).toBe(B);
  });

  test('comes back when the home is gone, and goes to the next home that it is told', async () => {
    begin({ url: [A, B, 'wss://c.relays.example/connect'] });
    await welcomed({ home: B });
    await clock.advance(seekMs);
    const second = await welcomed();
    second.emit('close', { code: 1006 });
    await clock.advance(500);
    const third = await welcomed({ home: 'wss://c.relays.example/connect' });
    expect(third.url).toBe(A);
    await clock.advance(seekMs);
    expect((await welcomed()).url).toBe('wss://c.relays.example/connect');
  });

  test('follows a home that moves later', async () => {
    begin();
    const first = await welcomed();
    await clock.advance(10_000);
    first.receive({ type: 'home', url: B });
    await clock.advance(seekMs);
    expect((await welcomed()).url).toBe(B);
  });

  test('stays when its relay has become the home meanwhile', async () => {
    begin();
    const first = await welcomed({ home: B });
    await clock.advance(seekMs / 2);
    first.receive({ type: 'home' });
    await clock.advance(40_000);
    expect([sockets.waiting, first.closed]).toEqual([0, false]);
  });

  test('is not sent around by homes that name each other', async () => {
    begin();
    await welcomed({ home: B });
    let socketsOpened = 0;
    for (let second = 0; second < 600; second++) {
      await clock.advance(1_000);
      if (sockets.waiting === 0) continue;
      const { url } = await welcomed({ home: socketsOpened++ % 2 === 0 ? A : B, dead_ms: 3_600_000 });
      expect(url).toBe(socketsOpened % 2 === 1 ? B : A);
    }
    expect(socketsOpened).toBeGreaterThan(3);
    expect(socketsOpened).toBeLessThan(12);
  });

  test('does not go while it leaves', async () => {
    const runtime = begin();
    const held = gate();
    runtime.handle('hold', {}, () => held.opened);
    const first = await welcomed({ home: B });
    first.command('c1', 'hold');
    await clock.advance(0);
    const closed = runtime.close({ withinMs: 30_000 });
    first.receive({ type: 'home', url: B });
    await clock.advance(20_000);
    expect(sockets.waiting).toBe(0);
    first.receive({ type: 'closed' }, { commands: ['c1'] });
    held.open();
    await clock.advance(0);
    first.receive({ type: 'result_ack', command_id: 'c1', recorded: 'recorded' });
    await closed;
  });

  test('closes every socket when it is closed in the middle', async () => {
    const runtime = begin();
    const first = await welcomed({ home: B });
    await clock.advance(seekMs);
    const second = await sockets.next();
    second.open();
    const closed = runtime.close({ withinMs: 0 });
    await clock.advance(0);
    await closed;
    expect([first.closed, second.closed]).toEqual([true, true]);
  });

  test('ends the attempt when its own link ends', async () => {
    begin();
    const first = await welcomed({ home: B });
    await clock.advance(seekMs);
    const second = await sockets.next();
    first.emit('close', { code: 1006 });
    second.open();
    expect([second.closed, second.sent]).toEqual([true, []]);
    await clock.advance(500);
    expect((await welcomed()).hello.link_attempt).toBe(2);
  });
});

test('a caller goes home with its waits: each request is made again by its id, and answered once', async () => {
  const caller = createLinkCaller(common());
  ends.push(() => caller.close());
  const lamp = { userId: 'alice', clientId: 'desk', action: 'lamp.set' };
  const one = caller.invoke<string>(lamp, {}, { commandId: 'c1' });
  const two = caller.invoke<string>(lamp, {}, { commandId: 'c2' });
  const first = await welcomed({ home: B });
  const refs = new Map(first.of('invoke').map(({ command_id, ref }) => [command_id, ref]));
  first.receive({ type: 'stage', ref: refs.get('c1') ?? '', command_id: 'c1', stage: 'admitted' });
  await clock.advance(seekMs);
  const second = await sockets.next();
  second.open();
  const outcome = (ref: string, commandId: string) =>
    ({
      ...({ type: 'outcome', ref, command_id: commandId, outcome: 'completed', stage: 'terminal' } as const),
      execution: 'reported_by_client',
    }) as const;
  // The first link was left: what it says now is not heard.
  first.receive(outcome(refs.get('c1') ?? '', 'c1'), 'of the first link');
  const late = caller.invoke<string>(lamp, {}, { commandId: 'c3' });
  await clock.advance(0);
  second.welcome();
  expect(second.of('await').map(({ command_id }) => command_id)).toEqual(['c1']);
  expect(second.of('invoke').map(({ command_id }) => command_id)).toEqual(['c2', 'c3']);
  for (const { ref, command_id } of [...second.of('await'), ...second.of('invoke')])
    second.receive(outcome(ref, command_id ?? ''), command_id);
  expect(await Promise.all([one, two, late])).toMatchObject([{ result: 'c1' }, { result: 'c2' }, { result: 'c3' }]);
  expect(first.closed).toBe(true);
});

test('the hosts of homes are checked', () => {
  for (const homes of [['wss://b.relays.example/connect'], [''], ['a b'], 'b.relays.example', [1]])
    expect(() => createLinkCaller({ ...common(), homes: homes as never })).toThrow(/^homes: .* relay-\*\.example:4400/);
});
