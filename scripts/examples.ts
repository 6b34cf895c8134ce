/**
 * `npm run examples [-- names]` packs both packages, installs them in a copy of each example outside the repository,
 * and runs the example's tests there. `--tarballs <folder>` uses packages that were packed before. Exits with 1 if an
 * example fails.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { z } from 'zod';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const EXAMPLES = join(ROOT, 'examples');
const PACKAGES = ['callboard', 'callboard-client'];
const MANIFEST = z.looseObject({
  version: z.string().optional(),
  dependencies: z.record(z.string(), z.string()).optional(),
  devDependencies: z.record(z.string(), z.string()).optional(),
});
type Manifest = z.infer<typeof MANIFEST>;

function readManifest(folder: string): Manifest {
  return MANIFEST.parse(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')));
}

function run(cwd: string, ...[program = '', ...args]: readonly string[]): boolean {
  return spawnSync(program, args, { cwd, stdio: ['ignore', 'inherit', 'inherit'] }).status === 0;
}

/** Packs both packages and returns the folder with the tarballs. */
function pack(folder: string): string {
  for (const packed of ['.', './dist-client'])
    if (!run(ROOT, 'npm', 'pack', packed, '--silent', '--pack-destination', folder)) process.exit(1);
  return folder;
}

/** Returns the dependencies, in which the tarballs replace the project's own packages. */
function withTarballs(dependencies: Manifest['dependencies'] = {}, tarballs: string): Record<string, string> {
  const { version = '' } = readManifest(ROOT);
  const entries = Object.entries(dependencies);
  return Object.fromEntries(
    entries.map(([name, range]) => [
      name,
      PACKAGES.includes(name) ? `file:${join(tarballs, `${name}-${version}.tgz`)}` : range,
    ]),
  );
}

/** Installs a copy of the example and runs its tests. */
function tryExample(name: string, tarballs: string, top: string): boolean {
  const folder = join(top, name);
  cpSync(join(EXAMPLES, name), folder, {
    recursive: true,
    filter: (path) => !/\/(node_modules|dist|\.next)$/.test(path),
  });
  const manifest = readManifest(folder);
  const dependencies = withTarballs(manifest.dependencies, tarballs);
  const devDependencies = withTarballs(manifest.devDependencies, tarballs);
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...manifest, dependencies, devDependencies }));
  return (
    run(folder, 'npm', 'install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error') &&
    run(folder, 'npm', 'test', '--silent')
  );
}

const { values, positionals } = parseArgs({ options: { tarballs: { type: 'string' } }, allowPositionals: true });
const all = readdirSync(EXAMPLES).filter((name) => existsSync(join(EXAMPLES, name, 'package.json')));
const unknown = positionals.filter((name) => !all.includes(name));
if (unknown.length > 0) throw new Error(`There is no example ${unknown.join(', ')}; there are ${all.join(', ')}.`);
const top = mkdtempSync(join(tmpdir(), 'callboard-examples-'));
try {
  const tarballs = values.tarballs ?? pack(top);
  const chosen = positionals.length > 0 ? positionals : all;
  const failed = chosen.filter((name) => {
    process.stdout.write(`\n== ${name}\n`);
    return !tryExample(name, tarballs, top);
  });
  process.stdout.write(
    `\n${chosen.length - failed.length} examples passed, ${failed.length} failed ${failed.join(' ')}\n`,
  );
  process.exitCode = failed.length > 0 ? 1 : 0;
} finally {
  rmSync(top, { recursive: true, force: true });
}
