/** Serves a relay's core without the fast path, to compare answers. */
import { silentLog } from '../../../src/core/ports.ts';
import { createApp } from '../../../src/http/app.ts';
import { createHttpServer } from '../../../src/http/server.ts';
import { createMetrics } from '../../../src/platform/metrics.ts';
import { VERSION } from '../../../src/version.ts';
import type { TestRelay } from './test-relay.ts';

/** Serves the core of a relay a second time, without the fast path. */
export async function startSlowRelay({
  callboard,
  clock,
}: TestRelay): Promise<AsyncDisposable & { readonly url: string }> {
  const { core, authenticator } = callboard;
  const meter = createMetrics();
  let requests = 0;
  const app = createApp({
    core,
    authenticator: { authenticate: (token) => authenticator.authenticate(token), recall: () => null },
    log: silentLog,
    meter,
    clock,
    randomId: () => `request-${requests++}`,
    basePath: '',
    maxBodyBytes: 1024 * 1024,
    origins: { allowedOrigins: [], trustProxy: false },
    introspection: 'admin',
    clientFiles: new URL('../../../dist/clients/', import.meta.url),
    version: VERSION,
    fastPath: false,
  });
  const server = createHttpServer(app.requestHandler);
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
  return {
    url,
    async [Symbol.asyncDispose]() {
      await app.close();
      await server.close();
      meter.close();
    },
  };
}
