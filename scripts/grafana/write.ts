/**
 * `npm run dashboard` writes deploy/grafana/callboard.json. With `--check` it writes nothing, and exits with 1 if the
 * file differs from what the list of metrics gives.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { dashboardText } from './dashboard.ts';

const FILE = fileURLToPath(new URL('../../deploy/grafana/callboard.json', import.meta.url));

const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
if (!values.check) writeFileSync(FILE, dashboardText());
else if (readFileSync(FILE, 'utf8') !== dashboardText()) {
  process.stderr.write('deploy/grafana/callboard.json is out of date: run npm run dashboard\n');
  process.exitCode = 1;
}
