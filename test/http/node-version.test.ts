/** Tests that every entry point prints one clear line on a Node that is too old. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { nodeFault } from '../../src/version.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const LINE = 'callboard needs Node 24 or newer; this is 20.20.2. https://nodejs.org/en/download has it.';
/** Imitates an old Node; loaded before the program under test. */
const OLD = ['-r', join(import.meta.dirname, 'kit', 'old-node.cjs')];
type Manifest = { readonly engines: { readonly node: string }; readonly scripts: Readonly<Record<string, string>> };
const manifest = (): Manifest => JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

function run(...args: readonly string[]): {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
} {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
  return { status, out: stdout, err: stderr };
}

describe('an old version of Node', () => {
  it.each([
    ['20.20.2', LINE],
    ['9.9.9', 'callboard needs Node 24 or newer; this is 9.9.9. https://nodejs.org/en/download has it.'],
    ['24.0.0', null],
    ['25.1.0-nightly', null],
    ['100.0.0', null],
  ])('%s: %s', (version, fault) => {
    expect(nodeFault(version)).toBe(fault);
  });

  it('has the same bound in package.json', () => {
    expect(manifest().engines.node).toBe('>=24');
  });

  it.each([
    ['the command line', 'src/bin.ts', '--version'],
    ['the scripts', '-r', './scripts/require-node.cjs', '-e', 'console.log("ran")'],
  ])('ends %s with one line and exit code 1', (_what, ...args) => {
    expect(run(...OLD, ...args)).toEqual({ status: 1, out: '', err: `${LINE}\n` });
    expect(run(...args)).toMatchObject({ status: 0, err: '' });
  });

  it('fails the import of the package with that sentence', () => {
    const { status, err } = run(...OLD, '--input-type=module', '-e', `await import('./src/index.ts')`);
    expect(status).toBe(1);
    expect(err).toContain(`Error: ${LINE}`);
  });

  it('is rejected by every script that runs Node on TypeScript', () => {
    const scripts = Object.values(manifest().scripts).filter((script) => /\bnode .*\.ts\b/.test(script));
    expect(scripts.length).toBeGreaterThan(5);
    for (const script of scripts) expect(script).toContain('node -r ./scripts/require-node.cjs ');
  });
});
