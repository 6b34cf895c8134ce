/**
 * Puts the JSON Schema validator into the compiled runtime, so that the published packages do not depend on the
 * validator. `node src/clients/inline-validator.ts` rewrites dist/clients/runtime/registry.js. Not shipped.
 */
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import { WITHOUT_ADDRESS } from './build.ts';

const folder = fileURLToPath(new URL('../../dist/clients/runtime/', import.meta.url));
const entry = `${folder}registry.js`;

await build({
  configFile: false,
  publicDir: false,
  logLevel: 'error',
  define: WITHOUT_ADDRESS,
  build: {
    outDir: folder,
    // The folder also holds the rest of the runtime.
    emptyOutDir: false,
    target: 'es2024',
    minify: false,
    lib: { entry, formats: ['es'], fileName: () => 'registry.js' },
    // The other files of the runtime are not bundled into this one.
    rolldownOptions: { external: (name, importer) => importer === entry && name.startsWith('.') },
  },
});
