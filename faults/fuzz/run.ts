/**
 * `npm run fuzz`: hostile frames, HTTP requests and GraphQL documents, made from a seed, against a relay in a process
 * of its own.
 */
import { namesOf, readOptions, wholeNumber } from '../lib/options.ts';
import { TURN_MS } from './engine.ts';
import { fuzz } from './fuzz.ts';
import { KIND_NAMES, type KindName } from './kinds.ts';

const HELP = `npm run fuzz [-- <options>]

  --seed n        the inputs are made from it (random)
  --frames n      frames of links (1000000)
  --requests n    HTTP requests (200000)
  --documents n   GraphQL documents (50000)
  --only a,b      only these kinds: ${KIND_NAMES.join(', ')}
  --at n          sends only the input with this number, and prints it whole
  --findings n    stops after so many findings (20)
  --warm n        inputs before the memory is first measured (4000)
  --source f      the relay runs from there instead of from src
`;
const OPTIONS = {
  seed: { type: 'string' },
  frames: { type: 'string', default: '1000000' },
  requests: { type: 'string', default: '200000' },
  documents: { type: 'string', default: '50000' },
  only: { type: 'string' },
  at: { type: 'string' },
  findings: { type: 'string', default: '20' },
  warm: { type: 'string', default: '4000' },
  source: { type: 'string' },
} as const;

const asked = readOptions({ help: HELP, options: OPTIONS }, (values) => {
  const one = values.at !== undefined;
  const counted = namesOf('only', values.only, KIND_NAMES).map((name): readonly [KindName, number] => [
    name,
    one ? 1 : wholeNumber(name, values[name]),
  ]);
  return {
    seed: values.seed === undefined ? Math.floor(Math.random() * 1e9) : wholeNumber('seed', values.seed),
    counts: Object.fromEntries(counted),
    from: wholeNumber('at', values.at ?? '0'),
    most: wholeNumber('findings', values.findings),
    source: values.source,
    warmUp: one ? 0 : wholeNumber('warm', values.warm),
  };
});

const write = (line: string): void => void process.stdout.write(`${line}\n`);
/** The number of findings of one group that the report shows in full. */
const SHOWN_OF_A_GROUP = 2;
/** The number of findings of each group. The findings of a group differ only in their input and in numbers. */
const groups = new Map<string, number>();

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
const { seed } = asked;
write(`seed ${seed}`);
const { heap, green } = await fuzz({
  ...asked,
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
