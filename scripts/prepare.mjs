// Builds the package after an install, so that programs in a fresh checkout can import `callboard/runtime`, and the
// relay can serve the browser clients. It is plain JavaScript, because it may run on any version of Node. It skips the
// build if development packages are missing, because a published package is already built.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

// npm itself does not report a Node that is too old (see .npmrc).
const installer = /node\/v(\d+)[\d.]*/.exec(process.env['npm_config_user_agent'] ?? '');
if (installer && Number(installer[1]) < 24) {
  process.stdout.write(
    `callboard needs Node 24 or newer; npm runs on ${installer[0]}. The scripts here use node_modules/.bin/node.\n`,
  );
}

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const needed = ['node_modules/vite', 'node_modules/typescript', 'node_modules/.bin/node', 'scripts/bundles.ts'].map(at);

if (needed.every((path) => existsSync(path))) {
  const { status } = spawnSync(at('node_modules/.bin/node'), [at('scripts/build.mjs')], {
    stdio: 'inherit',
    cwd: at(''),
  });
  process.exitCode = status ?? 1;
} else {
  process.stdout.write('callboard: the package was not built (development packages are not installed)\n');
}
