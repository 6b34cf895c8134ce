/**
 * `npm run console:measure`: what the console costs in the browser and at the relay, with many connections and calls.
 * Prints a table in Markdown, and fails when a figure misses its bound. Needs Chromium.
 */
import { cpus, totalmem } from 'node:os';
import { positiveNumber, readOptions, wholeNumber } from '../lib/options.ts';
import { measureConsole } from './measure.ts';

const HELP = `npm run console:measure [-- <options>]

  --connections n   connected clients (10000)
  --rate n          calls a second (100)
  --minutes n       length of the run (10)
`;
const OPTIONS = {
  connections: { type: 'string', default: '10000' },
  rate: { type: 'string', default: '100' },
  minutes: { type: 'string', default: '10' },
} as const;

const asked = readOptions({ help: HELP, options: OPTIONS }, (values) => ({
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
