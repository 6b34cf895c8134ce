/** Tests `callboard serve` and the other commands, run as processes. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { createDirectorySpill } from '../../src/backends/spill/directory.ts';
import { createSpillFiles } from '../../src/backends/spill/files.ts';
import { main } from '../../src/cli/main.ts';
import { trustJson } from '../../src/core/json.ts';
import { silentLog } from '../../src/core/ports.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { ownFolder } from '../kit/folder.ts';
import { ask } from './kit/http-relay.ts';

const BIN = join(import.meta.dirname, '..', '..', 'src', 'bin.ts');
const SECRET = 'a secret of more than thirty-two bytes';
const running = new Set<ChildProcess>();
afterEach(() => running.forEach((child) => child.kill('SIGKILL')));

function start(argv: readonly string[], env: Record<string, string> = {}): ChildProcess {
  const { PATH, XDG_STATE_HOME } = process.env;
  const child = spawn(process.execPath, [BIN, ...argv], { env: { PATH, XDG_STATE_HOME, ...env }, stdio: 'pipe' });
  running.add(child);
  child.on('close', () => running.delete(child));
  return child;
}

type Ended = { readonly code: number | null; readonly out: string; readonly err: string };

function end(child: ChildProcess): Promise<Ended> {
  let out = '';
  let err = '';
  child.stdout?.on('data', (chunk) => (out += chunk));
  child.stderr?.on('data', (chunk) => (err += chunk));
  return new Promise((done) => child.on('close', (code) => done({ code, out, err })));
}

async function firstLine(child: ChildProcess): Promise<Record<string, string>> {
  if (!child.stdout) throw new Error('no output');
  for await (const line of createInterface({ input: child.stdout })) return JSON.parse(line);
  throw new Error('it ended without a word');
}

describe('callboard serve', () => {
  it('prints one line of JSON with what it generated, works with it, and exits cleanly on SIGTERM', async () => {
    const child = start(['serve', '--json', '--port', '0']);
    const ended = end(child);
    const text = await firstLine(child);
    expect(Object.keys(text).sort()).toEqual(['admin_token', 'event', 'secret', 'url', 'user_token']);
    expect(text['event']).toBe('listening');
    expect((await ask(`${text['url']}/users`, { token: text['admin_token'] ?? '' })).status).toBe(200);
    const mine = await ask(`${text['url']}/connections/demo/c1/actions/ping`, {
      method: 'POST',
      token: text['user_token'] ?? '',
    });
    expect(mine.json?.['code']).toBe('not_connected');
    child.kill('SIGTERM');
    const { code, out, err } = await ended;
    expect(code).toBe(0);
    expect(out.trim().split('\n')).toHaveLength(1);
    expect(err).not.toContain(text['admin_token']);
    expect(err).toContain('"msg":"stopped"');
  });

  it('does not print configured credentials', async () => {
    const child = start(['serve', '--json', '--port', '0'], {
      CALLBOARD_SECRET: SECRET,
      CALLBOARD_ADMIN_TOKEN: 'my-own',
    });
    const ended = end(child);
    expect(Object.keys(await firstLine(child))).toEqual(['event', 'url']);
    child.kill('SIGINT');
    const { code, out, err } = await ended;
    expect(code).toBe(0);
    expect(out + err).not.toMatch(/my-own|a secret of/);
  });

  it('shows a person what to open and what to try', async () => {
    const child = start(['serve', '--port', '0', '--log-level', 'silent']);
    const ended = end(child);
    await new Promise((done) => child.stdout?.once('data', done));
    child.kill('SIGTERM');
    const { code, out, err } = await ended;
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/GraphQL editor +http:\/\/127\.0\.0\.1:\d+\/graphql#code=\S{32} /);
    expect(out).toMatch(/^export TOKEN=eyJ\S+ ADMIN=\S{32}$/m);
  });

  it('prints a client and a call that work as pasted', async () => {
    const child = start(['serve', '--port', '0', '--log-level', 'silent']);
    const ended = end(child);
    const said = await new Promise<string>((done) => child.stdout?.once('data', (text) => done(String(text))));
    const pasted = said.slice(said.indexOf('export TOKEN=')).replace(/^[A-Z].*:$/gm, '');
    const shell = spawn('bash', ['-ec', `npx() { exec "$@"; }; ${pasted}\nkill %1`], {
      env: { PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}` },
      stdio: 'pipe',
    });
    running.add(shell);
    const { code, out, err } = await end(shell);
    running.delete(shell);
    expect([code, out], err).toEqual([0, expect.stringContaining('"result":{"added":"milk"}')]);
    expect(out).toContain('"client_id":"kiosk-1"');
    child.kill('SIGTERM');
    expect((await ended).code).toBe(0);
  });

  it('waits for a running command, refuses new ones, and then exits', async () => {
    const child = start(['serve', '--json', '--port', '0']);
    const ended = end(child);
    const { url, token, socket, command, invoked } = await withCommandInFlight(child);
    child.kill('SIGTERM');
    await until(async () => (await ask(`${url}/readyz`, { token: null })).status === 503);
    const another = await ask(`${url}${PING}`, { method: 'POST', token });
    expect([another.status, another.json?.['code']]).toEqual([503, 'draining']);
    socket.send(`${JSON.stringify({ type: 'result', command_id: command['command_id'] })}\n{"pong":true}`);
    expect((await invoked)?.json).toMatchObject({ outcome: 'completed', result: { pong: true } });
    expect((await ended).code).toBe(0);
  });

  it('does not wait for a collector of spans that does not answer', async () => {
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    const collector = createServer(() => resolve()).listen(0, '127.0.0.1');
    await once(collector, 'listening');
    const address = collector.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    const child = start(['serve', '--json', '--port', '0'], {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      OTEL_TRACES_SAMPLER: 'always_on',
    });
    const ended = end(child);
    const { url, user_token: token = '' } = await firstLine(child);
    expect((await ask(`${url}${PING}`, { method: 'POST', token })).json?.['code']).toBe('not_connected');
    child.kill('SIGTERM');
    await asked;
    const { code, err } = await ended;
    expect([code, err]).toEqual([0, expect.stringContaining('the collector does not answer')]);
    collector.closeAllConnections();
    collector.close();
  });

  it('ends at once on a second signal', async () => {
    const child = start(['serve', '--json', '--port', '0']);
    const ended = end(child);
    const { url, invoked } = await withCommandInFlight(child);
    child.kill('SIGTERM');
    await until(async () => (await ask(`${url}/readyz`, { token: null })).status === 503);
    child.kill('SIGTERM');
    expect((await ended).code).toBe(130);
    expect(await invoked).toBeNull();
  });

  it('names every fault and exits with 2', async () => {
    const { code, out, err } = await end(start(['serve', '--port', 'x', '--nope'], { CALLBOARD_HOST: '0.0.0.0' }));
    expect([code, out]).toEqual([2, '']);
    for (const fault of ['--port: expected a whole number', '--nope: is not a known flag', 'CALLBOARD_HOST: 0.0.0.0']) {
      expect(err).toContain(fault);
    }
    expect(err).not.toMatch(/\n\s+at /);
  });

  it('exits with 1 if its Redis cannot be reached, with the address and the reason in one line', async () => {
    const env = { CALLBOARD_SECRET: SECRET, CALLBOARD_ADMIN_TOKEN: 'the-administrator' };
    const argv = ['serve', '--port', '0', '--redis-url', 'redis://:hunter2@127.0.0.1:1'];
    const { code, out, err } = await end(start(argv, env));
    expect([code, out]).toEqual([1, '']);
    expect(err).toBe(
      'callboard cannot start: Redis at redis://127.0.0.1:1/0 cannot be used. (connect ECONNREFUSED 127.0.0.1:1)\n',
    );
  });

  it('exits with 1 when the port is taken, without a stack', async () => {
    const first = start(['serve', '--json', '--port', '0']);
    const { url = '' } = await firstLine(first);
    const { code, err } = await end(start(['serve', '--port', new URL(url).port]));
    expect(code).toBe(1);
    expect(err).toContain('EADDRINUSE');
    expect(err).not.toMatch(/\n\s+at /);
  });
});

describe('the other commands', () => {
  it('token signs a token that a relay with the same secret accepts', async () => {
    const env = { CALLBOARD_SECRET: SECRET, CALLBOARD_ISSUER: 'me', CALLBOARD_AUDIENCE: 'you' };
    const { code, out } = await end(
      start(['token', '--user', 'Ann@Example.com', '--scope', 'invoke', '--ttl', '60'], env),
    );
    expect(code).toBe(0);
    const [, payload = ''] = out.trim().split('.');
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString());
    expect(claims).toMatchObject({ sub: 'ann@example.com', scope: 'invoke', iss: 'me', aud: 'you' });
    expect(claims.exp - claims.iat).toBe(60);
  });

  it.each([
    [['token', '--user', 'a'], 'CALLBOARD_SECRET'],
    [['token', '--user', 'a/b', '--scope', 'fly', '--ttl', '0'], '--ttl'],
    [['token'], '--user: is required'],
    [['fly'], 'There is no command "fly"'],
    [['constructor'], 'There is no command'],
    [['schema', '--x'], 'takes no flags'],
    [['spill-clean'], 'CALLBOARD_SPILL_DIR or CALLBOARD_DATA_DIR: is required'],
    [['spill-clean', '--nonsense'], 'is not a known flag'],
  ])('%j is wrong usage', async (argv, expected) => {
    let said = '';
    const env = { XDG_STATE_HOME: ownFolder() };
    const io = { env, print: () => {}, complain: (text: string) => void (said += text), onStop: () => {} };
    expect(await main(argv, io)).toBe(2);
    expect(said).toContain(expected);
  });

  it('spill-clean removes expired objects from the directory, reports how many, and keeps the others', async () => {
    const root = await mkdtemp(join(tmpdir(), 'callboard-clean-'));
    const now = Date.now();
    const clock = { now: () => now - 3 * 3600_000, monotonic: () => now, after: () => () => {}, every: () => () => {} };
    const store = createDirectorySpill({
      random: createCrypto('test'),
      files: createSpillFiles(root),
      clock,
      log: silentLog,
    });
    const text = trustJson('"payload"');
    for (const hours of [-2, -1.5, 5]) await store.put(text, now + hours * 3600_000, 'alice');
    const clean = () => end(start(['spill-clean', '--spill-dir', root]));
    expect(await clean()).toMatchObject({ code: 0, out: 'removed 2 expired payloads\n' });
    expect(await clean()).toMatchObject({ code: 0, out: 'removed 0 expired payloads\n' });
    expect(await readdir(root)).toHaveLength(1);
    await rm(root, { recursive: true });
  });

  it('schema, help and --version print and exit with 0', async () => {
    const [schema, help, version] = await Promise.all(
      [['schema'], ['help'], ['--version']].map((argv) => end(start(argv))),
    );
    expect([schema?.code, help?.code, version?.code]).toEqual([0, 0, 0]);
    expect(schema?.out).toContain('type Query {');
    expect(help?.out).toContain('--max-body-bytes <value>');
    expect(version?.out).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});

const PING = '/connections/demo/c1/actions/ping';

/**
 * Connects a client to a started relay and sends it a command, which the client does not answer. `invoked` is null if
 * the caller's connection broke.
 */
