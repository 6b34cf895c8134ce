/**
 * `npm run release` creates the files of a release in release/: both tarballs, a software bill of materials for each,
 * their checksums, and the notes. It publishes nothing, and refuses to run if something is missing. `--check` prints
 * what is missing and tries everything except the test run, including the changelog of the next version. It exits with
 * 1 if something is missing.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { buildImage, discardImages } from '../deploy/image.ts';
import { checkContents } from '../deploy/run-image.ts';
import { CannotRun } from '../deploy/steps.ts';
import { generatedPages } from '../docs/pages.ts';
import { nextRelease, notesOf, readChangeset } from './changesets.ts';
import { placeholdersIn, readIdentity } from './identity.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const OUT = join(ROOT, 'release');
const NEVER_PUBLISHED = /(^|\/)(test|bench|faults|node_modules)\/|\.(map|log|env|tgz)$|(^|\/)\.(?!\/)/;

function fail(message: string): never {
  process.stderr.write(`release: ${message}\n`);
  process.exit(1);
}

function say(message: string): void {
  process.stderr.write(`release: ${message}\n`);
}

function text(command: string, ...args: readonly string[]): string {
  return execFileSync(command, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
}

function run(command: string, ...args: readonly string[]): void {
  say(`${command} ${args.join(' ')}`);
  if (spawnSync(command, args, { cwd: ROOT, stdio: ['ignore', 2, 2] }).status !== 0) fail(`${command} failed`);
}

/** Returns what is missing for a release of this version, one sentence for each. */
function missingFor(version: string): readonly string[] {
  const stale = generatedPages().filter(({ now, text: wanted }) => now !== wanted);
  const isTagged = text('git', 'tag', '--list', `v${version}`).trim() !== '';
  return [
    ...placeholdersIn(readIdentity()),
    ...stale.map(({ page }) => `${page} does not fit project.json or the sources: npm run docs`),
    ...(notesOf(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8'), version) === ''
      ? [`CHANGELOG.md says nothing about ${version}`]
      : []),
    ...(text('git', 'status', '--porcelain').trim() === '' ? [] : ['the checkout has changes that are not committed']),
    ...(isTagged && text('git', 'rev-list', '-1', `v${version}`) !== text('git', 'rev-parse', 'HEAD')
      ? [`the tag v${version} is another commit`]
      : []),
  ];
}

/**
 * Returns what `npm run release:version` would compute from the changelog and the changesets; null if it was already
 * run.
 */
function nextVersioned(version: string): ReturnType<typeof nextRelease> {
  const folder = join(ROOT, '.changeset');
  const names = readdirSync(folder).filter((name) => name.endsWith('.md') && name !== 'README.md');
  const changes = names.map((name) => readChangeset(name, readFileSync(join(folder, name), 'utf8')));
  const date = new Date().toISOString().slice(0, 10);
  return nextRelease(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8'), { version, changes, date });
}

/** Tags the commit in a copy of the repository, and checks that the tag gives the version. */
function rehearseTag(version: string): void {
  const copy = mkdtempSync(join(tmpdir(), 'callboard-tag-'));
  try {
    text('git', 'clone', '--quiet', '--shared', '--bare', '--no-tags', '.', copy);
    const inCopy = ['-C', copy, '-c', 'user.name=release', '-c', 'user.email=release@localhost'];
    text('git', ...inCopy, 'tag', '--annotate', `v${version}`, '--message', `callboard ${version}`);
    const tag = text('git', '-C', copy, 'describe', '--exact-match').trim();
    if (tag !== `v${version}`) fail(`the tag is ${tag}`);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** Builds the image if the tools are installed, and checks that it contains its licence and its bill of materials. */
function rehearseImage(): void {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-image-'));
  let isBuilt = false;
  try {
    const image = buildImage(folder, say);
    isBuilt = true;
    checkContents(image);
    say(`image: has its licence and its bill of materials; ${image.size}`);
  } catch (error) {
    if (!(error instanceof CannotRun)) throw error;
    say(`image: not built: ${error.message}`);
  } finally {
    if (isBuilt) discardImages(folder);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Packs a folder and returns the file name of the tarball. */
function pack(folder: string): string {
  const [{ filename }] = JSON.parse(lastJson(text('npm', 'pack', folder, '--json', '--pack-destination', OUT)));
  return filename;
}

/** Returns the JSON at the end of npm's output. Scripts that run during packing print other text before it. */
function lastJson(output: string): string {
  return output.slice(output.search(/^\[$/m));
}

/** Exits with an error if a tarball contains a file that must not be published, or lacks a required one. */
function checkContent(tarball: string, required: readonly string[]): void {
  const files = text('tar', '-tzf', join(OUT, tarball))
    .trim()
    .split('\n')
    .map((path) => path.replace(/^package\//, ''));
  const strange = files.filter((path) => NEVER_PUBLISHED.test(path));
  if (strange.length > 0) fail(`${tarball} must not contain ${strange.join(', ')}`);
  const missing = required.filter((path) => !files.includes(path));
  if (missing.length > 0) fail(`${tarball} lacks ${missing.join(', ')}`);
}

/**
 * Installs a tarball into an empty folder, runs a command there, and writes the bill of materials of the installed
 * packages.
 */
async function tryInstalled(
  tarball: string,
  name: string,
  check: (folder: string) => Promise<void> | void,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-release-'));
  const inFolder = { cwd: folder, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 } as const;
  try {
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: `${name}-installed`, version, type: 'module' }));
    execFileSync('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', join(OUT, tarball)], inFolder);
    await check(folder);
    const bill = execFileSync('npm', ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application'], inFolder);
    writeFileSync(join(OUT, `${name}.cdx.json`), withoutFolder(bill, folder));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Starts the installed relay, loads its pages, and stops the relay. */
async function tryServing(command: string): Promise<void> {
  // The relay stores its credentials below the folder of the command, which is removed afterwards.
  const env = { ...process.env, XDG_STATE_HOME: join(dirname(command), 'state') };
  const relay = spawn(command, ['serve', '--port', '0', '--json'], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(relay, 'exit');
  const lines = once(createInterface({ input: relay.stdout }), 'line');
  const [line] = await Promise.race([lines, ended]);
  if (typeof line !== 'string') fail(`the installed relay ended with ${line} before it listened`);
  const { url } = JSON.parse(line);
  for (const path of ['/readyz', '/clients/runtime.js', '/console/']) {
    const { status } = await fetch(url + path);
    if (status !== 200) fail(`the installed relay answers ${path} with ${status}`);
  }
  relay.kill('SIGTERM');
  const [code] = await ended;
  if (code !== 0) fail(`the installed relay ended with ${code}`);
}

/**
 * Removes the paths of this machine from the bill of materials, because only the file names are meaningful elsewhere.
 */
function withoutFolder(bill: string, folder: string): string {
  return bill.replaceAll(`file:${OUT}/`, '').replaceAll(`${OUT}/`, '').replaceAll(folder, '.');
}

function writeChecksums(): readonly string[] {
  const lines = readdirSync(OUT)
    .filter((name) => name !== 'SHA256SUMS')
    .sort()
    .map(
      (name) =>
        `${createHash('sha256')
          .update(readFileSync(join(OUT, name)))
          .digest('hex')}  ${name}\n`,
    );
  writeFileSync(join(OUT, 'SHA256SUMS'), lines.join(''));
  return lines;
}

const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
const { version }: { version: string } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const missing = missingFor(version);
const next = nextVersioned(version);
if (!values.check) {
  const undone = next === null ? [] : [`CHANGELOG.md has no dated section of ${next.version}: npm run release:version`];
  if (missing.length + undone.length > 0) fail([...missing, ...undone].join('\nrelease: '));
  run(join(ROOT, '.ci/run'));
}
rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT);
const relay = pack('.');
if (!existsSync(join(ROOT, 'dist-client'))) fail('the build made no dist-client');
const client = pack('./dist-client');
const pages = ['LICENSE', 'README.md', 'docs/calls.md', 'docs/options.md', 'docs/troubleshooting.md', 'package.json'];
checkContent(relay, [
  ...pages,
  ...['CHANGELOG.md', 'PROTOCOL.md', 'SECURITY.md', 'schema.graphql', 'frames.schema.json', 'dist/bin.js'],
]);
checkContent(client, pages);
await tryInstalled(relay, 'callboard', async (folder) => {
  const command = join(folder, 'node_modules/.bin/callboard');
  const printed = execFileSync(command, ['--version'], { encoding: 'utf8' }).trim();
  if (printed !== version) fail(`the installed command says ${printed}, and package.json ${version}`);
  await tryServing(command);
});
await tryInstalled(client, 'callboard-client', (folder) => {
  const program =
    "await Promise.all(['runtime', 'caller', 'host', 'site', 'admin'].map((l) => import(`callboard-client/${l}`)))";
  execFileSync(process.execPath, ['--input-type=module', '-e', program], { cwd: folder });
});
writeFileSync(join(OUT, 'NOTES.md'), notesOf(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8'), version));
process.stdout.write(writeChecksums().join(''));
if (values.check) {
  say(
    next === null ? 'changelog: is dated' : `changelog: npm run release:version makes the section of ${next.version}`,
  );
  rehearseTag(version);
  say(`tag: v${version} can be made`);
  rehearseImage();
  for (const one of missing) say(`missing: ${one}`);
  process.exitCode = missing.length > 0 ? 1 : 0;
}
