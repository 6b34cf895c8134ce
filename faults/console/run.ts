/**
 * `npm run console:measure`: what the console costs in the browser and at the relay, with many connections and calls.
 * Prints a table in Markdown, and fails when a figure misses its bound. Needs Chromium.
 */
import { cpus, totalmem } from 'node:os';
import { parseArgs } from 'node:util';
import { measureConsole } from './measure.ts';

const { values } = parseArgs({
  options: {
    connections: { type: 'string', default: '10000' },
    rate: { type: 'string', default: '100' },
    minutes: { type: 'string', default: '10' },
  },
});

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
const figures = await measureConsole({
  connections: Number(values.connections),
  rate: Number(values.rate),
  minutes: Number(values.minutes),
  say: (line) => void process.stderr.write(`${line}\n`),
});
const lines = figures.map(({ text, measured, bound, unit, digits }) => {
  const verdict = measured <= bound ? 'met' : 'MISSED';
  return `| ${text} | ${measured.toFixed(digits)} ${unit} | ${bound} ${unit} | ${verdict} |`;
});
process.stdout.write(
  [
    `${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GB, Node ${process.version}, ${values.connections} connections, ${values.rate} calls a second`,
    '',
    '| what | measured | at most | |',
    '| --- | --- | --- | --- |',
    ...lines,
    '',
  ].join('\n'),
);
process.exitCode = figures.every(({ measured, bound }) => measured <= bound) ? 0 : 1;
