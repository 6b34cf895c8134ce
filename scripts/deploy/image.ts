/** Builds deploy/Dockerfile with buildah, without a daemon, on a base image that is made from Debian packages. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { find } from '../../test/deploy/kit/programs.ts';
import { CannotRun, output, type Say } from './steps.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BASE = 'localhost/callboard-base';
const IMAGE = 'localhost/callboard';
const NPM = 'npm@11.19.1';
const SUITE = 'bookworm';
const CERTIFICATES = '/etc/ssl/certs';

const INSPECTED = z.object({
  OCIv1: z.object({
    config: z.object({
      User: z.string(),
      Env: z.array(z.string()),
      Entrypoint: z.array(z.string()),
      Cmd: z.array(z.string()),
      WorkingDir: z.string(),
    }),
  }),
});
export type ImageConfig = z.infer<typeof INSPECTED>['OCIv1']['config'];

/** A built image. `root`: the folder where the file system of a container of the image is mounted. */
export type BuiltImage = { readonly config: ImageConfig; readonly root: string; readonly size: string };

/**
 * Builds the image and mounts it. All files, including the layers, are written below `folder`. Throws CannotRun if
 * tools are missing.
 */
export function buildImage(folder: string, say: Say): BuiltImage {
  const missing = ['buildah', 'mmdebstrap'].filter((name) => find(name) === null);
  if (process.platform !== 'linux' || process.getuid?.() !== 0) throw new CannotRun('it needs Linux and root');
  if (missing.length > 0)
    throw new CannotRun(`it needs ${missing.join(' and ')}: apt-get install ${missing.join(' ')}`);
  const buildah = buildahIn(folder);
  const context = join(folder, 'base');
  mkdirSync(context);
  makeBase(context);
  buildah('build', '--isolation', 'chroot', '--quiet', '--tag', BASE, context);
  say(`base: Debian ${SUITE} by mmdebstrap, Node ${process.version}, ${NPM}`);
  const { version } = z
    .object({ version: z.string() })
    .parse(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')));
  const settings = npmSettings(folder);
  const volumes = [`${settings}:/root/.npmrc:ro`, `${npmCache()}:/var/cache/npm`];
  if (existsSync(CERTIFICATES)) volumes.push(`${CERTIFICATES}:${CERTIFICATES}:ro`);
  buildah(
    ...['build', '--isolation', 'chroot', '--format', 'docker', '--file', join(ROOT, 'deploy/Dockerfile')],
    ...['--build-arg', `BASE=${BASE}`, '--build-arg', `VERSION=${version}`],
    ...volumes.flatMap((volume) => ['--volume', volume]),
    ...['--tag', IMAGE, ROOT],
  );
  const size = buildah('images', '--format', '{{.Size}}', IMAGE).trim();
  const { config } = INSPECTED.parse(JSON.parse(buildah('inspect', '--type', 'image', IMAGE))).OCIv1;
  const root = buildah('mount', buildah('from', IMAGE).trim()).trim();
  return { config, root, size };
}

/** Unmounts the images that `buildImage` mounted in the folder, so that the folder can be removed. */
export function discardImages(folder: string): void {
  const buildah = buildahIn(folder);
  buildah('rm', '--all');
  buildah('rmi', '--all', '--force');
}

/** Returns a function that runs buildah with all of its state in this folder. */
function buildahIn(folder: string): (...args: readonly string[]) => string {
  const state = ['--root', join(folder, 'layers'), '--runroot', join(folder, 'run')];
  const works = (driver: string): boolean => {
    try {
      output('buildah', [...state, '--storage-driver', driver, 'info']);
      return true;
    } catch {
      return false;
    }
  };
  // The driver overlay is several times faster. The driver vfs, which copies each layer, works on every file system.
  const driver = works('overlay') ? 'overlay' : 'vfs';
  return (...args) => output('buildah', [...state, '--storage-driver', driver, ...args]);
}

/**
 * Creates a base image that contains everything the build needs, so that the build installs nothing. Like the official
 * image of Node, it contains a small Debian, Node and npm. It also contains tini.
 */
function makeBase(context: string): void {
  const packages = 'libstdc++6,libgcc-s1,ca-certificates,tini';
  output('mmdebstrap', ['--quiet', '--variant=essential', `--include=${packages}`, SUITE, join(context, 'base.tar')]);
  copyFileSync(process.execPath, join(context, 'node'));
  const [{ filename }] = z
    .tuple([z.object({ filename: z.string() })])
    .parse(JSON.parse(output('npm', ['pack', NPM, '--json', '--silent', '--pack-destination', context], context)));
  mkdirSync(join(context, 'npm'));
  output('tar', ['-xzf', join(context, filename), '-C', join(context, 'npm'), '--strip-components', '1']);
  const lines = [
    'FROM scratch',
    'ADD base.tar /',
    'COPY node /usr/local/bin/node',
    'COPY npm /usr/local/lib/node_modules/npm',
    'RUN chmod 755 /usr/local/bin/node && ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm',
  ];
  writeFileSync(join(context, 'Dockerfile'), `${lines.join('\n')}\n`);
}

/**
 * Writes the npm settings of this machine to a file that is used only by the build. The file is mounted, and never
 * copied into the image.
 */
function npmSettings(folder: string): string {
  const own = join(homedir(), '.npmrc');
  const lines = [
    existsSync(own) ? readFileSync(own, 'utf8') : '',
    `registry=${npmConfig('registry')}`,
    `cafile=${CERTIFICATES}/ca-certificates.crt`,
    'cache=/var/cache/npm',
    'prefer-offline=true',
  ];
  const file = join(folder, 'npmrc');
  writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600 });
  return file;
}

function npmCache(): string {
  const cache = npmConfig('cache');
  mkdirSync(cache, { recursive: true });
  return cache;
}

function npmConfig(name: string): string {
  return output('npm', ['config', 'get', name], ROOT).trim();
}
