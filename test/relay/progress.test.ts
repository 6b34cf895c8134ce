/** Tests calls over HTTP whose answer is an event stream with the progress of the command. */
import { describe, expect, test } from 'vitest';
import { createRuntime, type Call, type Runtime } from '../../src/clients/runtime/index.ts';
import { createSseParser, type SseFrame } from '../../src/clients/site/sse.ts';
import { startRealRelay, type RealRelay } from '../clients/kit/real-relay.ts';

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

async function eventsOf(response: Response): Promise<readonly SseFrame[]> {
  expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
  return createSseParser(1_000_000).push(new Uint8Array(await response.arrayBuffer()));
}

const named = (events: readonly SseFrame[], name: string): readonly any[] =>
  events.filter(({ event }) => event === name).map(({ data }) => JSON.parse(data));

describe('a call over HTTP that accepts an event stream', () => {
  test('receives its admission, the progress in order, and then its answer', async () => {
    await using relay = await startRealRelay();
    await using _runtime = await client(relay, count);
    const events = await eventsOf(await send(relay, { body: { command_id: 'c1' } }));
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