async function withCommandInFlight(child: ChildProcess) {
  const { url = '', user_token: token = '' } = await firstLine(child);
  const socket = new WebSocket(`${url.replace('http', 'ws')}/connect`, 'callboard.v1');
  const frames = framesOf(socket);
  await new Promise((open) => socket.on('open', open));
  const hello = { type: 'hello', token, client_id: 'c1', instance_id: 'i1', client_type: 'web' };
  socket.send(`${JSON.stringify(hello)}\n{"actions":[{"name":"ping"}]}`);
  expect((await frames.next()).type).toBe('welcome');
  const invoked = ask(`${url}${PING}`, { method: 'POST', token }).catch(() => null);
  const command = await frames.next();
  expect(command.type).toBe('command');
  return { url, token, socket, command, invoked };
}

type Frame = Record<string, unknown> & { readonly type: string };

function framesOf(socket: WebSocket): { next(): Promise<Frame> } {
  const queue: Frame[] = [];
  const waiting: ((frame: Frame) => void)[] = [];
  socket.on('message', (data) => {
    const frame: Frame = JSON.parse(String(data).split('\n')[0] ?? '');
    if (frame.type === 'ping') return;
    const waiter = waiting.shift();
    if (waiter) waiter(frame);
    else queue.push(frame);
  });
  return {
    next: () => {
      const frame = queue.shift();
      return frame ? Promise.resolve(frame) : new Promise((done) => waiting.push(done));
    },
  };
}

/** Polls until the condition holds. The test's own timeout bounds it. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds()));
}
