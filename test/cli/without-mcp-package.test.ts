/** Tests a relay where the package of the MCP server is not installed. */
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

function start(env: Readonly<Record<string, string>>) {
  const { PATH = '', XDG_STATE_HOME = '' } = process.env;
  const argv = ['--import', WITHOUT_PACKAGE, BIN, 'serve', '--port', '0', '--json'];
  return spawn(process.execPath, argv, { env: { PATH, XDG_STATE_HOME, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
}

it('with MCP=on it refuses to start, and prints the command that installs the package', async () => {
  const relay = start({ CALLBOARD_MCP: 'on' });
  let said = '';
  relay.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const [code] = await once(relay, 'close');
  expect([code, said]).toEqual([2, expect.stringContaining('npm install @modelcontextprotocol/server')]);
}, 60_000);

it('a trial starts without it, and serves no agents', async () => {
  const relay = start({});
  const [line] = (await once(relay.stdout, 'data')) as [Buffer];
  const { url, user_token: token } = JSON.parse(line.toString()) as Record<string, string>;
  const answer = await fetch(`${url}/mcp`, { method: 'POST', headers: { authorization: `Bearer ${token}` } });
  expect(answer.status).toBe(404);
  const ended = once(relay, 'exit');
  relay.kill('SIGTERM');
  await ended;
}, 60_000);
