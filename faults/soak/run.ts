/** `npm run soak` runs a relay under a steady load, and judges whether its memory keeps growing. */
import { positiveNumber, readOptions, wholeNumber } from '../lib/options.ts';
import {
  HEAP,
  inMib,
  judgeSlope,
  STORE_BYTES,
  STORE_KEYS,
  WARM_UP_MINUTES,
  type Measure,
  type Sample,
} from './slope.ts';
import { soak } from './soak.ts';

const OPTIONS = {
  minutes: { type: 'string', default: '60', takes: 'n', says: 'length of the run' },
  rate: { type: 'string', default: '300', takes: 'n', says: 'calls a second' },
  every: { type: 'string', default: '1', takes: 'n', says: 'minutes between two samples' },
  warm: {
    type: 'string',
    default: String(WARM_UP_MINUTES),
    takes: 'n',
    says: 'minutes at the start that are not judged',
  },
  shared: {
    type: 'boolean',
    default: false,
    says: 'over a Redis, whose keys and memory are sampled too; otherwise in direct mode',
  },
  'hour-seconds': {
    type: 'string',
    default: '300',
    takes: 'n',
    says: 'what is kept for an hour by default is kept for so long, and so expires many times in a run',
  },
  source: { type: 'string', takes: 'f', says: 'the relay runs from there instead of from src' },
} as const;

const { warm, ...asked } = readOptions(
  {
    program: 'npm run soak',
    about: 'Samples the heap of the relay after garbage collection, and prints a table in Markdown.',
    options: OPTIONS,
  },
  (values) => ({
    minutes: positiveNumber('minutes', values.minutes),
    rate: positiveNumber('rate', values.rate),
    everyMinutes: positiveNumber('every', values.every),
    hourMs: positiveNumber('hour-seconds', values['hour-seconds']) * 1000,
    shared: values.shared,
    source: values.source,
    warm: wholeNumber('warm', values.warm),
  }),
);

const write = (line: string): void => void process.stdout.write(`${line}\n`);

/**
 * The allowed number of repeated requests per thousand. A few repetitions are normal, because a connection may close
 * just when its next request is sent.
 */
const RESENT_PER_THOUSAND = 0.1;

function row({ minute, calls, heapBytes, rssBytes, store, worstTurnMs, stalledMs }: Sample): string {
  const relay = [minute, calls, inMib(heapBytes), inMib(rssBytes), worstTurnMs.toFixed(0), stalledMs.toFixed(0)];
  return `| ${[...relay, ...(store ? [store.keys, inMib(store.bytes)] : [])].join(' | ')} |`;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
const heads = ['minute', 'calls', 'heap after collections, MiB', 'resident, MiB', 'worst turn, ms of CPU'];
heads.push('longest stall, ms', ...(asked.shared ? ['keys in Redis', 'memory of Redis, MiB'] : []));
write(`| ${heads.join(' | ')} |\n|${' --- |'.repeat(heads.length)}`);
const { samples, calls, resent, wrong, miscounts } = await soak({
  ...asked,
  onSample: (sample) => write(row(sample)),
});
const measures: readonly Measure[] = asked.shared ? [HEAP, STORE_KEYS, STORE_BYTES] : [HEAP];
const judged = measures.map((measure) => ({ measure, ...judgeSlope(samples, warm, measure) }));
write(`\n${calls} calls, ${wrong.length === 0 ? 'all' : 'not all'} as they should be`);
for (const problem of wrong) write(`  ${problem}`);
if (asked.shared) write(`${miscounts.length} counters in Redis are not what is there at the end`);
for (const what of miscounts) write(`  ${what}`);
write(`growth of the best line through the samples from minute ${warm} on, and the most that is permitted:`);
for (const { measure, grown, most, samples: count } of judged)
  write(`  ${measure.name}: ${measure.text(grown)} of ${measure.text(most)}, ${count} samples`);
write(`${resent} requests were sent again because their connection broke`);
const flat = judged.every((measure) => measure.flat);
const right = wrong.length === 0 && miscounts.length === 0;
const green = flat && right && resent * 1000 <= calls * RESENT_PER_THOUSAND;
write(green ? 'green' : 'RED');
process.exitCode = green ? 0 : 1;
