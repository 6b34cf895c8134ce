/** Tests the caller library over HTTP. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import {
  CallerError,
  createHttpCaller,
  type Caller,
  type HttpCallerOptions,
  type ProgressUpdate,
} from '../../src/clients/caller/index.ts';

type Seen = { readonly method: string; readonly url: string; readonly token: string; readonly body: unknown };
type Answer = { readonly status: number; readonly body: unknown; readonly headers?: Record<string, string> };
/** An event stream that breaks after this text. */
type Broken = { readonly events: string };
/** How the server reacts to the n-th request: with an answer, a broken connection, or silence. */
type Script = (seen: Seen, n: number) => Answer | Broken | 'break' | 'silence';

type Bench = AsyncDisposable & { readonly seen: Seen[]; readonly caller: Caller; readonly hangups: Promise<void> };

async function startBench(script: Script, options: Partial<HttpCallerOptions> = {}): Promise<Bench> {
  const seen: Seen[] = [];
  const hungUp = Promise.withResolvers<void>();
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    const { method = '', url = '', headers } = request;
    const token = headers.authorization ?? '';
    const requested = { method, url, token, body: body === '' ? null : JSON.parse(body) };
    seen.push(requested);
    const answer = script(requested, seen.length);
    response.on('close', () => hungUp.resolve());
    if (answer === 'break') response.socket?.destroy();
    else if (typeof answer === 'object' && 'events' in answer)
      response.writeHead(200, EVENTS).write(answer.events, () => response.socket?.destroy());
    else if (answer !== 'silence') response.writeHead(answer.status, answer.headers).end(JSON.stringify(answer.body));
  }
  const server = createServer((request, response) => void serve(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  const url = `http://127.0.0.1:${address.port}/base/`;
  const caller = createHttpCaller({ url, token: 't', random: () => 0, ...options });
  async function dispose(): Promise<void> {
    await caller.close();
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
  return { seen, caller, hangups: hungUp.promise, [Symbol.asyncDispose]: dispose };
}

const EVENTS = { 'content-type': 'text/event-stream; charset=utf-8' };

/** Returns an event as a relay writes it. */
function eventOf(event: string, data: unknown, id?: number): string {
  return `event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
}

const lamp = { userId: 'a/b', clientId: 'desk', action: 'lamp.set' };
const handle = { userId: 'a/b', clientId: 'desk', commandId: 'c1' };
const done = {
  command_id: 'c1',
  rpc_id: 'w1',
  outcome: 'completed',
  stage: 'terminal',
  last_proven_stage: 'acknowledged',
  execution: 'reported_by_client',
};

describe('a caller over HTTP', () => {
  test('invokes on the documented path and reads the outcome', async () => {
    await using bench = await startBench(() => ({ status: 200, body: { ...done, result: { x: 1 }, error: null } }));
    const options = { commandId: 'c1', waitFor: 'completed', connectWithinMs: 1, respondWithinMs: 2_000 } as const;
    const trace = { traceId: 't', parentSpanId: 'p' };
    const invocation = await bench.caller.invoke({ ...lamp, instanceId: 'i' }, { on: 1 }, { ...options, ...trace });
    const evidence = {
      handle,
      rpcId: 'w1',
      stage: 'terminal',
      lastProvenStage: 'acknowledged',
      execution: 'reported_by_client',
    };
    expect(invocation).toEqual({ ...evidence, outcome: 'completed', result: { x: 1 } });
    const budgets = { wait_for: 'completed', connect_within_ms: 1, respond_within_ms: 2_000 };
    const ids = { command_id: 'c1', instance_id: 'i', trace_id: 't', parent_span_id: 'p' };
    const url = '/base/connections/a%2Fb/desk/actions/lamp.set';
    expect(bench.seen).toEqual([
      { method: 'POST', url, token: 'Bearer t', body: { params: { on: 1 }, ...ids, ...budgets } },
    ]);
  });

  test('reads an end with status 504 as its outcome, and 202 as pending', async () => {
    const error = { code: 'connect_timeout', message: 'never came' };
    const bodies: readonly Answer[] = [
      { status: 504, body: { ...done, code: 'connect_timeout', outcome: 'expired', execution: 'not_written', error } },
      {
        status: 504,
        body: { ...done, outcome: 'outcome_unknown', error: null, code: 'response_timeout', detail: 'late' },
      },
      { status: 202, body: { ...done, outcome: null, stage: 'queued', execution: 'not_written', error: null } },
      { status: 200, body: { ...done, outcome: 'failed', execution: 'refused_by_client', error } },
      { status: 200, body: { ...done, outcome: 'cancelled', result: [1], error: null } },
    ];
    await using bench = await startBench((_, n) => bodies[n - 1] ?? 'break');
    const next = () => bench.caller.await(handle, { withinMs: 5, waitFor: 'acknowledged' });
    expect(await next()).toMatchObject({ outcome: 'expired', error });
    expect(await next()).toMatchObject({
      outcome: 'outcome_unknown',
      error: { code: 'response_timeout', message: 'late' },
    });
    expect(await next()).toMatchObject({ outcome: 'pending', stage: 'queued' });
    expect(await next()).toMatchObject({ outcome: 'failed', execution: 'refused_by_client' });
    expect(await next()).toMatchObject({ outcome: 'cancelled', partial: [1] });
    const url = '/base/commands/a%2Fb/desk/c1?within_ms=5&wait_for=acknowledged';
    expect(bench.seen[0]).toMatchObject({ method: 'GET', url, body: null });
  });

  test("throws a refusal as CallerError, and rejects an answer that is not a relay's", async () => {
    const answers: readonly Answer[] = [
      { status: 429, body: { code: 'queue_full', detail: 'full', by: 'capacity' }, headers: { 'retry-after': '2' } },
      { status: 404, body: ['nothing'] },
      { status: 200, body: { hello: 'world' } },
      { status: 200, body: { ...done, outcome: 'won' } },
    ];
    await using bench = await startBench((_, n) => answers[n - 1] ?? 'break');
    const refused = bench.caller.invoke(lamp, {}, { commandId: 'c1' });
    await expect(refused).rejects.toThrow(CallerError);
    const details = { by: 'capacity', retryAfterMs: 2_000, handle };
    await expect(refused).rejects.toMatchObject({ code: 'queue_full', message: 'full', ...details });
    for (let n = 0; n < 3; n++) await expect(bench.caller.invoke(lamp)).rejects.toMatchObject({ code: 'bad_answer' });
    expect(bench.seen).toHaveLength(4);
  });

  test.each(['', '-1', '1.5', '0x10', 'soon', '9'.repeat(30), 'Sun, 22 Nov 2026 00:00:00 GMT'])(
    'ignores the Retry-After %j',
    async (header) => {
      const body = { code: 'queue_full', detail: 'full' };
      await using bench = await startBench(() => ({ status: 429, body, headers: { 'retry-after': header } }));
      await expect(bench.caller.invoke(lamp)).rejects.toMatchObject({ code: 'queue_full', retryAfterMs: null });
    },
  );

  test('returns a receipt for a cancel', async () => {
    await using bench = await startBench(() => ({ status: 200, body: { state: 'too_late', command: {} } }));
    expect(await bench.caller.cancel(handle, 'enough')).toEqual({ handle, state: 'too_late' });
    expect(bench.seen).toEqual([
      { method: 'POST', url: '/base/commands/a%2Fb/desk/c1/cancel', token: 'Bearer t', body: { reason: 'enough' } },
    ]);
  });
});

describe('a request whose connection breaks', () => {
  test('is sent again under the same command id', async () => {
    await using bench = await startBench((_, n) => (n < 3 ? 'break' : { status: 200, body: { ...done, result: 1 } }));
    expect(await bench.caller.invoke(lamp, { on: 1 })).toMatchObject({ outcome: 'completed' });
    expect(bench.seen).toHaveLength(3);
    expect(bench.seen[1]).toEqual(bench.seen[0]);
    expect(bench.seen[2]).toEqual(bench.seen[0]);
    expect(bench.seen[0]?.body).toMatchObject({ command_id: expect.stringMatching(/^c-[0-9a-f]{32}$/) });
  });

  test('may have run if a later attempt is refused', async () => {
    const refusal = { status: 409, body: { code: 'context_gone', title: 'Gone.' } };
    await using bench = await startBench((_, n) => (n === 1 ? 'break' : refusal));
    const seen = { code: 'context_gone', message: expect.stringMatching(/it may have run/), mayHaveRun: true };
    await expect(bench.caller.invoke(lamp, {})).rejects.toMatchObject(seen);
    const proven = { code: 'context_gone', message: 'Gone.', mayHaveRun: false };
    await expect(bench.caller.invoke(lamp, {})).rejects.toMatchObject(proven);
  });

  test('is given up as unreachable after the retries, also when a proxy answers in place of a relay', async () => {
    const script: Script = (_, n) =>
      n % 2 ? 'break' : { status: 502, body: n === 2 ? ['bad gateway'] : 'bad gateway' };
    await using bench = await startBench(script, { retries: 4 });
    const invoked = bench.caller.invoke(lamp, {}, { commandId: 'c1' });
    await expect(invoked).rejects.toMatchObject({ code: 'unreachable', handle });
    expect(bench.seen).toHaveLength(5);
  });

  test('is not sent again when the relay itself answers a server error', async () => {
    await using bench = await startBench(() => ({ status: 503, body: { code: 'draining', detail: 'soon' } }));
    await expect(bench.caller.invoke(lamp)).rejects.toMatchObject({ code: 'draining' });
    expect(bench.seen).toHaveLength(1);
  });
});

describe('a call with onProgress', () => {
  const body = { ...done, result: 'on', error: null };
  const stream =
    `:\n\n${eventOf('admitted', { command_id: 'c1' })}${eventOf('progress', { text: 'é\u2028🎈' }, 1)}:\n\n` +
    `${eventOf('progress', 'four', 4)}${eventOf('progress', null)}${eventOf('progress', [5], 5)}` +
    eventOf('answer', { status: 200, body });
  const updates = [
    { value: { text: 'é\u2028🎈' }, number: 1, missed: 0 },
    { value: 'four', number: 4, missed: 2 },
    { value: null, number: null, missed: 0 },
    { value: [5], number: 5, missed: 0 },
  ];

  /** Returns a caller that is answered by this text, in chunks of so many bytes, and the requests that it sent. */
  function answered(text: string, chunk: number, options: Partial<HttpCallerOptions> = {}) {
    const requests: Request[] = [];
    const bytes = new TextEncoder().encode(text);
    const chunks = Array.from({ length: Math.ceil(bytes.length / chunk) }, (_, i) =>
      bytes.subarray(i * chunk, (i + 1) * chunk),
    );
    const fetch = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
      requests.push(new Request(input, init));
      const stream = new ReadableStream<Uint8Array>({
        start(controller) {
          for (const bytes of chunks) controller.enqueue(bytes);
          controller.close();
        },
      });
      return new Response(stream, { headers: EVENTS });
    };
    return { requests, caller: createHttpCaller({ url: 'http://relay.test', token: 't', fetch, ...options }) };
  }

  test.each([1, 2, 3, 7, 10_000])('reads progress and answer from a stream in chunks of %i bytes', async (chunk) => {
    const { caller, requests } = answered(stream, chunk);
    const seen: ProgressUpdate[] = [];
    const onProgress = (update: ProgressUpdate): void => void seen.push(update);
    expect(await caller.invoke(lamp, {}, { onProgress })).toMatchObject({ outcome: 'completed', result: 'on' });
    expect(seen).toEqual(updates);
    expect(requests.map(({ headers }) => headers.get('accept'))).toEqual(['text/event-stream']);
  });

  test('asks for an event stream only if it is given, and counts what an await missed from the first report on', async () => {
    const { caller, requests } = answered(eventOf('progress', 'x', 7) + stream.replaceAll('id: ', 'id: 1'), 10_000);
    const seen: ProgressUpdate[] = [];
    await caller.await(handle, { onProgress: (update) => void seen.push(update) });
    expect(seen.map(({ number, missed }) => [number, missed])).toEqual([
      [7, 0],
      [11, 3],
      [14, 2],
      [null, 0],
      [15, 0],
    ]);
    await expect(caller.await(handle)).rejects.toMatchObject({ code: 'bad_answer' });
    expect(requests.map(({ headers }) => headers.get('accept'))[1]).toBe('application/json');
  });

  test('takes an answer that is no stream, and throws a refusal, in a stream too', async () => {
    const answers: readonly Answer[] = [
      { status: 200, body: { ...done, result: 1 } },
      { status: 409, body: { code: 'not_connected', detail: 'gone' } },
    ];
    await using bench = await startBench((_, n) => answers[n - 1] ?? 'break');
    const onProgress = (): void => expect.unreachable();
    expect(await bench.caller.invoke(lamp, {}, { onProgress })).toMatchObject({ outcome: 'completed', result: 1 });
    await expect(bench.caller.invoke(lamp, {}, { onProgress })).rejects.toMatchObject({ code: 'not_connected' });
    const late = { status: 503, body: { code: 'store_unavailable', detail: 'away' } };
    const { caller } = answered(eventOf('answer', late), 5);
    await expect(caller.invoke(lamp, {}, { onProgress })).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  test('is sent again when its stream breaks before the answer, and tells what it missed in between', async () => {
    const first = eventOf('admitted', { command_id: 'c1' }) + eventOf('progress', 'a', 1) + eventOf('progress', 'b', 2);
    const second = eventOf('progress', 'b', 2) + eventOf('progress', 'f', 6) + eventOf('progress', 'cut', 7).trimEnd();
    const streams = [first, second];
    await using bench = await startBench((_, n) => {
      const events = streams[n - 1];
      return events === undefined ? { status: 200, body } : { events };
    });
    const seen: unknown[] = [];
    const onProgress = ({ value, missed }: ProgressUpdate): void => void seen.push([value, missed]);
    expect(await bench.caller.invoke(lamp, {}, { onProgress })).toMatchObject({ outcome: 'completed', result: 'on' });
    expect(seen).toEqual([
      ['a', 0],
      ['b', 0],
      ['f', 3],
    ]);
    expect(bench.seen).toHaveLength(3);
    expect(bench.seen[1]).toEqual(bench.seen[0]);
  });

  test('goes on when the callback throws or rejects, which onError receives', async () => {
    const errors: unknown[] = [];
    const { caller } = answered(stream, 50, { onError: (error) => void errors.push(error) });
    let reports = 0;
    const onProgress = (): Promise<void> | void => {
      if (++reports === 1) throw new Error('thrown');
      return Promise.reject(new Error(`rejected ${reports}`));
    };
    // oxlint-disable-next-line typescript/no-misused-promises -- a program may pass such a callback by mistake
    expect(await caller.invoke(lamp, {}, { onProgress })).toMatchObject({ outcome: 'completed' });
    const messages = ['thrown', 'rejected 2', 'rejected 3', 'rejected 4'];
    expect(errors).toEqual(messages.map((message) => new Error(message)));
  });
});

describe('the token', () => {
  test('is requested again, once, after it was refused', async () => {
    let n = 0;
    const ok = { status: 200, body: { ...done, result: null } };
    const script: Script = ({ token }) =>
      token === 'Bearer t2' ? ok : { status: 401, body: { code: 'unauthenticated' } };
    await using bench = await startBench(script, { token: () => `t${++n}` });
    expect(await bench.caller.invoke(lamp)).toMatchObject({ outcome: 'completed' });
    await expect(bench.caller.invoke(lamp)).rejects.toMatchObject({ code: 'unauthenticated' });
    expect(bench.seen.map(({ token }) => token)).toEqual(['Bearer t1', 'Bearer t2', 'Bearer t3', 'Bearer t4']);
  });

  test('that cannot be obtained is an error of its own, with its cause', async () => {
    const token = () => Promise.reject(new Error('vault sealed'));
    await using bench = await startBench(() => 'break', { token });
    const invoked = bench.caller.invoke(lamp);
    await expect(invoked).rejects.toMatchObject({ code: 'unauthenticated', cause: new Error('vault sealed') });
    expect(bench.seen).toEqual([]);
  });
});

describe('leaving a wait', () => {
  test('by the signal ends the request and rejects with its reason, without a retry', async () => {
    const request = Promise.withResolvers<void>();
    await using bench = await startBench(() => (request.resolve(), 'silence'));
    const abort = new AbortController();
    const invoked = bench.caller.invoke(lamp, {}, { signal: abort.signal });
    await request.promise;
    abort.abort(new Error('enough'));
    await expect(invoked).rejects.toThrow('enough');
    await bench.hangups;
    expect(bench.seen).toHaveLength(1);
  });

  test('by close ends all waits, and later calls too', async () => {
    const request = Promise.withResolvers<void>();
    await using bench = await startBench(() => (request.resolve(), 'silence'));
    const invoked = bench.caller.invoke(lamp);
    const seen = expect(invoked).rejects.toMatchObject({ code: 'closed' });
    await request.promise;
    await bench.caller.close();
    await seen;
    await expect(bench.caller.cancel(handle)).rejects.toMatchObject({ code: 'closed' });
  });
});
