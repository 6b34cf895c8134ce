/** Tests what a command loads: the operators' commands and their library are loaded only when one of them runs. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';

const ROOT = join(import.meta.dirname, '../../..');
/** A module that prints the address of each module that Node loads. */
const HOOK = `data:text/javascript,${encodeURIComponent(`
import { registerHooks } from 'node:module';
registerHooks({ load(url, context, next) { process.stderr.write('LOADED ' + url + '\\n'); return next(url, context); } });
`)}`;

/** Returns the modules that a command loads. The command is stopped when it has printed something. */
async function loadedBy(...argv: string[]): Promise<readonly string[]> {
  const { PATH, XDG_STATE_HOME } = process.env;
  const env = { PATH, XDG_STATE_HOME, XDG_CONFIG_HOME: '/nonexistent', CALLBOARD_PORT: '0' };
  const child = spawn(process.execPath, ['--import', HOOK, 'src/bin.ts', ...argv], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  child.stdout.once('data', () => child.kill('SIGINT'));
  const lines = (await text(child.stderr)).split('\n');
  return lines.filter((line) => line.startsWith('LOADED ')).map((line) => line.slice('LOADED '.length));
}

const has = (modules: readonly string[], part: string): boolean => modules.some((url) => url.includes(part));

it('serve loads no Stricli and no command of operators', async () => {
  const modules = await loadedBy('serve', '--json');
  expect(has(modules, '/src/callboard.ts')).toBe(true);
  expect([has(modules, '@stricli'), has(modules, '/cli/verbs.ts'), has(modules, '/generated/cli.ts')]).toEqual([
    false,
    false,
    false,
  ]);
});

it('a command of operators loads its own code and no other', async () => {
  const modules = await loadedBy('context', 'ls');
  expect([has(modules, '@stricli'), has(modules, '/cli/run/local.ts')]).toEqual([true, true]);
  expect([has(modules, '/cli/run/calls.ts'), has(modules, '/src/callboard.ts')]).toEqual([false, false]);
});
