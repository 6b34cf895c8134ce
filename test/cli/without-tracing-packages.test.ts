/** Tests a relay and the client libraries where no package of OpenTelemetry is installed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { TOKEN_SECONDS } from '../kit/patience.ts';

const SRC = join(import.meta.dirname, '../../src');

/**
 * A module that makes Node find no package of OpenTelemetry, and that reports each request for one on standard error.
 */
const WITHOUT_PACKAGES = `data:text/javascript,${encodeURIComponent(`
import { registerHooks } from 'node:module';
registerHooks({ resolve: (name, context, next) => {
  if (!name.startsWith('@opentelemetry/')) return next(name, context);
  console.error('asked for ' + name);
  throw Object.assign(new Error('Cannot find package ' + name), { code: 'ERR_MODULE_NOT_FOUND' });
} });`)}`;

const moduleOf = (path: string): string => JSON.stringify(pathToFileURL(join(SRC, path)).href);

/** A program that contains a relay and a client. It makes one call over a link and one over HTTP. */
const PROGRAM = `
import { createCallboard } from ${moduleOf('index.ts')};
import { createRuntime } from ${moduleOf('clients/runtime/index.ts')};
import { createHttpCaller, createLinkCaller } from ${moduleOf('clients/caller/index.ts')};
import { signToken } from ${moduleOf('http/tokens.ts')};
for (const library of ['host', 'site', 'admin']) await import(${moduleOf('clients/')} + library + '/index.ts');
const secret = 'a secret of more than thirty-two bytes';
const relay = createCallboard({ config: { auth: { secret } } });
const url = await relay.listen();
const token = await signToken({ secret, user: 'alice', scopes: ['connect', 'invoke'], ttlSeconds: ${TOKEN_SECONDS}, now: Date.now() });
const link = { url: url.replace('http', 'ws') + '/connect', token };
const runtime = createRuntime({ ...link, clientId: 'tab', clientType: 'web' });
runtime.handle('open', {}, ({ n }) => n + 1);
runtime.connect();
await runtime.ready();
const results = [];
for (const caller of [createLinkCaller(link), createHttpCaller({ url, token })]) {
  const answer = await caller.invoke({ userId: 'alice', clientId: 'tab', action: 'open' }, { n: 1 });
  results.push([answer.outcome, answer.result]);
  await caller.close();
}
await runtime.close();
await relay.close();
console.log(JSON.stringify(results));
`;

it('calls complete over a link and over HTTP, and nothing asks for a package', async () => {
  const program = spawn(process.execPath, ['--import', WITHOUT_PACKAGES, '--input-type=module', '--eval', PROGRAM], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, error, [code]] = await Promise.all([text(program.stdout), text(program.stderr), once(program, 'exit')]);
  const completed = ['completed', 2];
  expect([error, out && JSON.parse(out), code]).toEqual(['', [completed, completed], 0]);
});

it('with an endpoint the relay starts, and says what is missing', async () => {
  const relay = spawn(
    process.execPath,
    ['--import', WITHOUT_PACKAGES, join(SRC, 'bin.ts'), 'serve', '--port', '0', '--json'],
    {
      env: { ...process.env, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let log = '';
  relay.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()));
  const [line] = (await once(relay.stdout, 'data')) as [Buffer];
  const { url } = JSON.parse(line.toString()) as { readonly url: string };
  expect((await fetch(`${url}/readyz`)).status).toBe(200);
  const ended = once(relay, 'exit');
  relay.kill('SIGTERM');
  await ended;
  expect(log).toContain('a package is missing. Run: npm install @opentelemetry/api');
  expect(log).toContain('asked for @opentelemetry/');
});
