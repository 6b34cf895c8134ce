/** Builds the client libraries for browsers. `node src/clients/build.ts` writes them to dist/clients. Not shipped. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';

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
  await build({
    configFile: false,
    publicDir: false,
    logLevel: 'error',
    define: WITHOUT_ADDRESS,
    build: {
      outDir: folder,
      // The folder also holds the other libraries.
      emptyOutDir: false,
      target: 'es2022',
      sourcemap: false,
      lib: {
        entry: fileURLToPath(new URL(`./${library}/index.ts`, import.meta.url)),
        formats: ['es'],
        fileName: () => `${library}.js`,
      },
      // `minify` is set on the bundler itself, because vite keeps white space in library mode.
      rolldownOptions: { output: { codeSplitting: false, minify: true } },
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
