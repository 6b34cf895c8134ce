/**
 * `npm run console:measure` measures what the console costs in the browser and at the relay with many connections and
 * calls. It prints a table in Markdown, and fails if a figure exceeds its bound. It needs Chromium.
 */
import { cpus, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { buildConsole } from '../../scripts/bundles.ts';
import { namesOf, positiveNumber, readOptions, wholeNumber } from '../lib/options.ts';
import { measureConsole, PARTS } from './measure.ts';

const OPTIONS = {
  connections: { type: 'string', default: '10000', takes: 'n', says: 'connected clients' },
  rate: { type: 'string', default: '100', takes: 'n', says: 'calls a second' },
  minutes: { type: 'string', default: '2', takes: 'n', says: 'how long the heap of a live page is watched' },
  seconds: { type: 'string', default: '10', takes: 'n', says: 'how long each live page is watched' },
  only: { type: 'string', takes: 'parts', says: `separated by commas: ${PARTS.join(', ')}` },
} as const;

const asked = readOptions({ program: 'npm run console:measure', about: null, options: OPTIONS }, (values) => ({
  connections: wholeNumber('connections', values.connections),
  rate: positiveNumber('rate', values.rate),
  minutes: positiveNumber('minutes', values.minutes),
  seconds: positiveNumber('seconds', values.seconds),
  only: namesOf('only', values.only, PARTS),
}));

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
await buildConsole(fileURLToPath(new URL('../../dist/console/', import.meta.url)));
const figures = await measureConsole({
  ...asked,
  say: (line) => void process.stderr.write(`${line}\n`),
});
const lines = figures.map(({ text, measured, bound, unit, digits }) => {
  const verdict = measured <= bound ? 'met' : 'MISSED';
  return `| ${text} | ${measured.toFixed(digits)} ${unit} | ${bound} ${unit} | ${verdict} |`;
});
process.stdout.write(
  [
    `${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GB, Node ${process.version}, ${asked.connections} connections, ${asked.rate} calls a second`,
    '',
    '| what | measured | at most | |',
    '| --- | --- | --- | --- |',
    ...lines,
    '',
  ].join('\n'),
);
process.exitCode = figures.every(({ measured, bound }) => measured <= bound) ? 0 : 1;
