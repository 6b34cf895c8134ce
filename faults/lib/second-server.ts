/** Opens a second HTTP server on a relay's core, to compare answers with and without the fast path. */
import type { Callboard } from '../../src/callboard.ts';
import { silentLog, type Clock } from '../../src/core/ports.ts';

/** Opens a second HTTP server over the same core, without the fast path. `at`: resolves the path of a source file. */
export async function openSecondServer(
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
