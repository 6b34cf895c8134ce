/** Tests a relay where the package of the MCP server is not installed, or cannot be loaded at first. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const BIN = join(import.meta.dirname, '..', '..', 'src', 'bin.ts');

/** A module that makes Node find no package of the MCP server. */
const WITHOUT_PACKAGE = `data:text/javascript,${encodeURIComponent(`
import { registerHooks } from 'node:module';
import Module from 'node:module';
const isAbsent = (name) => name.startsWith('@modelcontextprotocol/');
const absent = (name) => Object.assign(new Error('Cannot find package ' + name), { code: 'MODULE_NOT_FOUND' });
registerHooks({ resolve: (name, context, next) => { if (isAbsent(name)) throw absent(name); return next(name, context); } });
const resolve = Module._resolveFilename;
Module._resolveFilename = (name, ...rest) => { if (isAbsent(name)) throw absent(name); return resolve(name, ...rest); };
`)}`;

/** A module that makes the first import of the package of the MCP server fail. */
const FAILS_ONCE = `data:text/javascript,${encodeURIComponent(`
import { registerHooks } from 'node:module';
let failed = false;
registerHooks({
  resolve(name, context, next) {
    if (failed || name !== '@modelcontextprotocol/server' || context.conditions.includes('require')) return next(name, context);
    failed = true;
    throw new Error('the disk failed');
  },
});
`)}`;

function start(env: Readonly<Record<string, string>>, preloaded = WITHOUT_PACKAGE) {
  const { PATH = '', XDG_STATE_HOME = '' } = process.env;
  const argv = ['--import', preloaded, BIN, 'serve', '--port', '0', '--json'];
  return spawn(process.execPath, argv, { env: { PATH, XDG_STATE_HOME, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
}

it('with MCP=on it refuses to start, and prints the command that installs the package', async () => {
  const relay = start({ CALLBOARD_MCP: 'on' });
  let said = '';
  relay.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const [code] = await once(relay, 'close');
  expect([code, said]).toEqual([2, expect.stringContaining('npm install @modelcontextprotocol/server')]);
});

it('a trial starts without it, and serves no agents', async () => {
  const relay = start({});
  const [line] = (await once(relay.stdout, 'data')) as [Buffer];
  const { url, user_token: token } = JSON.parse(line.toString()) as Record<string, string>;
  const answer = await fetch(`${url}/mcp`, { method: 'POST', headers: { authorization: `Bearer ${token}` } });
  expect(answer.status).toBe(404);
  const ended = once(relay, 'exit');
  relay.kill('SIGTERM');
  await ended;
});

it('a package that could not be loaded is loaded with the next request', async () => {
  const relay = start({ CALLBOARD_LOG_LEVEL: 'info' }, FAILS_ONCE);
  let logged = '';
  relay.stderr.on('data', (chunk: Buffer) => (logged += chunk.toString()));
  const [line] = (await once(relay.stdout, 'data')) as [Buffer];
  const { url, user_token: token } = JSON.parse(line.toString()) as Record<string, string>;
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  };
  const body = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
  const ask = () => fetch(`${url}/mcp`, { method: 'POST', headers, body });
  const failed = await ask();
  expect([failed.status, await failed.json()]).toMatchObject([500, { code: 'internal' }]);
  const served = await ask();
  expect([served.status, await served.text()]).toEqual([200, expect.stringContaining('list_clients')]);
  const ended = once(relay, 'close');
  relay.kill('SIGTERM');
  await ended;
  expect(logged).toContain('the disk failed');
});
