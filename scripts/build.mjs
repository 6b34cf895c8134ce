// Builds the published files. dist/ holds compiled JavaScript with types, the REST documents, the Lua files and the
// browser clients; dist-client/ is the package `callboard-client`.
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const run = (program, ...args) => {
  const { status, error } = spawnSync(program, args, { stdio: 'inherit', cwd: at('') });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
};
// Runs a script with the Node that runs this file. node_modules/.bin has no Node if packages were installed without
// their scripts.
const runScript = (path) => run(process.execPath, at(path));

rmSync(at('dist'), { recursive: true, force: true });
run(at('node_modules/.bin/tsc'), '-p', 'tsconfig.build.json');
// In declarations tsc leaves imports that end in `.ts`, which not every resolver understands.
for (const path of globSync('**/*.d.ts', { cwd: at('dist') })) {
  const text = readFileSync(at(`dist/${path}`), 'utf8');
  writeFileSync(at(`dist/${path}`), text.replace(/((?:from |import |import\()'\.{1,2}\/[^']*)\.ts'/g, "$1.js'"));
}
cpSync(at('src/rest/operations'), at('dist/rest/operations'), { recursive: true });
cpSync(at('src/rest/openapi/examples.json'), at('dist/rest/openapi/examples.json'));
cpSync(at('src/backends/redis'), at('dist/backends/redis'), {
  recursive: true,
  filter: (from) => !from.endsWith('.ts'),
});
chmodSync(at('dist/bin.js'), 0o755);
cpSync(at('src/clients/THIRD-PARTY-LICENSES.md'), at('dist/THIRD-PARTY-LICENSES.md'));
runScript('src/clients/inline-validator.ts');
runScript('src/clients/build.ts');
runScript('src/console/build.ts');
runScript('scripts/client-package.mjs');
