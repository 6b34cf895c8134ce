/**
 * `npm run fuzz` sends hostile frames, HTTP requests and GraphQL documents, generated from a seed, to a relay in its
 * own process. With `--cost` it searches the most expensive inputs. With `--same` it runs random sequences of
 * operations on all backends and compares the results.
 */
import { namesOf, positiveNumber, readOptions, wholeNumber } from '../lib/options.ts';
import { runCost } from './cost/run-cost.ts';
import { writePart } from '../lib/page.ts';
import { runTests } from '../lib/run-tests.ts';
import { MODES, type Mode } from './cost/cost-target.ts';
import { costFaults, costTable } from './cost/search.ts';
import { TURN_MS } from './engine.ts';
import { fuzz } from './fuzz.ts';
import { KIND_NAMES, type KindName } from './kinds.ts';

/** The test that runs sequences of operations in memory, over Redis, and on relays that own partitions. */
const SAME = 'test/contract/commands-same.test.ts';
/** The test that runs sequences of 600 operations in memory, without and with a data directory. */
const SAME_AFTER_RESTARTS = 'test/backends/durable-same.test.ts';

const OPTIONS = {
  seed: { type: 'string', takes: 'n', says: 'the inputs are made from it (random)' },
  frames: { type: 'string', default: '1000000', takes: 'n', says: 'frames of links' },
  requests: { type: 'string', default: '200000', takes: 'n', says: 'HTTP requests' },
  documents: { type: 'string', default: '50000', takes: 'n', says: 'GraphQL documents' },
  only: { type: 'string', takes: 'a,b', says: `only these kinds: ${KIND_NAMES.join(', ')}` },
  at: { type: 'string', takes: 'n', says: 'sends only the input with this number, and prints it whole' },
  findings: { type: 'string', default: '20', takes: 'n', says: 'stops after so many findings' },
  warm: { type: 'string', default: '4000', takes: 'n', says: 'inputs before the memory is first measured' },
  source: { type: 'string', takes: 'f', says: 'the relay runs from there instead of from src' },
  cost: { type: 'boolean', default: false, says: 'searches the dearest inputs instead, with the options below' },
  mode: { type: 'string', takes: 'm', says: `only these modes: ${MODES.join(', ')}` },
  seconds: { type: 'string', default: '600', takes: 'n', says: 'length of the search in each mode' },
  match: { type: 'string', default: '', takes: 't', says: 'only kinds whose name contains this text' },
  write: { type: 'boolean', default: false, says: 'replaces the table of these modes in docs/input-costs.md' },
  rows: { type: 'string', default: '30', takes: 'n', says: 'rows of the table of each mode' },
  same: {
    type: 'boolean',
    default: false,
    says: 'plays sequences of acts on memory, Redis and owners instead, and compares',
  },
  sequences: { type: 'string', default: '5000', takes: 'n', says: 'with --same: how many sequences' },
  durable: {
    type: 'boolean',
    default: false,
    says: 'with --same: memory with a data directory that is restarted, not Redis',
  },
} as const;

const asked = readOptions({ program: 'npm run fuzz', about: null, options: OPTIONS }, (values) => {
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
    sequences: values.same ? wholeNumber('sequences', values.sequences) : null,
    same: values.durable ? SAME_AFTER_RESTARTS : SAME,
    cost: values.cost
      ? {
          families: namesOf('only', values.only, KIND_NAMES),
          modes: namesOf('mode', values.mode, MODES),
          seconds: positiveNumber('seconds', values.seconds),
          match: values.match,
          rows: wholeNumber('rows', values.rows),
          isWritten: values.write,
        }
      : null,
  };
});

const write = (line: string): void => void process.stdout.write(`${line}\n`);
/** The number of findings of one group that the report shows in full. */
const SHOWN_OF_A_GROUP = 2;
/** The number of sequences of operations that are run in one process. */
const SEQUENCES_OF_A_PART = 100;
/** The number of findings in each group. Findings of one group differ only in their input and in numbers. */
const groups = new Map<string, number>();

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
const { seed } = asked;
write(`seed ${seed}`);
if (asked.sequences !== null) process.exit((await playSame(asked.same, asked.sequences)) ? 0 : 1);
if (asked.cost) {
  const { modes, rows, isWritten, ...search } = asked.cost;
  const tables = new Map<Mode, string>();
  const faults: string[] = [];
  for (const mode of modes) {
    const { finalists, measured, errors } = await runCost({
      ...{ ...search, seed, mode, source: asked.source },
      onProgress: (line) => write(`${mode}: ${line}`),
    });
    write(`${mode}: ${measured} inputs measured`);
    faults.push(...costFaults(finalists).map((fault) => `${mode}: ${fault}`));
    faults.push(...errors.map((error) => `${mode}: logged: ${error.trim().slice(0, 300)}`));
    tables.set(mode, costTable(mode, finalists, rows));
  }
  write(`\n${[...tables.values()].join('\n\n')}\n`);
  // The table of each mode has its own place on the page, so that a run of one mode keeps the table of the other.
  for (const [mode, table] of isWritten ? tables : [])
    await writePart('docs/input-costs.md', `npm run fuzz -- --cost --write, ${mode}`, () => table);
  for (const fault of faults) write(`FOUND  ${fault}`);
  write(faults.length === 0 ? 'green' : 'RED');
  process.exit(faults.length === 0 ? 0 : 1);
}
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

/**
 * Runs sequences of operations on several stores, in parts with different seeds. Returns whether all stores behaved
 * alike.
 */
async function playSame(file: string, sequences: number): Promise<boolean> {
  for (let played = 0; played < sequences; played += SEQUENCES_OF_A_PART) {
    const count = Math.min(SEQUENCES_OF_A_PART, sequences - played);
    const env = { CALLBOARD_TEST_SEED: String(seed + played), CALLBOARD_TEST_RUNS: String(count) };
    const { failed } = await runTests({ files: [file], env });
    write(`seed ${seed + played}: ${count} sequences, ${failed === null ? 'alike' : 'NOT ALIKE'}`);
    const again = `CALLBOARD_TEST_SEED=${seed + played} CALLBOARD_TEST_RUNS=${count} npx vitest run ${file}`;
    if (failed) write(`FOUND  ${failed.name}\n${failed.message}\n       ${again}`);
    if (failed) return false;
  }
  write('green');
  return true;
}
