/**
 * Bundles the code for browsers: `node scripts/bundles.ts clients` writes the client libraries to dist/clients, and
 * `node scripts/bundles.ts console` the console to dist/console. The package contains the results, not this file.
 */
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build, type Plugin } from 'vite';

export type Built = { readonly file: string; readonly bytes: number; readonly gzipBytes: number };

const LIBRARIES = ['runtime', 'caller', 'site', 'enrol'] as const;

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
  const entry = fileURLToPath(new URL(`../src/clients/${library}/index.ts`, import.meta.url));
  await build({
    configFile: false,
    publicDir: false,
    logLevel: 'error',
    build: {
      outDir: folder,
      emptyOutDir: false,
      target: 'es2022',
      sourcemap: false,
      lib: { entry, formats: ['es'], fileName: () => `${library}.js` },
      // `minify` is set in the bundler's own options, because vite keeps white space when it builds a library.
      minify: false,
      rolldownOptions: { output: { codeSplitting: false, minify: true, comments: { annotation: false } } },
    },
  });
}

// Bundles the console.

/**
 * Replaces `self.location` in the code of `@cfworker/json-schema`, to hide the page's address from that library. When
 * it is loaded, it resolves schemas against the address, and throws if the address is not a plain URL, as in a worker
 * made from a blob. Without an address, it uses a fixed one.
 */
const WITHOUT_ADDRESS = { 'self.location': 'undefined' };

/**
 * The packages of React and their replacements. The forms library is written for React, and Preact has the same
 * interface.
 */
const ALIASES = {
  'react/jsx-runtime': 'preact/jsx-runtime',
  'react-dom': 'preact/compat',
  react: 'preact/compat',
};

/**
 * Matches the modules that nearly every page needs. They are bundled as one file, because many small files would need
 * many requests.
 */
const SHARED =
  /src\/console\/(api|base|pages\/columns|session|shell|ui)|node_modules\/(@preact|preact\/(dist|hooks|jsx-runtime)|preact-iso)\//;

/**
 * The groups of modules that are bundled as one file each: the shared modules, and the modules that both the drawer and
 * the form need. Without the second group, one of these two files would import the other. A browser that once failed to
 * load a file can never load a file that imports it.
 */
const GROUPS = [
  { name: 'shared', test: SHARED, priority: 2 },
  { name: 'schema', test: /src\/console\/form\/form-schema/, priority: 1 },
];

/** Leaves out a validator that only the forms library's tests need. The library's main code imports it. */
const WITHOUT_TESTS: Plugin = {
  name: 'without-test-validator',
  enforce: 'pre',
  resolveId: (id) => (id === '@rjsf/validator-ajv8' ? '\0none' : null),
  load: (id) => (id === '\0none' ? 'export default {};' : null),
};

/** Writes `index.html` and `assets/`, with relative URLs. Resolves with the sizes of the files, in bytes. */
export async function buildConsole(folder: string): Promise<readonly Built[]> {
  await build({
    configFile: false,
    publicDir: false,
    logLevel: 'error',
    root: fileURLToPath(new URL('../src/console/', import.meta.url)),
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
      // All pages share one stylesheet, so that a page that is loaded later needs no request for styles.
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

/** Returns the files that index.html refers to, which the browser must load before it can show a page. */
export async function firstLoad(folder: string): Promise<readonly string[]> {
  const html = await readFile(join(folder, 'index.html'), 'utf8');
  return [...html.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map((match) => match[1] ?? '');
}

if (import.meta.main) {
  const [what = ''] = process.argv.slice(2);
  const write = new Map([
    ['clients', buildClients],
    ['console', buildConsole],
  ]).get(what);
  if (!write) throw new Error('Expected "clients" or "console".');
  const folder = fileURLToPath(new URL(`../dist/${what}/`, import.meta.url));
  for (const { file, bytes, gzipBytes } of await write(folder))
    process.stdout.write(`dist/${what}/${file}  ${kilobytes(bytes)}, gzip ${kilobytes(gzipBytes)}\n`);
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(1)} kB`;
}
