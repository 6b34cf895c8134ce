/**
 * Builds the client libraries for browsers (`node src/clients/build.ts` writes them to dist/clients), and puts the JSON
 * Schema validator into the compiled runtime. Not shipped.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build, type BuildEnvironmentOptions } from 'vite';

export type Built = { readonly file: string; readonly bytes: number; readonly gzipBytes: number };

/**
 * The bundler's replacement of `self.location` in the code of `@cfworker/json-schema`. It hides the page's address from
 * this library. When the library is loaded, it resolves schemas against the page's address, and throws if that address
 * is not a plain URL, as in a worker made from a blob. Without an address, the library uses a fixed one.
 */
export const WITHOUT_ADDRESS = { 'self.location': 'undefined' };

const LIBRARIES = ['runtime', 'caller', 'site'] as const;

/**
 * Writes `<library>.js` for each library: one minified ES module without imports. Resolves with their sizes in bytes.
 */
export async function buildClients(folder: string): Promise<readonly Built[]> {
  const built: Built[] = [];
  for (const library of LIBRARIES) {
    await bundle(library, folder);
    const bytes = await readFile(join(folder, `${library}.js`));
    built.push({ file: `${library}.js`, bytes: bytes.length, gzipBytes: gzipSync(bytes).length });
  }
  return built;
}

async function bundle(library: string, folder: string): Promise<void> {
  const entry = fileURLToPath(new URL(`./${library}/index.ts`, import.meta.url));
  // `minify` is set on the bundler itself, because vite keeps white space in library mode.
  const output = { codeSplitting: false, minify: true } as const;
  await buildModule({ entry, folder, name: library, target: 'es2022', rolldownOptions: { output } });
}

/**
 * Puts the JSON Schema validator into the compiled runtime, so that the published packages do not depend on the
 * validator: rewrites dist/clients/runtime/registry.js. The other files of the runtime are not bundled into it.
 */
export async function inlineValidator(): Promise<void> {
  const folder = fileURLToPath(new URL('../../dist/clients/runtime/', import.meta.url));
  const entry = `${folder}registry.js`;
  const external = (name: string, importer?: string): boolean => importer === entry && name.startsWith('.');
  await buildModule({ entry, folder, name: 'registry', target: 'es2024', rolldownOptions: { external } });
}

type Module = Pick<BuildEnvironmentOptions, 'rolldownOptions'> & {
  readonly entry: string;
  readonly folder: string;
  readonly name: string;
  readonly target: string;
};

/** Writes `<name>.js` to a folder that also holds other files. */
async function buildModule({ entry, folder, name, target, rolldownOptions = {} }: Module): Promise<void> {
  await build({
    configFile: false,
    publicDir: false,
    logLevel: 'error',
    define: WITHOUT_ADDRESS,
    build: {
      outDir: folder,
      emptyOutDir: false,
      target,
      minify: false,
      sourcemap: false,
      lib: { entry, formats: ['es'], fileName: () => `${name}.js` },
      rolldownOptions,
    },
  });
}

if (import.meta.main) {
  const folder = fileURLToPath(new URL('../../dist/clients/', import.meta.url));
  for (const { file, bytes, gzipBytes } of await buildClients(folder)) {
    process.stdout.write(`dist/clients/${file}  ${kilobytes(bytes)}, gzip ${kilobytes(gzipBytes)}\n`);
  }
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(1)} kB`;
}
