// Builds the published files in dist/: compiled JavaScript with types, the REST documents, the Lua files and the
// browser clients.
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const run = (command, ...args) => {
  const { status } = spawnSync(at(`node_modules/.bin/${command}`), args, { stdio: 'inherit', cwd: at('') });
  if (status !== 0) process.exit(status ?? 1);
};

rmSync(at('dist'), { recursive: true, force: true });
run('tsc', '-p', 'tsconfig.build.json');
cpSync(at('src/rest/operations'), at('dist/rest/operations'), { recursive: true });
cpSync(at('src/backends/redis'), at('dist/backends/redis'), {
  recursive: true,
  filter: (from) => !from.endsWith('.ts'),
});
chmodSync(at('dist/bin.js'), 0o755);
run('node', 'src/clients/build.ts');
