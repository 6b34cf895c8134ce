/**
 * `npm run console:measure`: what the console costs in the browser and at the relay, with many connections and calls.
 * Prints a table in Markdown, and fails when a figure misses its bound. Needs Chromium.
 */
import { cpus, totalmem } from 'node:os';
import { positiveNumber, readOptions, wholeNumber } from '../lib/options.ts';
import { measureConsole } from './measure.ts';

const OPTIONS = {
  connections: { type: 'string', default: '10000', takes: 'n', says: 'connected clients' },
  rate: { type: 'string', default: '100', takes: 'n', says: 'calls a second' },
  minutes: { type: 'string', default: '10', takes: 'n', says: 'length of the run' },
} as const;

const asked = readOptions({ program: 'npm run console:measure', about: null, options: OPTIONS }, (values) => ({
  connections: wholeNumber('connections', values.connections),
  rate: positiveNumber('rate', values.rate),
  minutes: positiveNumber('minutes', values.minutes),
}));

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
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
