/** Tests the completion scripts, run in each shell that is installed. */
import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
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

it('is refused for another shell', async () => {
  expect(await run(['completion', 'tcsh'])).toMatchObject({ code: 2, out: '', err: expect.stringContaining('zsh') });
});
