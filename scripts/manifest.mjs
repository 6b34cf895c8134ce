// Runs around `npm pack` in the folder that is packed. `publish` removes from package.json what only a checkout needs:
// npm warns a user of the package about a `prepare` script, and its commands need files that are not published.
// `restore` puts the file back.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';

const MANIFEST = 'package.json';
const KEPT = '.cache/package.json';
const ONLY_CHECKOUT = ['scripts', 'devDependencies', 'overrides', 'allowScripts'];

function publish() {
  const text = readFileSync(MANIFEST, 'utf8');
  const members = Object.entries(JSON.parse(text)).filter(([name]) => !ONLY_CHECKOUT.includes(name));
  mkdirSync('.cache', { recursive: true });
  writeFileSync(KEPT, text);
  writeFileSync(MANIFEST, `${JSON.stringify(Object.fromEntries(members), null, 2)}\n`);
}

function restore() {
  if (existsSync(KEPT)) renameSync(KEPT, MANIFEST);
}

const step = { publish, restore }[process.argv[2]];
if (!step) throw new Error('usage: node scripts/manifest.mjs publish | restore');
step();
