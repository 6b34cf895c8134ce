/**
 * `npm run soak -- --minutes 60 --rate 300`: runs a relay in direct mode under a steady load, and samples its heap each
 * minute after garbage collection. Data that is kept for an hour by default is kept for five minutes
 * (`--hour-seconds`), so that it expires many times during a run. Prints a table in Markdown.
 */
import { parseArgs } from 'node:util';
import { judgeSlope, WARM_UP_MINUTES, type Sample } from './slope.ts';
import { soak } from './soak.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    rate: { type: 'string', default: '300' },
    every: { type: 'string', default: '1' },
    warm: { type: 'string', default: String(WARM_UP_MINUTES) },
    'hour-seconds': { type: 'string', default: '300' },
    source: { type: 'string' },
  },
});

const write = (line: string): void => void process.stdout.write(`${line}\n`);
const mib = (bytes: number): string => (bytes / 1024 / 1024).toFixed(1);

/**
 * The fraction of requests that may be repeated, in thousandths. A few repetitions are normal: a connection may close
 * just as its next request is sent.
 */
const RESENT_PER_THOUSAND = 0.1;

function row({ minute, calls, heapBytes, rssBytes, worstTurnMs, stalledMs }: Sample): string {
  return `| ${minute} | ${calls} | ${mib(heapBytes)} | ${mib(rssBytes)} | ${worstTurnMs.toFixed(0)} | ${stalledMs.toFixed(0)} |`;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
write(
  '| minute | calls | heap after collections, MiB | resident, MiB | worst turn, ms of CPU | longest stall, ms |\n| --- | --- | --- | --- | --- | --- |',
);
const { samples, calls, resent, wrong } = await soak({
  minutes: Number(values.minutes),
  rate: Number(values.rate),
  everyMinutes: Number(values.every),
  hourMs: Number(values['hour-seconds']) * 1000,
  source: values.source,
  onSample: (sample) => write(row(sample)),
});
const { flat, grownBytes, mostBytes, samples: judged } = judgeSlope(samples, Number(values.warm));
write(`\n${calls} calls, ${wrong.length === 0 ? 'all' : 'not all'} as they should be`);
for (const problem of wrong) write(`  ${problem}`);
write(
  `best line through the ${judged} samples from minute ${values.warm} on: ${mib(grownBytes)} MiB of growth, at most ${mib(mostBytes)}`,
);
write(`${resent} requests were sent again because their connection broke`);
const green = flat && wrong.length === 0 && resent * 1000 <= calls * RESENT_PER_THOUSAND;
write(green ? 'green' : 'RED');
process.exitCode = green ? 0 : 1;
