// Builds the published files. dist/ gets compiled JavaScript with types, the REST documents, the Lua files and the
// browser clients; dist-client/ becomes the package `callboard-client`.
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, globSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const run = (program, ...args) => {
  const { status, error } = spawnSync(program, args, { stdio: 'inherit', cwd: at('') });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
};
// Runs a script with the Node that runs this file. The commands in node_modules/.bin do not find a Node if packages
// were installed without their install scripts.
const runScript = (path, ...args) => run(process.execPath, at(path), ...args);

rmSync(at('dist'), { recursive: true, force: true });
run(at('node_modules/.bin/tsc'), '-p', 'tsconfig.build.json');
// The React hooks have their own TypeScript configuration, because everywhere else the types of React are those of
// Preact.
const emit = ['--noEmit', 'false', '--declaration', '--rootDir', '.', '--outDir', 'dist'];
run(at('node_modules/.bin/tsc'), '-p', 'src/clients/react', ...emit);
// tsc writes src, demo and generated side by side into dist. In the package, the content of src is the root, and the
// other two are folders in it.
for (const name of readdirSync(at('dist/src'))) renameSync(at(`dist/src/${name}`), at(`dist/${name}`));
rmSync(at('dist/src'), { recursive: true });
for (const path of globSync('**/*.{js,d.ts}', { cwd: at('dist') })) {
  const text = readFileSync(at(`dist/${path}`), 'utf8');
  const beside = /^(demo|generated)[/\\]/.test(path);
  // The imports are adapted to that. A path from src to one of the other folders has one `../` too many, and a path
  // from those folders to src names a folder that no longer exists.
  const placed = beside
    ? text.replaceAll("'../src/", "'../")
    : text.replace(/'\.\.\/((?:\.\.\/)*)(demo|generated)\//g, (_, up, folder) => `'${up || './'}${folder}/`);
  // In declarations, tsc leaves imports that end in `.ts`, which some resolvers do not support.
  const declared = placed.replace(/((?:from |import |import\()'\.{1,2}\/[^']*)\.ts'/g, "$1.js'");
  writeFileSync(at(`dist/${path}`), path.endsWith('.d.ts') ? declared : placed);
}
cpSync(at('src/rest/operations'), at('dist/rest/operations'), { recursive: true });
cpSync(at('generated/openapi-examples.json'), at('dist/generated/openapi-examples.json'));
cpSync(at('src/backends/redis'), at('dist/backends/redis'), {
  recursive: true,
  filter: (from) => !from.endsWith('.ts'),
});
cpSync(at('starter'), at('dist/starter'), { recursive: true });
chmodSync(at('dist/bin.js'), 0o755);
cpSync(at('src/console/THIRD-PARTY-LICENSES.md'), at('dist/THIRD-PARTY-LICENSES.md'));
runScript('scripts/bundles.ts', 'clients');
runScript('scripts/bundles.ts', 'console');
runScript('scripts/client-package.mjs');
