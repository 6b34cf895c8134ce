/** `npm run mutants`: leaves out one guard after the other in a copy of the sources, and prints what noticed it. */
import { namesOf, positiveNumber, readOptions, UsageError } from '../lib/options.ts';
import { mergeTables, writePart } from '../lib/page.ts';
import { GUARD_MUTANTS } from './guards.ts';
import { caught, failsUnharmed, simulateMutant } from './judge.ts';
import { SIMULATED_MUTANTS, UNNOTICED } from './simulated.ts';

const ABOUT = 'Each missing guard must be noticed, and the judging tests must pass on a copy without a mutant.';
const OPTIONS = {
  only: { type: 'string', takes: 'a,b', says: 'only these mutants' },
  simulate: {
    type: 'string',
    takes: 'n',
    says: 'runs `npm run simulate` with up to n seeds on each mutant that it must notice, instead',
  },
  write: { type: 'boolean', default: false, says: 'with --simulate: writes docs/simulation.md' },
  source: { type: 'string', takes: 'f', says: 'uses a copy of that src, judged by the tests beside it' },
} as const;
const PAGE = 'docs/simulation.md';

const { wanted, seeds, writes, source } = readOptions(
  { program: 'npm run mutants', about: ABOUT, options: OPTIONS },
  ({ only, simulate, write, source }) => {
    if (write && simulate === undefined) throw new UsageError('--write needs --simulate.');
    const known = (simulate === undefined ? GUARD_MUTANTS : SIMULATED_MUTANTS).map(({ name }) => name);
    return {
      wanted: namesOf('only', only, known),
      seeds: simulate === undefined ? null : positiveNumber('simulate', simulate),
      writes: write,
      source,
    };
  },
);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
const write = (line: string): void => void process.stdout.write(`${line}\n`);
process.exitCode = (await (seeds === null ? judgeAll() : simulateAll(seeds))) ? 0 : 1;

async function judgeAll(): Promise<boolean> {
  const mutants = GUARD_MUTANTS.filter(({ name }) => wanted.includes(name));
  const unharmed = await failsUnharmed(mutants, source);
  if (unharmed !== null) write(`RED     without any mistake: ${unharmed}`);
  let green = mutants.length > 0 && unharmed === null;
  for (const mutant of mutants) {
    const by = await caught(mutant, source);
    green &&= by !== null;
    write(`${by === null ? 'MISSED' : 'caught'}  ${mutant.name} (${mutant.says}): ${by ?? 'nothing'}`);
  }
  write(green ? `green: ${mutants.length} caught` : 'RED');
  return green;
}

/** Prints the first seed of each mutant, and writes it into the page at once: such a run takes hours. */
async function simulateAll(most: number): Promise<boolean> {
  const mutants = SIMULATED_MUTANTS.filter(({ name }) => wanted.includes(name));
  if (writes) await writePart(PAGE, 'mutants that the simulator does not notice', () => tableOfUnnoticed());
  let green = mutants.length > 0;
  for (const mutant of mutants) {
    const { name, says, store, acts } = mutant;
    const found = await simulateMutant(mutant, most);
    green &&= found.kind === 'caught';
    if (found.kind === 'caught')
      write(`caught  ${name} (${says}): ${store}, ${acts}, seed ${found.seed}: ${found.says}`);
    else write(`MISSED  ${name} (${says}): ${store}, ${acts}: ${found.kind === 'missed' ? 'nothing' : found.says}`);
    if (writes) await writeRow(rowOf([name, says, store, acts, found.kind === 'caught' ? String(found.seed) : 'none']));
  }
  write(green ? `green: ${mutants.length} caught` : 'RED');
  return green;
}

/** Replaces the row of a mutant, and removes those of mutants that the simulator need not notice any more. */
function writeRow(row: string): Promise<void> {
  const head = ['mutant', 'what is wrong', 'store', 'acts', 'first seed'];
  const table = [rowOf(head), rowOf(head.map(() => '---')), row].join('\n');
  const order = { keyOf: ([name = '']: readonly string[]) => name, keys: SIMULATED_MUTANTS.map(({ name }) => name) };
  return writePart(PAGE, 'mutants and their first seeds', (old) => mergeTables(old, table, order));
}

function tableOfUnnoticed(): string {
  const head = ['why', 'mutants'];
  const rows = UNNOTICED.filter(({ mutants }) => mutants.length > 0).map(({ why, mutants }) =>
    rowOf([why, mutants.map(({ name }) => name).join(', ')]),
  );
  return [rowOf(head), rowOf(head.map(() => '---')), ...rows].join('\n');
}

function rowOf(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}
