/** Tests which modules a relay loads at its start, and which only when they are needed. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, it } from 'vitest';
import { ownFolder } from '../kit/folder.ts';
import { ask } from './kit/http-relay.ts';

const BIN = join(import.meta.dirname, '..', '..', 'src', 'bin.ts');
/** A module that reports each module that Node loads, as a line on standard error. */
const REPORTING = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  registerHooks({ load(url, context, next) { process._rawDebug('loads ' + url); return next(url, context); } });
`)}`;

const running = new Set<ChildProcess>();
afterEach(() => running.forEach((child) => child.kill('SIGKILL')));

/**
 * Starts a relay in direct mode: a trial, unless `env` has credentials. `has` returns whether the relay has loaded a
 * package so far.
 */
async function start(env: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, ['--import', REPORTING, BIN, 'serve', '--json', '--port', '0'], {
    env: { PATH: process.env['PATH'], XDG_STATE_HOME: process.env['XDG_STATE_HOME'], ...env },
    stdio: 'pipe',
  });
  running.add(child);
  const loaded: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => line.startsWith('loads ') && loaded.push(line));
  for await (const line of createInterface({ input: child.stdout })) {
    const { url, admin_token: token, user_token: userToken } = JSON.parse(line) as Record<string, string>;
    const has = (name: string): boolean => loaded.some((one) => one.includes(`/node_modules/${name}/`));
    return { url: url ?? '', token: token ?? '', userToken: userToken ?? '', loaded, has };
  }
  throw new Error('it ended without a word');
}

const LATER = [
  ...['@graphql-yoga/render-graphiql', 'prom-client', 'ioredis', 'ajv'],
  ...['ajv-formats', '@graphql-codegen/cli', 'pino', '@modelcontextprotocol/server', '@modelcontextprotocol/core'],
];

describe('a relay in direct mode', () => {
  it('loads no module before it is needed, and then each one', async () => {
    const { url, token, loaded, has } = await start();
    await expect.poll(() => loaded.some((line) => line.endsWith('/src/cli/serve.ts'))).toBe(true);
    expect(has('graphql')).toBe(true);
    expect(LATER.filter(has)).toEqual([]);

    const headers = { 'content-type': 'application/json' };
    const query = (text: string) =>
      ask(`${url}/graphql`, { method: 'POST', token, headers, body: JSON.stringify({ query: text }) });
    for (let time = 0; time < 3; time++) expect((await query('{ users { nodes { id } } }')).status).toBe(200);
    expect((await ask(`${url}/users`, { token })).status).toBe(200);
    expect((await ask(`${url}/openapi.json`, { token })).status).toBe(200);
    expect(LATER.filter(has)).toEqual([]);

    expect((await ask(`${url}/metrics`, { token })).status).toBe(200);
    await expect.poll(() => LATER.filter(has)).toEqual(['prom-client']);
    // Once no request arrives, the relay loads what the first failed document needs.
    await expect.poll(() => has('graphql-yoga')).toBe(true);
    expect((await query('{ nothing }')).text).toContain('graphql_validation_failed');
    expect(has('@graphql-yoga/render-graphiql')).toBe(false);
    const page = await fetch(`${url}/graphql`, { headers: { accept: 'text/html' } });
    expect(await page.text()).toContain('GraphiQL');
    expect(LATER.filter(has)).toEqual(['@graphql-yoga/render-graphiql', 'prom-client']);
  });
});

describe('a trial', () => {
  it('loads what serves agents, and the package of the MCP server, with the first request of an agent', async () => {
    const { url, userToken, loaded, has } = await start();
    const own = (): readonly string[] => [
      ...new Set(loaded.flatMap((line) => /\/src\/mcp\/([\w-]+)\.ts/.exec(line)?.[1] ?? [])),
    ];
    const asked = (token: string | null) =>
      ask(`${url}/mcp`, {
        method: 'POST',
        token,
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
      });
    expect((await asked(null)).status).toBe(401);
    expect(has('@modelcontextprotocol/server')).toBe(false);
    expect(own().toSorted()).toEqual(['call-answer', 'handler', 'message', 'turn']);
    expect((await asked(userToken)).text).toContain('list_clients');
    expect(has('@modelcontextprotocol/server')).toBe(true);
    expect(own()).toEqual(expect.arrayContaining(['builtin-tools', 'calls', 'catalogs', 'schemas', 'server', 'tools']));
  });
});

describe('a relay with configured credentials', () => {
  it('has loaded what serves agents before it listens, if that is asked for', async () => {
    const credentials = { CALLBOARD_ADMIN_TOKEN: 'an-admin-token-of-this-test' };
    const served = await start({ ...credentials, CALLBOARD_MCP: 'on' });
    await expect.poll(() => served.loaded.some((line) => line.endsWith('/src/mcp/server.ts'))).toBe(true);
    expect(served.has('@modelcontextprotocol/server')).toBe(true);
    const plain = await start(credentials);
    expect(plain.has('@modelcontextprotocol/server')).toBe(false);
  });

  it('loads the code of the data directory only if it has one', async () => {
    const credentials = { CALLBOARD_ADMIN_TOKEN: 'an-admin-token-of-this-test' };
    const journal = ({ loaded }: { loaded: readonly string[] }) =>
      loaded.filter((line) => line.includes('/src/backends/journal/') || line.endsWith('node:sqlite'));
    const plain = await start(credentials);
    await expect.poll(() => plain.loaded.some((line) => line.endsWith('/src/backends/memory/backend.ts'))).toBe(true);
    expect(journal(plain)).toEqual([]);
    const kept = await start({ ...credentials, CALLBOARD_DATA_DIR: ownFolder() });
    await expect.poll(() => journal(kept).length).toBeGreaterThan(0);
  });
});

describe('a relay in a checkout', () => {
  it('does not load the type stripper of Node once its files are in the cache', () => {
    const told = `data:text/javascript,${encodeURIComponent(
      `process.on('exit', () => process._rawDebug(process.moduleLoadList.some((name) => name.includes('amaro'))))`,
    )}`;
    const version = (): string => {
      const args = ['-r', './scripts/require-node.cjs', '--import', told, 'src/bin.ts', '--version'];
      const { stderr } = spawnSync(process.execPath, args, { cwd: join(BIN, '..', '..'), encoding: 'utf8' });
      return stderr.trim();
    };
    version();
    expect(version()).toBe('false');
  });
});
