/** Tests the credentials that a relay makes if none are configured: they are kept, replaced, or refused. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { main } from '../../src/cli/main.ts';
import { keepTrial } from '../../src/cli/trial-credentials.ts';
import { readConfig } from '../../src/config.ts';
import { VERSION } from '../../src/version.ts';
import { readSource } from '../architecture/imports.ts';
import { ask } from '../http/kit/http-relay.ts';
import { ownFolder } from '../kit/folder.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const running = new Set<ChildProcess>();
afterEach(() => running.forEach((child) => child.kill('SIGKILL')));

/** Starts a trial as a process and returns what it prints at its start. */
async function startTrial(state: string, ...flags: readonly string[]) {
  const child = spawn(process.execPath, ['src/bin.ts', 'serve', '--json', '--port', '0', ...flags], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], XDG_STATE_HOME: state },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  let complained = '';
  child.stderr.on('data', (chunk) => (complained += chunk));
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  const started: { url: string; admin_token: string; secret: string; user_token: string } = JSON.parse(String(line));
  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<void> => {
    child.kill(signal);
    await once(child, 'exit');
  };
  return { ...started, stop, complained: () => complained };
}

/** Reads the configuration of a trial whose state is in this folder. `said`: what it complained. */
function trialIn(state: string, fresh = false) {
  let said = '';
  const complain = (line: string): void => void (said += line);
  const { config, keptIn } = keepTrial(readConfig({}, []), fresh, { env: { XDG_STATE_HOME: state }, complain });
  return { token: config.auth.adminTokens[0], secret: config.auth.secret, keptIn, said };
}

function fileIn(state: string): string {
  const [trial = ''] = readdirSync(join(state, 'callboard'));
  return join(state, 'callboard', trial, 'credentials.json');
}

/** Runs a command in this process with the state of a trial. */
async function runWith(state: string, argv: readonly string[]) {
  let [out, err] = ['', ''];
  const code = await main(argv, {
    env: { XDG_STATE_HOME: state },
    print: (line) => void (out += line),
    complain: (line) => void (err += line),
    onStop: () => {},
  });
  return { code, out, err };
}

