/** Tests the progress of commands on every way to their callers, and calls over HTTP whose answer is an event stream. */
import { describe, expect, test } from 'vitest';
import { main } from '../../src/cli/main.ts';
import { createHttpCaller, createLinkCaller } from '../../src/clients/caller/index.ts';
import { createLive } from '../../src/clients/live/index.ts';
import { createRuntime, type Call, type Runtime } from '../../src/clients/runtime/index.ts';
import { createSseParser, type SseFrame } from '../../src/clients/site/sse.ts';
import { startRealRelay, type RealRelay } from '../clients/kit/real-relay.ts';
import { client as bareClient, type Peer } from '../gateway/kit/test-gateway.ts';

const REPORTS = 20;

async function client(relay: RealRelay, run: (call: Call) => unknown): Promise<Runtime> {
  const token = () => relay.token('alice', 'connect');
  const runtime = createRuntime({ url: relay.link, token, clientId: 'desk', clientType: 'console' });
  runtime.handle('work', {}, (_params, call) => run(call));
  runtime.connect();
  await runtime.ready();
  return runtime;
}

function count(call: Call): string {
  for (let step = 1; step <= REPORTS; step++) call.progress({ step, text: 'two\nlines' });
  return 'done';
}

type Request = { readonly path?: string; readonly method?: string; readonly body?: object; readonly token?: string };

async function send(relay: RealRelay, { path, method = 'POST', body, token }: Request): Promise<Response> {
  return fetch(`${relay.url}${path ?? '/connections/alice/desk/actions/work'}`, {
    method,
    headers: {
      authorization: `Bearer ${token ?? (await relay.token('alice', 'invoke'))}`,
      accept: 'text/event-stream',
      'content-type': 'application/json',
    },
    ...(body && { body: JSON.stringify(body) }),
  });
}

/** Reads a stream to its end. Calls `onEvent` with each event when it arrives. */
async function eventsOf(
  response: Response,
  onEvent: (event: SseFrame) => void = () => {},
): Promise<readonly SseFrame[]> {
  expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
  const parser = createSseParser(1_000_000);
  const events: SseFrame[] = [];
  for await (const bytes of response.body ?? []) {
    const arrived = parser.push(bytes);
    arrived.forEach(onEvent);
    events.push(...arrived);
  }
  return events;
}

const named = (events: readonly SseFrame[], name: string): readonly any[] =>
  events.filter(({ event }) => event === name).map(({ data }) => JSON.parse(data));

