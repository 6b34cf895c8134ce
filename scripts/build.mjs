// Builds the published files. dist/ holds compiled JavaScript with types, the REST documents, the Lua files and the
// browser clients; dist-client/ is the package `callboard-client`.
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const run = (command, ...args) => {
  const { status } = spawnSync(at(`node_modules/.bin/${command}`), args, { stdio: 'inherit', cwd: at('') });
  if (status !== 0) process.exit(status ?? 1);
};

rmSync(at('dist'), { recursive: true, force: true });
run('tsc', '-p', 'tsconfig.build.json');
// tsc leaves the endings of the sources in declarations, where not every resolver understands them.
for (const path of globSync('**/*.d.ts', { cwd: at('dist') })) {
  const text = readFileSync(at(`dist/${path}`), 'utf8');
  writeFileSync(at(`dist/${path}`), text.replace(/((?:from |import |import\()'\.{1,2}\/[^']*)\.ts'/g, "$1.js'"));
}
cpSync(at('src/rest/operations'), at('dist/rest/operations'), { recursive: true });
cpSync(at('src/backends/redis'), at('dist/backends/redis'), {
  recursive: true,
  filter: (from) => !from.endsWith('.ts'),
});
chmodSync(at('dist/bin.js'), 0o755);
cpSync(at('src/clients/THIRD-PARTY-LICENSES.md'), at('dist/THIRD-PARTY-LICENSES.md'));
run('node', 'src/clients/inline-validator.ts');
run('node', 'src/clients/build.ts');
run('node', 'scripts/client-package.mjs');