describe('a trial', () => {
  it('accepts the tokens of the run before, and another sign-in', async () => {
    const state = ownFolder();
    const first = await startTrial(state);
    await first.stop();
    const { url, stop } = await startTrial(state);
    for (const token of [first.admin_token, first.user_token])
      expect((await ask(`${url}/graphql?query={viewer{kind}}`, { token })).status).toBe(200);
    const { code, out } = await runWith(state, ['console', '--url', url]);
    expect(code).toBe(0);
    const body = JSON.stringify({ code: /#code=(\S+)/.exec(out)?.[1] });
    const headers = { 'content-type': 'application/json' };
    const signedIn = await ask(`${url}/sign-in`, { method: 'POST', headers, body, token: null });
    expect((await ask(`${url}/users`, { token: String(signedIn.json?.['token']) })).status).toBe(200);
    await stop();
  });

  it('refuses the tokens of the run before with --fresh', async () => {
    const state = ownFolder();
    const first = await startTrial(state);
    await first.stop();
    const { url, admin_token, stop } = await startTrial(state, '--fresh');
    expect((await ask(`${url}/users`, { token: first.admin_token })).status).toBe(401);
    expect((await ask(`${url}/users`, { token: admin_token })).status).toBe(200);
    await stop();
    expect(trialIn(state).token).toBe(admin_token);
  });
});

describe('the data of a trial', () => {
  const WAITS = { method: 'POST', headers: { 'content-type': 'application/json' } };
  const status = '/delivery/status?user_id=demo&client_id=c1&command_id=k1';

  it('outlives a kill: a command that waited for its client still waits', async () => {
    const state = ownFolder();
    const first = await startTrial(state);
    const body = JSON.stringify({ command_id: 'k1', connect_within_ms: 100_000, wait_for: 'admitted' });
    const path = '/connections/demo/c1/actions/ping';
    const admitted = await ask(first.url + path, { ...WAITS, body, token: first.user_token });
    expect(admitted.json).toMatchObject({ command_id: 'k1', stage: 'admitted' });
    await first.stop('SIGKILL');
    const { url, admin_token, stop } = await startTrial(state);
    const found = await ask(url + status, { token: admin_token });
    expect(found.json).toMatchObject({ command_id: 'k1', stage: 'admitted' });
    await stop();
  });

  it('is left to the first of two trials: the second says so in one line, and keeps nothing', async () => {
    const state = ownFolder();
    const first = await startTrial(state);
    const second = await startTrial(state);
    const lines = second.complained().split('\n');
    const told = lines.filter((line) => line.startsWith('This trial keeps nothing but its credentials: '));
    expect(told).toEqual([expect.stringMatching(/in use by another process/)]);
    expect((await ask(`${second.url}/users`, { token: first.admin_token })).status).toBe(200);
    await second.stop();
    await first.stop();
  });

  it('refuses the start if the directory was asked for', async () => {
    const state = ownFolder();
    const first = await startTrial(state);
    const [trial = ''] = readdirSync(join(state, 'callboard'));
    const { code, err } = await runWith(state, ['serve', '--data-dir', join(state, 'callboard', trial, 'data')]);
    expect([code, err]).toEqual([1, expect.stringMatching(/^callboard cannot start: .* is in use by another process/)]);
    await first.stop();
  });
});

describe('the file of the credentials', () => {
  it('belongs to its user alone, in a directory for one checkout', () => {
    const state = ownFolder();
    const { keptIn, token, secret, said } = trialIn(state);
    expect([keptIn, said]).toEqual([fileIn(state), '']);
    expect(keptIn).toMatch(/\/callboard\/checkout-[0-9a-f]{12}\/credentials\.json$/);
    expect(statSync(fileIn(state)).mode & 0o777).toBe(0o600);
    expect(statSync(join(state, 'callboard')).mode & 0o777).toBe(0o700);
    expect(JSON.parse(readFileSync(fileIn(state), 'utf8'))).toEqual({ admin_token: token, secret });
    expect(readdirSync(join(fileIn(state), '..'))).toEqual(['credentials.json']);
    expect(trialIn(state)).toEqual({ keptIn, token, secret, said: '' });
  });

  const DAMAGES: readonly (readonly [what: string, damage: (file: string) => void, says: string])[] = [
    ['is damaged', (file) => writeFileSync(file, '{"admin_token":"x"'), 'does not hold the credentials of a trial'],
    [
      'has empty keys',
      (file) => writeFileSync(file, '{"admin_token":"","secret":""}'),
      'does not hold the credentials',
    ],
    ['may be read by others', (file) => chmodSync(file, 0o640), 'others may read it; --fresh writes it again'],
  ];
  it.each(DAMAGES)('is not used if it %s: one line says so, and --fresh mends it', async (_, damage, says) => {
    const state = ownFolder();
    const first = trialIn(state);
    damage(fileIn(state));
    const second = trialIn(state);
    expect([second.keptIn, second.token === first.token]).toEqual([null, false]);
    expect(second.said).toMatch(/^The credentials of this trial last for this run only: \/.*\n$/);
    expect(second.said).toContain(says);
    expect((await runWith(state, ['console'])).err).toContain(says);
    expect(trialIn(state, true).keptIn).toBe(fileIn(state));
    expect(trialIn(state).said).toBe('');
  });

  it('is not used if it belongs to another user, or is a link', () => {
    const state = ownFolder();
    trialIn(state);
    const linked = ownFolder();
    mkdirSync(join(linked, 'callboard', join(fileIn(state), '..').split('/').at(-1) ?? ''), { recursive: true });
    symlinkSync(fileIn(state), fileIn(linked));
    expect(trialIn(linked)).toMatchObject({ keptIn: null, said: expect.stringContaining('ELOOP') });
    // Only root may give a file away.
    if (process.getuid?.() !== 0) return;
    chownSync(fileIn(state), 12_345, 12_345);
    expect(trialIn(state)).toMatchObject({ keptIn: null, said: expect.stringContaining('belongs to another user') });
  });

  it('is not needed where nothing can be written', () => {
    const file = join(ownFolder(), 'file');
    writeFileSync(file, '');
    const { keptIn, token, said } = trialIn(file);
    expect([keptIn, token?.length]).toEqual([null, 32]);
    expect(said.split('\n')).toHaveLength(2);
    expect(said).toContain('ENOTDIR');
  });

  it('is not written for configured credentials, and --fresh is refused for them', async () => {
    const state = ownFolder();
    const config = readConfig({ CALLBOARD_ADMIN_TOKEN: 'my-own' }, []);
    const io = { env: { XDG_STATE_HOME: state }, complain: () => {} };
    expect(keepTrial(config, false, io)).toEqual({ config, keptIn: null });
    expect(() => keepTrial(config, true, io)).toThrow('--fresh: makes new credentials of a trial');
    expect(readdirSync(state)).toEqual([]);
    expect(await runWith(state, ['console'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('CALLBOARD_SECRET'),
    });
  });
});

/** The programs whose callers pass credentials. */
const CONFIGURED = ['deploy/relay-process.ts'];

it('every program beside src that starts a relay says where it keeps credentials, or configures them', () => {
  const sources = ['test', 'faults', 'bench', 'scripts'].flatMap((folder) => readSource(folder));
  const starting = sources.filter(
    (file) => /\[[^[\]]*'(serve|demo)'/.test(file.text) && /spawn|startExample/.test(file.text),
  );
  expect(starting.length).toBeGreaterThan(10);
  const silent = starting.filter((file) => !/XDG_STATE_HOME|process\.env,|CALLBOARD_SECRET/.test(file.text));
  expect(silent.map(({ path }) => path)).toEqual(CONFIGURED);
});

describe('a port that is taken', () => {
  const serveAt = async (port: number): Promise<string> => {
    const child = spawn(process.execPath, ['src/bin.ts', 'serve', '--port', String(port)], {
      cwd: ROOT,
      env: { PATH: process.env['PATH'], XDG_STATE_HOME: process.env['XDG_STATE_HOME'] },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
    expect(code).toBe(1);
    return said;
  };

  it('is explained by the relay that holds it', async () => {
    const { url, stop } = await startTrial(ownFolder());
    const { json } = await ask(`${url}/healthz`, { token: null });
    expect(json).toEqual({ status: 'ok', version: VERSION, node_id: expect.any(String), pid: expect.any(Number) });
    const port = Number(new URL(url).port);
    expect(await serveAt(port)).toBe(
      `EADDRINUSE: port ${port} of 127.0.0.1 is taken by the relay ${json?.['node_id']} (callboard ${VERSION}, process ${json?.['pid']}).
Stop that relay (kill ${json?.['pid']}), or choose another port, as with: npm run callboard -- serve --port ${port + 1}
`,
    );
    const forwarded = await ask(`${url}/healthz`, { token: null, headers: { 'x-forwarded-for': '192.0.2.1' } });
    expect(forwarded.json).toEqual({ status: 'ok' });
    await stop();
  });

  it('is explained for another program', async () => {
    const server = createServer((_, response) => response.end('{"status":"ok"}')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    expect(await serveAt(port)).toContain(
      `port ${port} of 127.0.0.1 is taken by a program that is no callboard.\nStop that`,
    );
    server.close();
  });
});

describe('npm start', () => {
  /** Runs `npm start` as a user does, in a process group of its own. */
  async function npmStart() {
    const env = {
      ...process.env,
      XDG_STATE_HOME: ownFolder(),
      PATH: `${join(ROOT, 'node_modules/.bin')}:${process.env['PATH'] ?? ''}`,
    };
    const npm = spawn('npm', ['start', '--', '--port', '0'], {
      cwd: ROOT,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    running.add(npm);
    let [out, err] = ['', ''];
    const told = Promise.withResolvers<void>();
    npm.stderr.on('data', (part) => (err += String(part)));
    npm.stdout.on('data', (part) => {
      out += String(part);
      if (out.includes('export TOKEN=')) told.resolve();
    });
    const ended = once(npm, 'close');
    await Promise.race([told.promise, ended]);
    const url = /listening at (\S+)/.exec(out)?.[1] ?? '';
    const { json } = await ask(`${url}/healthz`, { token: null });
    return { npm, url, out, pid: Number(json?.['pid']), ended, err: () => err };
  }

  it('passes a signal on to the relay, and names the line that signs in again', async () => {
    const { npm, url, out, ended, err } = await npmStart();
    expect(out).toContain(`sign in again   npm run callboard -- console --url ${url}\n`);
    npm.kill('SIGTERM');
    await ended;
    expect(err()).toContain('"msg":"stopped"');
    await expect(fetch(url)).rejects.toThrow('fetch failed');
  });

  it('drains on Ctrl-C, which reaches the relay from the terminal and from npm', async () => {
    const { npm, ended, err } = await npmStart();
    process.kill(-(npm.pid ?? 0), 'SIGINT');
    await ended;
    expect(err()).toContain('"msg":"stopped"');
  });
});
