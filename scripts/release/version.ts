/**
 * `npm run release:version` computes the next version and its section of CHANGELOG.md from the changesets, writes the
 * version to all files that contain it, and removes the changesets. The first release keeps the version of
 * package.json, whose section is still marked `(unreleased)`. It commits nothing.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nextRelease, readChangeset } from './changesets.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FOLDER = join(ROOT, '.changeset');

function change(path: string, written: (text: string) => string): void {
  writeFileSync(join(ROOT, path), written(readFileSync(join(ROOT, path), 'utf8')));
}

const names = readdirSync(FOLDER).filter((name) => name.endsWith('.md') && name !== 'README.md');
const changes = names.map((name) => readChangeset(name, readFileSync(join(FOLDER, name), 'utf8')));
const now: string = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version;
const changelog = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8');
const date = new Date().toISOString().slice(0, 10);
const next = nextRelease(changelog, { version: now, changes, date });
if (next === null) throw new Error('There are no changesets, so there is nothing to release.');
const { version } = next;
writeFileSync(join(ROOT, 'CHANGELOG.md'), next.changelog);
change('package.json', (text) => text.replace(`"version": "${now}"`, `"version": "${version}"`));
change('deploy/kubernetes/base/kustomization.yaml', (text) =>
  text.replace(/(?<=newTag: '?)\d+\.\d+\.\d+/, () => version),
);
execFileSync('npm', ['install', '--package-lock-only', '--ignore-scripts'], { cwd: ROOT, stdio: 'inherit' });
for (const name of names) rmSync(join(FOLDER, name));
process.stdout.write(`${version} (${date}), of ${changes.length} changesets. Read CHANGELOG.md, and commit.\n`);
