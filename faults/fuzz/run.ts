/**
 * `npm run fuzz`: hostile frames, HTTP requests and GraphQL documents, made from a seed, against a relay in a process
 * of its own.
 *
 *     npm run fuzz                                      full size: 1,000,000 frames, 200,000 requests, 50,000 documents
 *     npm run fuzz -- --seed 7 --frames 10000 --requests 0 --documents 0
 *     npm run fuzz -- --seed 7 --only frames --at 123   sends one input again and prints it whole
 *     npm run fuzz -- --source <folder>                 the relay runs from there instead of from src
 */
import { parseArgs } from 'node:util';
import { TURN_MS } from './engine.ts';
import { fuzz } from './fuzz.ts';
import { KIND_NAMES, type KindName } from './kinds.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    frames: { type: 'string', default: '1000000' },
    requests: { type: 'string', default: '200000' },
    documents: { type: 'string', default: '50000' },
    only: { type: 'string' },
    at: { type: 'string' },
    findings: { type: 'string', default: '20' },
    warm: { type: 'string', default: '4000' },
    source: { type: 'string' },
  },
});

const write = (line: string): void => void process.stdout.write(`${line}\n`);
/** The number of findings of one group that the report shows in full. */
const SHOWN_OF_A_GROUP = 2;
/** The number of findings of each group. The findings of a group differ only in their input and in numbers. */
const groups = new Map<string, number>();
const seed = Number(values.seed ?? Math.floor(Math.random() * 1e9));

function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new Error(`expected a whole number: ${text}`);
  return Number(text);
}

function countsOf(): Partial<Record<KindName, number>> {
  const wanted = values.only === undefined ? KIND_NAMES : KIND_NAMES.filter((name) => name === values.only);
  if (wanted.length === 0) throw new Error(`--only is one of ${KIND_NAMES.join(', ')}`);
  return Object.fromEntries(wanted.map((name) => [name, values.at === undefined ? wholeNumber(values[name]) : 1]));
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
write(`seed ${seed}`);
const { heap, green } = await fuzz({
  seed,
  counts: countsOf(),
  from: wholeNumber(values.at ?? '0'),
  most: wholeNumber(values.findings),
  source: values.source,
  warmUp: values.at === undefined ? wholeNumber(values.warm) : 0,
  onFinding: ({ kind, index, what, input }) => {
    const group = `${kind} ${what.replaceAll(/\d+/g, 'N')}`;
    const known = groups.get(group) ?? 0;
    groups.set(group, known + 1);
    if (known < SHOWN_OF_A_GROUP)
      write(
        `FOUND  ${what}\n       npm run fuzz -- --seed ${seed} --only ${kind} --at ${index}\n${input.replaceAll(/^/gm, '       ')}`,
      );
  },
  onReport: ({ kind, sent, seconds, findings, worst, together }) =>
    write(
      `${kind}: ${sent} in ${seconds.toFixed(0)} s (${(sent / seconds).toFixed(0)} a second), ${findings.length} findings, worst turn of one input ${worst.ms.toFixed(0)} ms (index ${worst.index}; at most ${TURN_MS}), ${together} turns above it by several inputs together`,
    ),
});
for (const [group, count] of groups) write(`${count} times: ${group}`);
if (heap) write(heap.text);
write(green ? 'green' : 'RED');
process.exitCode = green ? 0 : 1;
