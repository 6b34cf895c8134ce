// Preloaded (`node -r`) by the scripts in package.json, so that an old Node exits with one line. Plain CommonJS,
// because every Node must be able to parse it. `src/node-version.ts` has the same rule for the published package.
'use strict';
const NEEDED = 24;
if (parseInt(process.versions.node, 10) < NEEDED) {
  process.stderr.write('callboard needs Node ' + NEEDED + ' or newer; this is ' + process.versions.node + '.\n');
  process.exit(1);
}
