/** Builds both packages from the sources in a separate folder, so that no other test sees a half-built dist/. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Browser } from 'playwright-core';
import { build } from 'vite';
import { examplesOf } from '../../docs/kit/examples.ts';

const ROOT = join(import.meta.dirname, '../../..');
const FILES = [
  ...[
    'src',
    'demo',
    'generated',
    'starter',
    'scripts',
    'package.json',
    'tsconfig.json',
    'tsconfig.build.json',
    'schema.graphql',
    'frames.schema.json',
    'docs',
    'project.json',
  ],
  ...['README.md', 'LICENSE', 'PROTOCOL.md', 'ARCHITECTURE.md', 'CHANGELOG.md', 'SECURITY.md'],
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

// Runs the examples of docs/clients.md unchanged, in a folder where the package is installed.

const PAGE = 'docs/clients.md';

/** Writes each example of the page into the folder. Resolves with their names. */
export async function writeExamples(folder: string): Promise<readonly string[]> {
  const named = examplesOf(PAGE).flatMap(({ info, text }) => {
    const name = /^packages: (\S+)$/.exec(info)?.[1];
    return name === undefined ? [] : [{ name, text }];
  });
  for (const { name, text } of named) await writeFile(join(folder, name), text);
  return named.map(({ name }) => name);
}

export type Example = {
  /** Resolves with all output so far, once it contains the text. Rejects when the program ends without it. */
  shows(text: string): Promise<string>;
  /** Ends the program as a service manager does. Resolves with the program's exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
};

/** Starts an example with these environment variables. */
export function startExample(folder: string, name: string, env: Readonly<Record<string, string>>): Example {
  return startProgram([process.execPath, name], { cwd: folder, env });
}

type ProgramOptions = {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Whether its signals go to all processes that it starts, too, as a terminal sends them. */
  readonly detached?: boolean;
};

/** Starts a program with these environment variables besides those of this process. */
export function startProgram(
  [command = '', ...args]: readonly string[],
  { cwd, env, detached = false }: ProgramOptions,
): Example {
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, detached });
  const ended = exitOf(child);
  let output = '';
  const heard = new EventTarget();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      heard.dispatchEvent(new Event('output'));
    });
  }
  return {
    async shows(text) {
      const failed = ended.then(() => Promise.reject(new Error(`${command} ended without ${text}: ${output}`)));
      failed.catch(() => undefined);
      while (!output.includes(text)) {
        await Promise.race([new Promise((done) => heard.addEventListener('output', done, { once: true })), failed]);
      }
      return output;
    },
    async stop(signal = 'SIGTERM') {
      if (detached && child.pid !== undefined) process.kill(-child.pid, signal);
      else child.kill(signal);
      return ended;
    },
  };
}

/** Makes an empty folder outside the repository, which is removed when it is disposed of. */
export async function emptyFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'callboard-empty-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Resolves when the program has ended and its output is read. */
async function exitOf(child: ChildProcess): Promise<number | null> {
  await once(child, 'close');
  return child.exitCode;
}

// Bundles a module as a web page's project would, and loads it in a page that allows only its own origin.

/** Writes `<name>.js` in the folder, bundles it without the packages `external`, and resolves with the code. */
export async function bundle(
  folder: string,
  name: string,
  code: string,
  external: readonly string[] = [],
): Promise<Buffer> {
  const entry = join(folder, `${name}.js`);
  const outDir = join(folder, 'out');
  await writeFile(entry, code);
  await build({
    configFile: false,
    publicDir: false,
    logLevel: 'error',
    root: folder,
    // As in the build of a page; a library's build would leave it to the page.
    define: { 'process.env.NODE_ENV': '"production"' },
    build: {
      outDir,
      emptyOutDir: false,
      target: 'es2022',
      lib: { entry, formats: ['es'], fileName: () => `${name}.js` },
      rolldownOptions: {
        external: [...external],
        output: { codeSplitting: false, minify: true, comments: { annotation: false } },
      },
    },
  });
  return readFile(join(outDir, `${name}.js`));
}

/**
 * Loads a script in a page with the policy `default-src 'self'`. Resolves with the title that the script sets, or with
 * its error.
 */
export async function titleOf(browser: Browser, script: Buffer): Promise<string> {
  const server = createServer(({ url }, response) => {
    response.setHeader('content-security-policy', "default-src 'self'");
    const isScript = url === '/page.js';
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
    response.end(isScript ? script : '<!doctype html><title></title><script type="module" src="/page.js"></script>');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  const page = await browser.newPage();
  try {
    const failed = page.waitForEvent('pageerror').then(({ message }) => message);
    await page.goto(`http://127.0.0.1:${address.port}/`);
    const done = page.waitForFunction('document.title !== ""').then(() => page.title());
    failed.catch(() => undefined);
    return await Promise.race([done, failed]);
  } finally {
    await page.close();
    server.closeAllConnections();
    server.close();
  }
}
