/** Builds both packages from the sources in a separate folder, so that no other test sees a half-built dist/. */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../../..');
const FILES = [
  ...[
    'src',
    'demo',
    'generated',
    'scripts',
    'package.json',
    'tsconfig.json',
    'tsconfig.build.json',
    'schema.graphql',
    'docs/clients.md',
  ],
  ...['README.md', 'LICENSE', 'PROTOCOL.md', 'ARCHITECTURE.md', 'CHANGELOG.md'],
];

export const PACKAGES = ['callboard', 'callboard-client'] as const;
export type Package = (typeof PACKAGES)[number];

export type Packed = AsyncDisposable & {
  /** Returns the folder whose content is packed. */
  folder(name: Package): string;
  tarball(name: Package): string;
  /** Returns a folder outside the repository in which only this package is installed. */
  installed(name: Package): string;
};

/** Runs a program and resolves with its output. Rejects, with the output in the message, when it fails. */
export async function run(cwd: string, program: string, ...args: readonly string[]): Promise<string> {
  try {
    const { stdout, stderr } = await promisify(execFile)(program, args, { cwd, maxBuffer: 2 ** 26 });
    return stdout + stderr;
  } catch (error) {
    const output = error instanceof Error && 'stdout' in error && 'stderr' in error ? error : null;
    throw new Error(`${program} ${args.join(' ')}\n${output?.stdout}\n${output?.stderr}`, { cause: error });
  }
}

/** Returns the path of a program of the repository. */
export function program(name: string): string {
  return join(ROOT, 'node_modules/.bin', name);
}

/**
 * Builds, packs and installs both packages. The dependencies of `callboard` come from the registry that the machine
 * uses.
 */
export async function packAndInstall(): Promise<Packed> {
  await using starting = new AsyncDisposableStack();
  const top = await mkdtemp(join(tmpdir(), 'callboard-packages-'));
  starting.defer(() => rm(top, { recursive: true, force: true }));
  const source = join(top, 'source');
  for (const file of FILES) await cp(join(ROOT, file), join(source, file), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(source, 'node_modules'));
  await run(source, process.execPath, 'scripts/build.mjs');
  await run(source, process.execPath, 'scripts/manifest.mjs', 'publish');
  const packed = {
    folder: (name: Package): string => (name === 'callboard' ? source : join(source, 'dist-client')),
    tarball: (name: Package): string => join(top, `${name}.tgz`),
    installed: (name: Package): string => join(top, `with-${name}`),
  };
  for (const name of PACKAGES) {
    const file = await run(
      packed.folder(name),
      'npm',
      'pack',
      '--silent',
      '--ignore-scripts',
      '--pack-destination',
      top,
    );
    await cp(join(top, file.trim()), packed.tarball(name));
    await mkdir(packed.installed(name));
    await writeFile(join(packed.installed(name), 'package.json'), '{ "private": true, "type": "module" }');
    const from = name === 'callboard' ? '--prefer-offline' : '--offline';
    await run(packed.installed(name), 'npm', 'install', from, '--no-audit', '--no-fund', packed.tarball(name));
  }
  const built = starting.move();
  return { ...packed, [Symbol.asyncDispose]: () => built.disposeAsync() };
}
