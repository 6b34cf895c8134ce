/**
 * `npm run site` builds the site in .cache/site/dist and serves it on 127.0.0.1. With `--build` it only builds the
 * site. The generator, VitePress, is a separate package that is installed in .cache when it is first needed.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { configText } from './config.ts';
import { writeSite } from './write.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const GENERATOR = join(ROOT, '.cache/site-generator');
const SOURCE = join(GENERATOR, 'source');
const VITEPRESS = join(GENERATOR, 'node_modules/vitepress/bin/vitepress.js');

function run(cwd: string, program: string, ...args: readonly string[]): void {
  const { status } = spawnSync(program, args, { cwd, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

const { values } = parseArgs({
  options: { build: { type: 'boolean', default: false }, port: { type: 'string', default: '4173' } },
});
mkdirSync(GENERATOR, { recursive: true });
for (const name of ['package.json', 'package-lock.json'])
  cpSync(join(ROOT, 'scripts/site/vitepress', name), join(GENERATOR, name));
if (!existsSync(VITEPRESS)) run(GENERATOR, 'npm', 'ci', '--no-audit', '--no-fund', '--ignore-scripts');
await writeSite(SOURCE);
mkdirSync(join(SOURCE, '.vitepress'));
writeFileSync(join(SOURCE, '.vitepress/config.mjs'), configText());
run(GENERATOR, process.execPath, VITEPRESS, 'build', SOURCE);
if (!values.build)
  run(GENERATOR, process.execPath, VITEPRESS, 'preview', SOURCE, '--port', values.port, '--host', '127.0.0.1');
