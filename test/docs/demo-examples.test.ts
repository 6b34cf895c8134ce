/** Runs the examples of the command line against the demo, with the line that the demo prints for shells. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { startDemo, until } from '../demo/kit/process.ts';
import { ownFolder } from '../kit/folder.ts';
import { ROOT, examplesOf } from './kit/examples.ts';

test('docs/cli.md runs as pasted against the demo', async () => {
  await using demo = startDemo('--browser', 'none');
  const exports = await until(
    'the line for shells',
    () => /^export CALLBOARD_URL=.+$/m.exec(demo.run.out)?.[0] ?? null,
  );
  const examples = examplesOf('docs/cli.md').filter(({ info }) => info.startsWith('demo:'));
  expect(examples.length).toBe(2);
  const script = [exports, ...examples.map((example) => example.text)].join('\n');
  const folder = ownFolder();
  const shell = spawn('bash', ['-ec', script], {
    cwd: ROOT,
    env: { PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`, HOME: folder, XDG_CONFIG_HOME: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err, [code]] = await Promise.all([text(shell.stdout), text(shell.stderr), once(shell, 'close')]);
  expect(code, `${out}${err}`).toBe(0);
  expect(out.match(/^outcome +completed$/gm)).toHaveLength(2);
  expect(out).toContain('notes.add of bob/kiosk, call milk-1\nCompleted after ');
  expect(out).toMatch(/^target +pass /m);
  expect(out).toMatch(/ reveal +revealed +params of bob\/kiosk\/milk-1 +a first look$/m);
});
