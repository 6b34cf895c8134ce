/**
 * `npm run interop`: installs the libraries of test/interop/package.json, writes the examples of docs/graphql-clients.md as
 * files, compiles the Relay app by its relay.config.json, and runs everything with a real relay.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RECIPES, writeRecipes } from './kit/recipes.ts';

const HERE = import.meta.dirname;
const ROOT = join(HERE, '../..');

function run(cwd: string, program: string, ...args: readonly string[]): void {
  const { status } = spawnSync(program, args, { cwd, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

/** Installs the libraries, but only if the lock file differs from the one of the last installation. */
function install(): void {
  const lock = readFileSync(join(HERE, 'package-lock.json'), 'utf8');
  const installed = join(HERE, 'node_modules/.installed-lock.json');
  if (existsSync(installed) && readFileSync(installed, 'utf8') === lock) return;
  run(HERE, 'npm', 'ci');
  writeFileSync(installed, lock);
}

install();
writeRecipes();
run(RECIPES, join(HERE, 'node_modules/.bin/relay-compiler'));
run(ROOT, join(ROOT, 'node_modules/.bin/tsc'), '-p', HERE);
const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
run(ROOT, process.execPath, vitest, 'run', '--config', join(HERE, 'vitest.config.ts'), ...process.argv.slice(2));
