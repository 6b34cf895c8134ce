// Changes files of the packed folder before `npm pack`, and restores them afterwards. `publish` removes everything from
// package.json that only a checkout needs: npm warns users of the package about a `prepare` script, and the scripts
// need files that are not published. It also rewrites the links in packed pages. `restore` puts the original files
// back.
import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { packedText } from './release/packed-links.ts';

const MANIFEST = 'package.json';
const KEPT = '.cache/unpacked';
const ONLY_CHECKOUT = ['scripts', 'devDependencies', 'overrides', 'allowScripts'];

/** Stores a copy of the file for `restore`, and writes another text in its place. */
function replace(path, text) {
  mkdirSync(dirname(join(KEPT, path)), { recursive: true });
  copyFileSync(path, join(KEPT, path));
  writeFileSync(path, text);
}

function publish() {
  const manifest = JSON.parse(readFileSync(MANIFEST, 'utf8'));
  const identity = JSON.parse(readFileSync('project.json', 'utf8'));
  const files = globSync(['README.md', 'LICENSE', MANIFEST, ...manifest.files]);
  const places = new Map(files.map((path) => [path, path]));
  for (const page of files.filter((path) => path.endsWith('.md') && !path.startsWith('dist/'))) {
    const packed = { page, places, repository: identity.repository, tag: `v${manifest.version}` };
    replace(page, packedText(readFileSync(page, 'utf8'), packed));
  }
  const members = Object.entries(manifest).filter(([name]) => !ONLY_CHECKOUT.includes(name));
  replace(MANIFEST, `${JSON.stringify(Object.fromEntries(members), null, 2)}\n`);
}

function restore() {
  if (!existsSync(KEPT)) return;
  for (const path of globSync('**/*.{md,json}', { cwd: KEPT })) copyFileSync(join(KEPT, path), path);
  rmSync(KEPT, { recursive: true });
}

const step = { publish, restore }[process.argv[2]];
if (!step) throw new Error('usage: node scripts/manifest.mjs publish | restore');
step();
