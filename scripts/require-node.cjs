// Preloaded (`node -r`) by the scripts of package.json, so that an old Node ends with one line. Plain CommonJS: it must parse anywhere.
// `src/node-version.ts` holds the same rule for the published package.
'use strict';
const NEEDED = 24;
if (parseInt(process.versions.node, 10) < NEEDED) {
  process.stderr.write('callboard needs Node ' + NEEDED + ' or newer; this is ' + process.versions.node + '.\n');
  process.exit(1);
}
