/**
 * Runs a relay in its own process, over the Redis in its settings or in direct mode. The parent process can move the
 * relay's clock, and read measurements of its event loop and heap, and its log. Arguments: the options as JSON
 * (`relay.ts`). It needs --expose-gc.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import type { Callboard } from '../../src/callboard.ts';
import { type Clock, silentLog } from '../../src/core/ports.ts';
import { serveActs } from './acts.ts';
import { createCostProbe, createTurnMeter } from './cost-probe.ts';
import { RELAY_OPTIONS } from './relay.ts';
import { SteppedClock } from './stepped-clock.ts';

// Opens a second HTTP server on a relay's core, to compare answers with and without the fast path.

/** Opens a second HTTP server over the same core, without the fast path. `at`: resolves the path of a source file. */
async function openSecondServer(
  at: (path: string) => string,
  { callboard, clock }: { readonly callboard: Callboard; readonly clock: Clock },
): Promise<{ readonly url: string }> {
  const { createApp }: typeof import('../../src/http/app.ts') = await import(at('http/app.ts'));
  const { createHttpServer }: typeof import('../../src/http/server.ts') = await import(at('http/server.ts'));
  const { createMetrics }: typeof import('../../src/platform/metrics.ts') = await import(at('platform/metrics.ts'));
  const { core, authenticator } = callboard;
  let requests = 0;
  const app = createApp({
    core,
    authenticator: { authenticate: (token) => authenticator.authenticate(token), recall: () => null },
    log: silentLog,
    meter: createMetrics(),
    clock,
    randomId: () => `request-${requests++}`,
    basePath: '',
    maxBodyBytes: 1024 * 1024,
    origins: { allowedOrigins: [], trustProxy: true },
    introspection: 'admin',
    clientFiles: new URL('../../dist/clients/', import.meta.url),
    version: '0.0.0',
    fastPath: false,
  });
  const { url } = await createHttpServer(app.requestHandler).listen({ host: '127.0.0.1', port: 0 });
  return { url };
}

const options = RELAY_OPTIONS.parse(JSON.parse(process.argv[2] ?? '{}'));
const at = (path: string): string => pathToFileURL(join(options.source, path)).href;
const { openCallboard }: typeof import('../../src/callboard.ts') = await import(at('callboard.ts'));
const { createLog }: typeof import('../../src/platform/log.ts') = await import(at('platform/log.ts'));

const clock = options.clock === 'real' ? undefined : new SteppedClock(options.startAt);
const errors: string[] = [];
/** Each logged error is a finding, because the log contains errors that answers hide. */
const log = createLog({ level: 'error', secrets: [], sink: { write: (line) => void errors.push(line) } });
const callboard = await openCallboard({
  config: { auth: { adminTokens: [options.adminToken], secret: options.secret }, trustProxy: true, ...options.config },
  log,
  ...(clock && { clock }),
});
const url = await callboard.listen();
const second = options.secondServer && clock ? await openSecondServer(at, { callboard, clock }) : null;
const meter = createTurnMeter();
const probe = createCostProbe(meter);

/**
 * Collects garbage several times, and returns the smallest measured heap. Memory is read directly after each
 * collection, because under load some MiB of new garbage arise within a few milliseconds.
 */
async function afterCollections(): Promise<NodeJS.MemoryUsage> {
  let least: NodeJS.MemoryUsage | null = null;
  for (let round = 0; round < 4; round++) {
    if (round > 0) await new Promise((done) => setTimeout(done, 50));
    await globalThis.gc?.({ type: 'major', execution: 'async' });
    const now = process.memoryUsage();
    if (least === null || now.heapUsed < least.heapUsed) least = now;
  }
  return least ?? process.memoryUsage();
}

serveActs({
  at: () => ({ url, secondUrl: second?.url ?? null }),
  /** Returns measurements of the event loop, and the errors logged since the last call. */
  turns: () => ({ ...meter.take(), errors: errors.splice(0) }),
  async advance(given) {
    const { ms } = z.object({ ms: z.number() }).parse(given);
    await clock?.advance(ms);
    return null;
  },
  run(given) {
    clock?.run(z.object({ factor: z.number() }).parse(given).factor);
    return null;
  },
  /** Returns the CPU time, user and system, since the process started, in milliseconds. */
  cpu() {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  },
  costBegin() {
    probe.begin();
    return null;
  },
  costEnd: (given) => probe.end(z.object({ withinMs: z.number() }).parse(given).withinMs),
  async memory() {
    const { rss, heapUsed, external, arrayBuffers } = await afterCollections();
    meter.take();
    return { rss, heap: heapUsed, external, arrayBuffers };
  },
});
