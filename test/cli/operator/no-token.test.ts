/**
 * Tests where a token must not be seen: in the arguments of processes, in the relay's log, in what commands print, and
 * in golden files.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { signToken } from '../../../src/http/tokens.ts';
import { operatorOf } from './kit/operator.ts';
import { TOKEN_SECONDS } from '../../kit/patience.ts';

const ROOT = join(import.meta.dirname, '../../..');
const SECRET = `the-secret-of-the-relay-${randomUUID()}`;
/** The administrator's token. No other process of this machine has it. */
const TOKEN = `planted-token-${randomUUID()}`;
const WRONG = `wrong-token-${randomUUID()}`;

const folder = mkdtempSync(join(tmpdir(), 'callboard-token-'));
const tokenFile = join(folder, 'token');
const children: ChildProcess[] = [];
let relayLog = '';
let url = '';

/** Starts `callboard` as a separate process. `seen` holds everything that it has printed so far. */
function start(argv: readonly string[], env: Readonly<Record<string, string>>) {
  const own = { PATH: process.env['PATH'] ?? '', XDG_CONFIG_HOME: folder };
  const child = spawn(process.execPath, ['src/bin.ts', ...argv], { cwd: ROOT, env: { ...own, ...env }, stdio: 'pipe' });
  children.push(child);
  const seen = { text: '' };
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (seen.text += String(text)));
  return { child, seen, ended: new Promise((done) => child.once('close', done)) };
}

beforeAll(async () => {
  writeFileSync(tokenFile, TOKEN);
  const { child } = start(['serve', '--json', '--port', '0', '--log-level', 'debug'], {
    CALLBOARD_SECRET: SECRET,
    CALLBOARD_ADMIN_TOKEN: `ops=${TOKEN}`,
  });
  child.stderr.on('data', (text) => (relayLog += String(text)));
  for await (const line of createInterface({ input: child.stdout })) {
    relayLog += line;
    ({ url } = JSON.parse(line));
    break;
  }
  const adding = ['context', 'add', 'stored', url, '--store-token'];
  expect(await operatorOf({ XDG_CONFIG_HOME: folder, CALLBOARD_TOKEN: TOKEN })(adding)).toMatchObject({ code: 0 });
});
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

/** Returns the arguments of every process of this machine. */
function allArguments(): string {
  const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return processes
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      } catch {
        // The process has ended since the folder was listed.
        return '';
      }
    })
    .join('\n');
}

type Source = {
  readonly source: string;
  readonly flags: readonly string[];
  readonly env: Readonly<Record<string, string>>;
};
const SOURCES: readonly Source[] = [
  { source: 'CALLBOARD_TOKEN', flags: [], env: { CALLBOARD_TOKEN: TOKEN } },
  { source: '--token-file', flags: ['--token-file', tokenFile], env: {} },
  { source: '--token-command', flags: ['--token-command', `cat ${tokenFile}`], env: {} },
  { source: 'a context that stores it', flags: ['--context', 'stored'], env: {} },
];

describe('the token', () => {
  it.skipIf(process.platform !== 'linux').each(SOURCES)(
    'of $source is in no argument of any process and in no output while a command runs',
    async ({ flags, env }) => {
      const relay = flags.includes('--context') ? {} : { CALLBOARD_URL: url };
      const watch = start(['waits', 'watch', '-o', 'jsonl', ...flags], { ...relay, ...env });
      await new Promise((printed) => watch.child.stdout.once('data', printed));
      const shown = allArguments();
      watch.child.kill('SIGINT');
      expect(await watch.ended).toBe(130);
      expect(shown).toContain(['src/bin.ts', 'waits', 'watch'].join('\0'));
      expect(shown).not.toContain(TOKEN);
      expect(watch.seen.text).toContain('"over":false');
      expect(watch.seen.text).not.toContain(TOKEN);
    },
    60_000,
  );

  it('is in no line of the relay’s log, whether it is valid or not, of an administrator or of a user', async () => {
    const user = await signToken({
      secret: SECRET,
      user: 'alice',
      scopes: ['invoke'],
      ttlSeconds: TOKEN_SECONDS,
      now: Date.now(),
    });
    const lines = [
      ...['status', 'clients ls', 'calls ls', 'messages ls alice/clients/desk', 'audit ls', 'doctor'],
      ...['preflight alice/desk open', 'call alice/desk open', 'calls cancel alice/desk/c1', 'waits watch --count 1'],
    ];
    const codes = new Map<string, number[]>();
    for (const token of [TOKEN, WRONG, user]) {
      const run = operatorOf({ CALLBOARD_URL: url, CALLBOARD_TOKEN: token });
      for (const line of lines) {
        const { code, out, err } = await run([...line.split(' '), '-o', 'json']);
        expect(out + err, line).not.toContain(token);
        codes.set(token, [...(codes.get(token) ?? []), code]);
      }
    }
    expect([codes.get(TOKEN)?.[1], codes.get(user)?.[1], codes.get(WRONG)?.[1]]).toEqual([0, 0, 4]);
    // Requests are logged in order. When the last one is logged, the log has all of them.
    const last = `/connections/alice/the-last-one/actions/open/preflight`;
    await fetch(`${url}${last}`, { method: 'POST', headers: { authorization: `Bearer ${TOKEN}` } });
    while (!relayLog.includes('the-last-one')) await new Promise(setImmediate);
    expect(relayLog).toContain('/graphql');
    for (const secret of [TOKEN, WRONG, user, SECRET]) expect(relayLog).not.toContain(secret);
  });

  it('of no kind is in a golden file', () => {
    const golden = join(import.meta.dirname, 'golden');
    const files = readdirSync(golden);
    expect(files.length).toBeGreaterThan(30);
    // Matches a signed token, the token of a grant, an authorization header, or a token of the tests.
    const token = /eyJ[\w-]{10,}\.|cbg_\w|bearer |(admin|user)-token|secret/i;
    for (const file of files) expect(readFileSync(join(golden, file), 'utf8'), file).not.toMatch(token);
  });
});
