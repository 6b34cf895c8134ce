/** Tests the metrics endpoint: its token, its formats and what it shows. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { METRICS } from '../../src/core/metrics/metric-texts.ts';
import { formatFor } from '../../src/http/metrics-route.ts';
import { parseExposition, type ParsedFamily } from '../metrics/kit/exposition.ts';
import { RELAYS } from '../kit/store.ts';
import { until } from '../relay/kit/test-relay.ts';
import { ADMIN, postJson, SECRET, startHttpRelay, tokenOf, type HttpRelay } from './kit/http-relay.ts';

const SCRAPER = 'planted-token-of-the-scraper-000001';
const OPENMETRICS =
  'application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2';

let relay: HttpRelay;
beforeAll(async () => {
  relay = await startHttpRelay({ auth: { adminTokens: [ADMIN], secret: SECRET, metricsToken: SCRAPER } });
});
afterAll(() => relay[Symbol.asyncDispose]());

async function families(at: HttpRelay): Promise<ReadonlyMap<string, ParsedFamily>> {
  return parseExposition((await at.ask('/metrics')).text);
}

/** Resolves with the number of requests to this route that were measured. */
async function measured(at: HttpRelay, route: string): Promise<number> {
  const samples = (await families(at)).get('callboard_http_seconds')?.samples ?? [];
  const count = samples.find(({ name, labels }) => name.endsWith('_count') && labels['route'] === route);
  return count?.value ?? 0;
}

describe('the token of the scraper', () => {
  it('reads the metrics', async () => {
    const answer = await relay.ask('/metrics', { token: SCRAPER });
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
    expect((await relay.ask('/metrics', { token: SCRAPER, method: 'HEAD' })).status).toBe(200);
  });

  it.each([
    ['/users', {}],
    ['/delivery/summary', {}],
    ['/graphql', postJson({ query: '{ delivery { summary { trackedCommands } } }' })],
    ['/graphql', postJson({ query: '{ series(names: ["requests"], windowSeconds: 60) { items { name } } }' })],
    ['/connect', {}],
    ['/ingest', postJson({ messages: [] })],
  ])('is not known to %s', async (path, requested) => {
    expect((await relay.ask(path, { ...requested, token: SCRAPER })).status).toBe(401);
  });

  it('has to be the whole token, in the header', async () => {
    for (const token of [SCRAPER.slice(0, -1), `${SCRAPER}x`, SCRAPER.toUpperCase()])
      expect((await relay.ask('/metrics', { token })).status).toBe(401);
    expect((await relay.ask(`/metrics?token=${SCRAPER}`, { token: null })).status).toBe(401);
  });

  it('can be replaced while the relay runs', async () => {
    await using other = await startHttpRelay({ auth: { adminTokens: [ADMIN], secret: SECRET, metricsToken: SCRAPER } });
    const next = `${SCRAPER}-next`;
    other.callboard.replaceCredentials({ adminTokens: [ADMIN], secret: SECRET, metricsToken: next });
    const statuses = [SCRAPER, next, ADMIN].map(async (token) => (await other.ask('/metrics', { token })).status);
    expect(await Promise.all(statuses)).toEqual([401, 200, 200]);
  });

  it('admits no request if none is set', async () => {
    await using other = await startHttpRelay();
    expect((await other.ask('/metrics', { token: 'undefined' })).status).toBe(401);
    expect((await other.ask('/metrics', { token: null })).status).toBe(401);
  });

  it('does not open the metrics to users', async () => {
    const token = await tokenOf('alice', 'connect', 'invoke', 'host');
    expect((await relay.ask('/metrics', { token })).status).toBe(403);
  });

  it('appears in no line of the log', () => {
    expect(relay.lines.join('\n')).not.toContain(SCRAPER);
  });
});

describe('the format', () => {
  it.each([
    [undefined, 'text'],
    ['*/*', 'text'],
    ['text/plain', 'text'],
    ['application/openmetrics-text', 'openmetrics'],
    ['application/openmetrics-text; version=1.0.0', 'openmetrics'],
    [OPENMETRICS, 'openmetrics'],
    ['text/plain;q=0.9, application/openmetrics-text;q=0.5', 'text'],
    ['application/openmetrics-text;q=0, */*', 'text'],
    ['application/openmetrics-text;q=nonsense', 'text'],
    ['application/json', 'text'],
  ])('for Accept %s is %s', (accept, format) => {
    expect(formatFor(accept)).toBe(format);
  });

  it('is OpenMetrics for a Prometheus that asks for it', async () => {
    const answer = await relay.ask('/metrics', { token: SCRAPER, headers: { accept: OPENMETRICS } });
    expect(answer.headers['content-type']).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
    expect(answer.headers['vary']).toContain('accept');
    expect(parseExposition(answer.text, { openMetrics: true }).get('callboard_requests')?.type).toBe('counter');
  });
});

