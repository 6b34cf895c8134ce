/**
 * Builds the console: `node src/console/build.ts` writes it to dist/console. The package contains the result, not this
 * file.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build, type Plugin } from 'vite';
import { WITHOUT_ADDRESS } from '../clients/build.ts';

export type BuiltFile = { readonly file: string; readonly bytes: number; readonly gzipBytes: number };

/**
 * The packages of React and what replaces them. The forms library is written for React; Preact has the same interface.
 */
const ALIASES = {
  'react/jsx-runtime': 'preact/jsx-runtime',
  'react-dom': 'preact/compat',
  react: 'preact/compat',
};

/**
 * The modules that nearly every page needs. They are bundled as one file, because many small files would need many
 * requests.
 */
const SHARED =
  /src\/console\/(api|base|pages\/columns|session|shell|ui)|node_modules\/(@preact|preact\/(dist|hooks|jsx-runtime)|preact-iso)\//;

/**
 * The groups of modules that are bundled as one file each: the shared modules, and what the drawer and the form both
 * need. Without the second group, one of these two files would import the other, and a browser that once failed to load
 * a file cannot load a file that imports it.
 */
const GROUPS = [
  { name: 'shared', test: SHARED, priority: 2 },
  { name: 'schema', test: /src\/console\/form\/form-schema/, priority: 1 },
];

/**
 * Leaves out a validator that only the tests of the forms library need, although the library's main code imports it.
 */
const WITHOUT_TESTS: Plugin = {
  name: 'without-test-validator',
  enforce: 'pre',
  resolveId: (id) => (id === '@rjsf/validator-ajv8' ? '\0none' : null),
  load: (id) => (id === '\0none' ? 'export default {};' : null),
};

/** Writes `index.html` and `assets/`, with relative addresses. Resolves with the sizes of the files, in bytes. */
export async function buildConsole(folder: string): Promise<readonly BuiltFile[]> {
  await build({
    configFile: false,
    publicDir: false,
    logLevel: 'error',
    root: fileURLToPath(new URL('./', import.meta.url)),
    base: './',
    define: WITHOUT_ADDRESS,
    resolve: { alias: ALIASES },
    plugins: [WITHOUT_TESTS],
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      outDir: folder,
      emptyOutDir: true,
      target: 'es2022',
      sourcemap: false,
      // All pages have one stylesheet, so that a page that is loaded later needs no request for styles.
      cssCodeSplit: false,
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      rolldownOptions: { output: { codeSplitting: { groups: GROUPS } } },
    },
  });
  const names = (await readdir(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length));
  return Promise.all(
    names.map(async (file) => {
      const bytes = await readFile(join(folder, file));
      return { file: file.replace(/^\//, ''), bytes: bytes.length, gzipBytes: gzipSync(bytes).length };
    }),
  );
}

/** Returns the files that index.html names. The browser loads them before it can show a page. */
export async function firstLoad(folder: string): Promise<readonly string[]> {
  const html = await readFile(join(folder, 'index.html'), 'utf8');
  return [...html.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map((match) => match[1] ?? '');
}

if (import.meta.main) {
  const folder = fileURLToPath(new URL('../../dist/console/', import.meta.url));
  const files = await buildConsole(folder);
  for (const { file, bytes, gzipBytes } of files) {
    process.stdout.write(`dist/console/${file}  ${kilobytes(bytes)}, gzip ${kilobytes(gzipBytes)}\n`);
  }
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(1)} kB`;
}
