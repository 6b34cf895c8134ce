/** Tests the completion scripts, run in each shell that is installed. */
import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../../src/clients/runtime/index.ts';
import { startRealRelay, type RealRelay } from '../../clients/kit/real-relay.ts';
import { ownFolder } from '../../kit/folder.ts';
import { operatorOf } from './kit/operator.ts';

const run = operatorOf({});

const isMissing = (shell: string): boolean => {
  try {
    execFileSync(shell, ['-c', 'true']);
    return false;
  } catch {
    return true;
  }
};

/** The lines that each shell completes, and what it must propose. */
const LINES: readonly (readonly [words: readonly string[], proposals: readonly string[]])[] = [
  [['calls', 't'], ['tail']],
  [['cl'], ['clients']],
  [['se'], ['serve']],
  [['clients', 'ls', '--st'], ['--status']],
  [
    ['calls', 'ls', '--outcome', 'c'],
    ['cancelled', 'completed'],
  ],
  [['context', 'use', 'p'], ['prod']],
];

/**
 * Creates a folder with a program `callboard`, the completion script of the shell, and a context `prod`. The program
 * prints proposals that were computed before, because starting Node for each line would take most of this test's time.
 */
async function folderOf(shell: string): Promise<string> {
  const folder = ownFolder();
  const own = operatorOf({ XDG_CONFIG_HOME: join(folder, 'config') });
  await own(['context', 'add', 'prod', 'https://relay.example']);
  writeFileSync(join(folder, 'script'), (await own(['completion', shell])).out);
  for (const [words] of LINES)
    writeFileSync(join(folder, ['__complete', ...words].join(' ')), (await own(['__complete', ...words])).out);
  writeFileSync(join(folder, 'callboard'), `#!/bin/sh\nexec cat "${folder}/$*"\n`);
  chmodSync(join(folder, 'callboard'), 0o755);
  return folder;
}

/** Runs the text of a program in a shell. The program reads `$SCRIPT`. Resolves with the lines that it prints. */
async function inShell(shell: string, folder: string, program: string): Promise<readonly string[]> {
  const env = { PATH: `${folder}:${process.env['PATH'] ?? ''}`, HOME: folder, SCRIPT: join(folder, 'script') };
  const argv = shell === 'zsh' ? ['-f', '-c', program] : ['-c', program];
  const { stdout } = await promisify(execFile)(shell, argv, { env });
  return stdout.split('\n').filter((line) => line !== '');
}

const quoted = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(' ');

/**
 * For each shell, a script that completes the given words and prints the proposals. Those for bash and zsh replace the
 * functions that only an interactive shell has.
 */
const PROGRAMS: Readonly<Record<string, (words: readonly string[]) => string>> = {
  bash: (words) =>
    `compopt() { :; }; source "$SCRIPT"; COMP_WORDS=(callboard ${quoted(words)}); COMP_CWORD=${words.length}; ` +
    `_callboard; printf '%s\\n' "\${COMPREPLY[@]}"`,
  zsh: (words) =>
    `compdef() { :; }; _files() { :; }; compadd() { shift; printf '%s\\n' "$@"; }; source "$SCRIPT"; ` +
    `words=(callboard ${quoted(words)}); CURRENT=${words.length + 1}; _callboard`,
  fish: (words) => `source $SCRIPT; complete -C 'callboard ${words.join(' ')}'`,
};

// A shell that is not installed is skipped, because nothing else can run its script.
describe.each(Object.entries(PROGRAMS))('in %s', (shell, programOf) => {
  it.skipIf(isMissing(shell))(
    'completes commands, flags, their values and contexts',
    async () => {
      const folder = await folderOf(shell);
      for (const [words, proposals] of LINES) {
        const found = await inShell(shell, folder, programOf(words));
        expect(found.toSorted(), words.join(' ')).toEqual(proposals);
      }
    },
    60_000,
  );
});