describe('a call over HTTP that accepts an event stream', () => {
  test('receives its admission, the progress in order, and then its answer', async () => {
    await using relay = await startRealRelay();
    // From another node, an end may overtake the reports before it: they come over the bus, and it comes over the mailbox.
    const last = Promise.withResolvers<void>();
    await using _runtime = await client(relay, async (call) => {
      const result = count(call);
      await last.promise;
      return result;
    });
    const events = await eventsOf(await send(relay, { body: { command_id: 'c1' } }), ({ event, data }) => {
      if (event === 'progress' && JSON.parse(data).step === REPORTS) last.resolve();
    });
    expect(events[0]).toEqual({ event: 'admitted', data: '{"command_id":"c1"}' });
    const progress = named(events, 'progress');
    const steps = progress.map(({ step }) => step);
    expect(steps).toEqual(steps.toSorted((a, b) => a - b));
    expect(progress.at(-1)).toEqual({ step: REPORTS, text: 'two\nlines' });
    expect(named(events, 'answer')).toEqual([
      { status: 200, body: expect.objectContaining({ command_id: 'c1', outcome: 'completed', result: 'done' }) },
    ]);
    expect(events.at(-1)?.event).toBe('answer');
  });

  test('is refused with the status of the refusal, and an ended command is answered at once', async () => {
    await using relay = await startRealRelay();
    await using _runtime = await client(relay, count);
    const refused = await send(relay, { path: '/connections/alice/nobody/actions/work', body: {} });
    expect(refused.status).toBe(409);
    expect(await refused.json()).toMatchObject({ code: 'not_connected' });
    await (await send(relay, { body: { command_id: 'c1' } })).text();
    const again = await send(relay, { body: { command_id: 'c1' } });
    expect(again.headers.get('content-type')).toMatch(/^application\/json/);
    expect(await again.json()).toMatchObject({ outcome: 'completed', result: 'done' });
  });

  test('a wait for a running command receives what is reported from then on; its answer says that the handler failed', async () => {
    await using relay = await startRealRelay();
    const { promise: running, resolve: started } = Promise.withResolvers<Call>();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    await using _runtime = await client(relay, async (call) => {
      started(call);
      await released;
      throw new Error('no paper');
    });
    const first = await send(relay, { body: { command_id: 'c1' } });
    const call = await running;
    const response = await send(relay, { path: '/commands/alice/desk/c1?within_ms=20000', method: 'GET' });
    const events: SseFrame[] = [];
    const reading = (async () => {
      const parser = createSseParser(1_000_000);
      for await (const bytes of response.body ?? []) events.push(...parser.push(bytes));
    })();
    // With two relays, the one of the caller may not be subscribed to the command yet.
    await expect.poll(() => (call.progress('more'), named(events, 'progress'))).toContain('more');
    release();
    await reading;
    expect(named(events, 'answer')).toMatchObject([{ status: 200, body: { outcome: 'failed' } }]);
    expect(named(await eventsOf(first), 'answer')).toMatchObject([{ body: { outcome: 'failed' } }]);
  });

  test('an administrator who waits for the call of another requester is audited before it sees progress', async () => {
    await using relay = await startRealRelay();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    await using _runtime = await client(relay, () => released);
    const first = await send(relay, { body: { command_id: 'c1' } });
    const path = '/commands/alice/desk/c1?within_ms=20000';
    const response = await send(relay, { path, method: 'GET', token: relay.admin });
    const headers = { authorization: `Bearer ${relay.admin}`, 'content-type': 'application/json' };
    const query = '{ auditEvents(first: 10) { nodes { action subject { commandId } } } }';
    const rows = await fetch(`${relay.url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
    expect(await rows.json()).toMatchObject({
      data: { auditEvents: { nodes: [{ action: 'PAYLOAD', subject: { commandId: 'c1' } }] } },
    });
    release();
    expect(named(await eventsOf(response), 'answer')).toMatchObject([{ status: 200 }]);
    await first.text();
  });

  test('hanging up ends the wait, never the command', async () => {
    await using relay = await startRealRelay();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    await using _runtime = await client(relay, () => released);
    const response = await send(relay, { body: { command_id: 'c1' } });
    await response.body?.cancel();
    release();
    const awaited = await send(relay, { path: '/commands/alice/desk/c1?within_ms=20000', method: 'GET' });
    const text = await awaited.text();
    expect(text).toContain('"outcome":"completed"');
  });
});

type Told = { readonly value: unknown; readonly number: number | null; readonly missed: number };
type Way = {
  readonly name: string;
  /** Whether `missed` counts reports alone. Otherwise it also counts other updates, which may be dropped too. */
  readonly exact: boolean;
  /** Invokes `work` under this id, or follows it if it runs, and passes on each report. Resolves at its end. */
  readonly follow: (relay: RealRelay, commandId: string, onProgress: (told: Told) => void) => Promise<unknown>;
};

const desk = { userId: 'alice', clientId: 'desk' };
const WAYS: readonly Way[] = [
  {
    name: 'a link',
    exact: true,
    async follow({ url, token }, commandId, onProgress) {
      const link = `${url.replace(/^http/, 'ws')}/connect`;
      await using caller = createLinkCaller({ url: link, token: () => token('alice', 'invoke') });
      return await caller.invoke({ ...desk, action: 'work' }, {}, { commandId, onProgress });
    },
  },
  {
    name: 'HTTP',
    exact: true,
    async follow({ url, token }, commandId, onProgress) {
      await using caller = createHttpCaller({ url, token: () => token('alice', 'invoke') });
      return await caller.invoke({ ...desk, action: 'work' }, {}, { commandId, onProgress });
    },
  },
  {
    name: 'the command line',
    exact: true,
    async follow({ url, token }, commandId, onProgress) {
      const env = {
        CALLBOARD_URL: url,
        CALLBOARD_TOKEN: await token('alice', 'invoke'),
        XDG_CONFIG_HOME: '/nonexistent',
      };
      return main(['call', 'alice/desk', 'work', '--id', commandId, '--progress', '-o', 'jsonl'], {
        env,
        print: () => undefined,
        complain(line) {
          const { progress: value, number, missed } = JSON.parse(line);
          onProgress({ value, number, missed });
        },
        onStop: () => undefined,
      });
    },
  },
  {
    name: 'GraphQL',
    exact: false,
    async follow({ url, token }, commandId, onProgress) {
      const access = { url, token: await token('alice', 'invoke') };
      let lost = 0;
      const followed = createLive(access).command(
        { ...desk, commandId },
        {
          onUpdate({ progress: value, number, missed }) {
            lost += missed;
            if (number === null) return;
            onProgress({ value, number, missed: lost });
            lost = 0;
          },
        },
      );
      await using caller = createHttpCaller(access);
      await caller.invoke({ ...desk, action: 'work' }, {}, { commandId });
      return await followed;
    },
  },
];

/** Connects a client that advertises `work` and does only what the test sends. */
async function bareDesk({ linkUrl, token }: RealRelay, peers: Peer[]): Promise<Peer> {
  const payload = { actions: [{ name: 'work' }] };
  const hello = { client_id: 'desk', token: await token('alice', 'connect'), payload };
  return bareClient({ port: Number(new URL(linkUrl).port), peers }, hello);
}

describe.each(WAYS)('the progress of a command over $name', ({ exact, follow }) => {
  test('arrives in order, of 1000 reports each or told as missed', async () => {
    await using relay = await startRealRelay();
    const client = await bareDesk(relay, []);
    const seen: Told[] = [];
    const followed = follow(relay, 'c1', (told) => seen.push(told));
    const { command_id } = await client.next('command');
    let made = 0;
    const report = (): void => {
      made++;
      client.send({ type: 'progress', command_id, number: made }, { step: made });
    };
    while (made < 1000) report();
    // What was missed last is told by the next report that arrives.
    const arrived = (): number => (report(), seen.at(-1)?.number ?? 0);
    await expect.poll(arrived).toBeGreaterThan(1000);
    client.send({ type: 'result', command_id }, null);
    await followed;
    let last = 0;
    for (const { value, number, missed } of seen) {
      expect(value).toEqual({ step: number });
      if (exact) expect(number).toBe(last + missed + 1);
      expect(number).toBeGreaterThan(last);
      expect(number).toBeLessThanOrEqual(last + missed + 1);
      last = number ?? 0;
    }
    client.ws.terminate();
  });
});

describe.each(WAYS.filter(({ exact }) => exact))('the first report of a command over $name', ({ follow }) => {
  test('is not missed, however early it comes', async () => {
    await using relay = await startRealRelay();
    const client = await bareDesk(relay, []);
    for (let call = 1; call <= 10; call++) {
      const seen: Told[] = [];
      const followed = follow(relay, `c${call}`, (told) => seen.push(told));
      const { command_id } = await client.next('command');
      client.send({ type: 'progress', command_id, number: 1 }, 'at once');
      await expect.poll(() => seen).toEqual([{ value: 'at once', number: 1, missed: 0 }]);
      client.send({ type: 'result', command_id }, null);
      await followed;
    }
    client.ws.terminate();
  });
});
