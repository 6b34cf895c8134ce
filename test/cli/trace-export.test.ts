/** Tests the export of spans by `callboard serve`. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { FLUSH_MS, openTraceExport } from '../../src/cli/trace-export.ts';
import { createCallboard } from '../../src/callboard.ts';
import { createLog } from '../../src/platform/log.ts';
import { systemClock } from '../../src/platform/system.ts';
import { FakeClock } from '../kit/clock.ts';

type Received = { readonly path: string | undefined; readonly type: string | undefined; readonly text: string };

/** Starts a collector that keeps what it receives. Its answers have the status `status`. */
async function startCollector(status = 200): Promise<{ url: string; received: Received[] } & AsyncDisposable> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString('latin1');
      received.push({ path: request.url, type: request.headers['content-type'], text });
      response.writeHead(status).end();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    [Symbol.asyncDispose]: async () => void server.close(),
  };
}

function logged() {
  const lines: Record<string, unknown>[] = [];
  const log = createLog({ level: 'info', sink: { write: (line) => void lines.push(JSON.parse(line)) } });
  return { log, lines };
}

const ALL = { OTEL_TRACES_SAMPLER: 'parentbased_always_on' };

/** Makes one call that is refused, which is enough for a span. */
async function callOnce(tracing: NonNullable<Awaited<ReturnType<typeof openTraceExport>>>['api']): Promise<void> {
  await using callboard = createCallboard({ config: { auth: {} }, tracing });
  const user = { kind: 'user', userId: 'alice', scopes: new Set(['invoke'] as const), expiresAt: null } as const;
  await callboard.core.rpc.invoke(user, { userId: 'alice', clientId: 'tab', action: 'open', params: null });
}

describe('with an endpoint', () => {
  it('sends the spans to the collector, at the latest when the relay stops', async () => {
    await using collector = await startCollector();
    const { log, lines } = logged();
    const traces = await openTraceExport(
      { ...ALL, OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/base/` },
      { log, clock: systemClock },
    );
    if (!traces) throw new Error('nothing is exported');
    expect(lines).toMatchObject([{ msg: 'spans are exported', endpoint: collector.url, ratio: 1 }]);
    await callOnce(traces.api);
    await traces.close();
    expect(collector.received).toHaveLength(1);
    const [{ path, type, text } = { path: '', type: '', text: '' }] = collector.received;
    expect([path, type]).toEqual(['/base/v1/traces', 'application/x-protobuf']);
    for (const part of ['service.name', 'callboard', 'rpc.status_code', 'not_connected']) expect(text).toContain(part);
    expect(text).not.toContain('alice');
  });

  it('takes one trace in a hundred by default, and says once that a collector refuses', async () => {
    await using collector = await startCollector(400);
    const first = logged();
    await using _ = await opened({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/t` }, first.log);
    expect(first.lines).toMatchObject([{ sampler: 'parentbased_traceidratio', ratio: 0.01 }]);
    const { log, lines } = logged();
    const traces = await openTraceExport(
      { ...ALL, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/t` },
      { log, clock: systemClock },
    );
    if (!traces) throw new Error('nothing is exported');
    await callOnce(traces.api);
    await traces.close();
    expect(collector.received.map(({ path }) => path)).toEqual(['/t']);
    expect(lines.map(({ msg }) => msg)).toEqual(['spans are exported', 'spans could not be exported, and are lost']);
  });
});

describe('a collector that accepts spans and never answers', () => {
  it('delays the stop by one second at most', async () => {
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    const server = createServer(() => resolve()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const { log, lines } = logged();
    const clock = new FakeClock();
    const traces = await openTraceExport(
      { ...ALL, OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` },
      { log, clock },
    );
    if (!traces) throw new Error('nothing is exported');
    await callOnce(traces.api);
    const closed = traces.close();
    await asked;
    await clock.advance(FLUSH_MS);
    expect(await closed).toBe(false);
    expect(lines.at(-1)).toMatchObject({ level: 'warn', msg: expect.stringContaining('the last spans are lost') });
    server.closeAllConnections();
    server.close();
  });
});

async function opened(env: Record<string, string>, log: ReturnType<typeof logged>['log']): Promise<AsyncDisposable> {
  const traces = await openTraceExport(env, { log, clock: systemClock });
  return { [Symbol.asyncDispose]: async () => void (await traces?.close()) };
}

it('exports nothing without an endpoint, or where the standard variables say so', async () => {
  const { log, lines } = logged();
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };
  for (const env of [{}, { ...endpoint, OTEL_SDK_DISABLED: 'true' }, { ...endpoint, OTEL_TRACES_EXPORTER: 'none' }])
    expect(await openTraceExport(env, { log, clock: systemClock })).toBeNull();
  expect(lines).toEqual([]);
});

it.each([
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
  ['OTEL_TRACES_EXPORTER', 'zipkin'],
  ['OTEL_TRACES_SAMPLER', 'sometimes'],
  ['OTEL_TRACES_SAMPLER_ARG', '2'],
])('refuses %s=%s, naming the variable', async (name, value) => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318', [name]: value };
  await expect(openTraceExport(env, { log: logged().log, clock: systemClock })).rejects.toMatchObject({
    code: 'invalid_argument',
    message: expect.stringContaining(`${name}: `),
  });
});