describe('values that the relay knows', () => {
  let relay: RealRelay;
  let clients: readonly Runtime[];
  beforeAll(async () => {
    relay = await startRealRelay();
    const connect = async (user: string, clientId: string): Promise<Runtime> => {
      const token = await relay.token(user, 'connect');
      const runtime = createRuntime({ url: relay.link, token, clientId, clientType: 'console' });
      runtime.handle('lamp.set', {}, () => null);
      runtime.handle('lamp.get', {}, () => null);
      runtime.connect();
      await runtime.ready();
      return runtime;
    };
    clients = [await connect('alice', 'desk'), await connect('alice', 'phone'), await connect('bob@a.example', 'till')];
    const env = { CALLBOARD_TOKEN: await relay.token('alice', 'invoke') };
    await asOf(relay.admin)(['call', 'alice/desk', 'lamp.get', '--id', 'c1'], { env });
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.close({ withinMs: 0 })));
    await relay[Symbol.asyncDispose]();
  });
  const asOf = (token: string) => operatorOf({ CALLBOARD_URL: relay.url, CALLBOARD_TOKEN: token });

  it.each([
    ['clients get ', 'alice/desk alice/phone bob@a.example/till'],
    ['clients get alice/p', 'alice/phone'],
    ['clients disconnect bob@a.example/', 'bob@a.example/till'],
    ['users get ', 'alice bob@a.example'],
    ['streams ls a', 'alice'],
    ['clients ls --user-id b', 'bob@a.example'],
    ['calls ls --client-id d', 'desk'],
    ['calls ls --user-id bob@a.example --client-id ', 'till'],
    ['calls get alice/', 'alice/desk/c1'],
    ['call al', 'alice/desk alice/phone'],
    ['call alice/desk lamp.', 'lamp.get lamp.set'],
    ['call alice/desk lamp.set o', ''],
    ['call --respond 1s al', ''],
    ['clients get nobody', ''],
  ])('complete "%s"', async (line, proposals) => {
    const { code, out, err } = await asOf(relay.admin)(['__complete', ...line.split(' ')]);
    expect([code, err]).toEqual([0, '']);
    expect(out.split('\n').filter(Boolean).toSorted().join(' ')).toBe(proposals);
  });

  it('are those of the user, for the token of a user', async () => {
    const run = asOf(await relay.token('alice', 'invoke'));
    expect((await run(['__complete', 'clients', 'get', ''])).out).toBe('alice/desk\nalice/phone\n');
    expect((await run(['__complete', 'users', 'get', ''])).out).toBe('alice\n');
    expect((await run(['__complete', 'calls', 'get', 'a'])).out).toBe('');
  });

  it('are asked of the relay that the line names', async () => {
    const run = operatorOf({ CALLBOARD_URL: 'http://127.0.0.1:1', CALLBOARD_TOKEN: relay.admin });
    expect(await run(['__complete', 'users', 'get', '--url', relay.url, 'b'])).toMatchObject({
      out: 'bob@a.example\n',
    });
  });

  it('are none, without a word, if there is no relay, no answer, no token, or a command that prints it', async () => {
    await using silent = createServer(() => {}).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const marker = join(ownFolder(), 'ran');
    for (const [env, flags] of [
      [{ CALLBOARD_URL: 'http://127.0.0.1:1', CALLBOARD_TOKEN: 'x' }, []],
      [{ CALLBOARD_URL: `http://127.0.0.1:${port}`, CALLBOARD_TOKEN: 'x' }, []],
      [{ CALLBOARD_URL: relay.url, CALLBOARD_TOKEN: 'wrong' }, []],
      [{ CALLBOARD_URL: relay.url }, []],
      [{ CALLBOARD_URL: 'no address' }, []],
      [{ CALLBOARD_URL: relay.url }, ['--token-command', `touch ${marker}; echo ${relay.admin}`]],
    ] as const)
      expect(await operatorOf(env)(['__complete', 'clients', 'get', ...flags, 'a'])).toEqual({
        code: 0,
        out: '',
        err: '',
      });
    expect(existsSync(marker)).toBe(false);
    silent.closeAllConnections();
  });
});

it('is refused for another shell', async () => {
  expect(await run(['completion', 'tcsh'])).toMatchObject({ code: 2, out: '', err: expect.stringContaining('zsh') });
});