describe('what is exposed', () => {
  it('is exactly what the list of metrics says', async () => {
    const exposed = [...(await families(relay))].filter(([name]) => name.startsWith('callboard_'));
    const listed = METRICS.map(({ exposedName, type, help }) => [exposedName, type, help]);
    expect(exposed.map(([name, { type, help }]) => [name, type, help]).sort()).toEqual(listed.sort());
    const labels = new Map(METRICS.map(({ exposedName, label }) => [exposedName, label]));
    for (const [name, { samples }] of exposed)
      for (const sample of samples) {
        const own = Object.keys(sample.labels).filter((key) => key !== 'le');
        expect([name, own]).toEqual([name, labels.get(name) === null ? [] : [labels.get(name)]]);
      }
  });

  it('says whether the node is ready, and how many nodes report', async () => {
    const value = async (at: HttpRelay, name: string, state?: string): Promise<number | undefined> =>
      (await families(at)).get(name)?.samples.find(({ labels }) => labels['state'] === state)?.value;
    await using other = await startHttpRelay();
    expect(await value(other, 'callboard_ready')).toBe(1);
    // With owners, a relay learns with its next lease that another one reports.
    await expect.poll(() => value(other, 'callboard_nodes', 'live')).toBe(RELAYS);
    expect(await value(other, 'callboard_nodes', 'stale')).toBe(0);
    await other.callboard.core.drain(0);
    expect((await other.ask('/readyz')).status).toBe(503);
    expect(await value(other, 'callboard_ready')).toBe(0);
  });

  it('measures requests by the template of their path, and no event stream', async () => {
    const before = await measured(relay, '/users/{user_id}');
    await relay.ask('/users/alice');
    await relay.ask('/users/bob');
    await relay.ask('/graphql', postJson({ query: '{ __typename }' }));
    await until(async () => (await measured(relay, '/users/{user_id}')) === before + 2);
    const graphql = await measured(relay, '/graphql');
    const stream = postJson({ query: 'subscription { pendingRpcAlerts(olderThanMs: 1000) { over } }' });
    const opened = await fetch(`${relay.url}/graphql`, {
      ...{ method: 'POST', body: String(stream.body) },
      headers: { ...stream.headers, authorization: `Bearer ${ADMIN}`, accept: 'text/event-stream' },
    });
    expect(opened.headers.get('content-type')).toContain('text/event-stream');
    await opened.body?.cancel();
    await relay.ask('/healthz');
    await until(async () => (await measured(relay, '/healthz')) > 0);
    expect(await measured(relay, '/graphql')).toBe(graphql);
    expect(graphql).toBeGreaterThan(0);
  });

  it('shows at most 64 series of a metric, and reports that there would be more', async () => {
    const paths = [
      'users',
      'connections',
      'actions',
      'contexts',
      'workers',
      'sites',
      'rpc/pending',
      'rpc/pending/count',
    ];
    const more = ['delivery/nodes', 'delivery/summary', 'delivery/tenants', 'dedup/stats', 'dedup/backend', 'healthz'];
    const rest = ['readyz', 'browser-windows', 'contexts/count', 'rpc/pending/count-by-node', 'history/streams'];
    for (const path of [...paths, ...more, ...rest]) await relay.ask(`/${path}`);
    const names = ['p50', 'p90', 'p95', 'p99'].map((quantile) => `http_${quantile}`);
    const query = `{ series(names: ${JSON.stringify(names)}, windowSeconds: 3600) {
      items { name } completeness { complete sources { source observed limit reason } } } }`;
    const { json } = await relay.ask('/graphql', postJson({ query }));
    const { items, completeness } = (json?.['data'] as { series: { items: unknown[]; completeness: unknown } }).series;
    expect(items).toHaveLength(64);
    expect(completeness).toMatchObject({
      complete: false,
      sources: expect.arrayContaining([{ source: 'METRICS', observed: 64, limit: 64, reason: 'LIMIT_REACHED' }]),
    });
  });
});
