// Preloaded (`node -r`) by the scripts in package.json, so that an old Node exits with one line. Plain CommonJS,
// because every Node must be able to parse it. `src/node-version.ts` has the same rule for the published package.
'use strict';
const NEEDED = 24;
if (parseInt(process.versions.node, 10) < NEEDED) {
  const INSTALL = 'https://nodejs.org/en/download has it.';
  process.stderr.write(
    'callboard needs Node ' + NEEDED + ' or newer; this is ' + process.versions.node + '. ' + INSTALL + '\n',
  );
  process.exit(1);
}
// Does what src/bin.ts does, but before Node reads that file: when every file is in the compile cache, Node does not
// load its type stripper, which takes 15 MB.
if (/[\\/]bin\.ts$/.test(process.argv[1] || '')) {
  const cache = require('node:path').join(__dirname, '..', 'node_modules', '.cache', 'callboard');
  require('node:module').enableCompileCache(cache);
}
