// `npm run release`: makes the files of a release in release/: both tarballs, a software bill of materials for each,
// and their checksums. It publishes nothing. `--rehearse` leaves out what a finished release needs: a clean checkout, a
// dated section of CHANGELOG.md, and the whole test run.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const OUT = join(ROOT, 'release');
const NEVER_PUBLISHED = /(^|\/)(test|bench|faults|node_modules)\/|\.(map|log|env|tgz)$|(^|\/)\.(?!\/)/;

function fail(message) {
  process.stderr.write(`release: ${message}\n`);
  process.exit(1);
}

function text(command, ...args) {
  return execFileSync(command, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
}

function run(command, ...args) {
  process.stderr.write(`release: ${command} ${args.join(' ')}\n`);
  if (spawnSync(command, args, { cwd: ROOT, stdio: ['ignore', 2, 2] }).status !== 0) fail(`${command} failed`);
}

function requireFinished(version) {
  if (text('git', 'status', '--porcelain').trim() !== '') fail('the checkout has changes that are not committed');
  const dated = new RegExp(`^## ${version.replaceAll('.', '\\.')} \\(\\d{4}-\\d\\d-\\d\\d\\)$`, 'm');
  if (!dated.test(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8'))) {
    fail(`CHANGELOG.md has no section "## ${version} (year-month-day)"`);
  }
}

/** Packs a folder and returns the name of the tarball. */
function pack(folder) {
  const [{ filename }] = JSON.parse(lastJson(text('npm', 'pack', folder, '--json', '--pack-destination', OUT)));
  return filename;
}

/** Returns the JSON at the end of the output. Scripts that run while a package is packed write other text before it. */
function lastJson(output) {
  return output.slice(output.search(/^\[$/m));
}

/** Ends the process with an error if a tarball holds a file that must not be published, or lacks one that must. */
function checkContent(tarball, required) {
  const files = text('tar', '-tzf', join(OUT, tarball))
    .trim()
    .split('\n')
    .map((path) => path.replace(/^package\//, ''));
  const strange = files.filter((path) => NEVER_PUBLISHED.test(path));
  if (strange.length > 0) fail(`${tarball} must not contain ${strange.join(', ')}`);
  const missing = required.filter((path) => !files.includes(path));
  if (missing.length > 0) fail(`${tarball} lacks ${missing.join(', ')}`);
}

/** Installs a tarball into an empty folder, runs a command there, and writes the bill of materials of the packages. */
async function tryInstalled(tarball, name, check) {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-release-'));
  const inFolder = { cwd: folder, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 };
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

/** Starts the installed relay, loads its pages, and stops it. */
async function tryServing(command) {
  const relay = spawn(command, ['serve', '--port', '0', '--json'], { stdio: ['ignore', 'pipe', 'ignore'] });
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

/** Removes the paths of this machine from the bill of materials, because only the file names are useful elsewhere. */
function withoutFolder(bill, folder) {
  return bill.replaceAll(`file:${OUT}/`, '').replaceAll(`${OUT}/`, '').replaceAll(folder, '.');
}

function writeChecksums() {
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

const { values } = parseArgs({ options: { rehearse: { type: 'boolean', default: false } } });
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
if (!values.rehearse) {
  requireFinished(version);
  run(join(ROOT, '.ci/run'));
}
rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT);
const relay = pack('.');
if (!existsSync(join(ROOT, 'dist-client'))) fail('the build made no dist-client');
const client = pack('./dist-client');
checkContent(relay, [
  'LICENSE',
  'README.md',
  'CHANGELOG.md',
  'PROTOCOL.md',
  'schema.graphql',
  'frames.schema.json',
  'dist/bin.js',
]);
checkContent(client, ['LICENSE', 'README.md', 'package.json']);
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
process.stdout.write(writeChecksums().join(''));
