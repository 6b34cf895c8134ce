/** `npm run mutants`: leaves out one guard after the other in a copy of the sources, and prints what noticed it. */
import { namesOf, positiveNumber, readOptions } from '../lib/options.ts';
import { GUARD_MUTANTS } from './guards.ts';
import { caught, caughtInSimulation, failsUnharmed } from './judge.ts';

const ABOUT = 'Each missing guard must be noticed, and the judging tests must pass on a copy without a mutant.';
const NAMES = GUARD_MUTANTS.map(({ name }) => name);
const OPTIONS = {
  only: { type: 'string', takes: 'a,b', says: 'only these mutants' },
  simulate: {
    type: 'string',
    takes: 'n',
    says: 'judges them by the runs of `npm run simulate` with the first n seeds',
  },
  source: { type: 'string', takes: 'f', says: 'uses a copy of that src, judged by the tests beside it' },
} as const;

const { wanted, seeds, source } = readOptions(
  { program: 'npm run mutants', about: ABOUT, options: OPTIONS },
  ({ only, simulate, source }) => ({
    wanted: namesOf('only', only, NAMES),
    seeds: simulate === undefined ? null : positiveNumber('simulate', simulate),
    source,
  }),
);
const mutants = GUARD_MUTANTS.filter(({ name }) => wanted.includes(name));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
const write = (line: string): void => void process.stdout.write(`${line}\n`);
const unharmed = seeds === null ? await failsUnharmed(mutants, source) : null;
if (unharmed !== null) write(`RED     without any mistake: ${unharmed}`);
let green = mutants.length > 0 && unharmed === null;
for (const mutant of mutants) {
  const by = seeds === null ? await caught(mutant, source) : await caughtInSimulation(mutant, seeds);
  green &&= by !== null;
  write(`${by === null ? 'MISSED' : 'caught'}  ${mutant.name} (${mutant.says}): ${by ?? 'nothing'}`);
}
write(green ? `green: ${mutants.length} caught` : 'RED');
process.exitCode = green ? 0 : 1;
