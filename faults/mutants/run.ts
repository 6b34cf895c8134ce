/** `npm run mutants`: leaves out one guard after the other in a copy of the sources, and prints what noticed it. */
import { namesOf, readOptions } from '../lib/options.ts';
import { GUARD_MUTANTS } from './guards.ts';
import { caught, failsUnharmed } from './judge.ts';

const ABOUT = 'Each missing guard must be noticed, and the judging tests must pass on a copy without a mutant.';
const NAMES = GUARD_MUTANTS.map(({ name }) => name);
const OPTIONS = {
  only: { type: 'string', takes: 'a,b', says: 'only these mutants' },
  source: { type: 'string', takes: 'f', says: 'uses a copy of that src, judged by the tests beside it' },
} as const;

const { wanted, source } = readOptions(
  { program: 'npm run mutants', about: ABOUT, options: OPTIONS },
  ({ only, source }) => ({ wanted: namesOf('only', only, NAMES), source }),
);
const mutants = GUARD_MUTANTS.filter(({ name }) => wanted.includes(name));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
const write = (line: string): void => void process.stdout.write(`${line}\n`);
const unharmed = await failsUnharmed(mutants, source);
if (unharmed !== null) write(`RED     without any mistake: ${unharmed}`);
let green = mutants.length > 0 && unharmed === null;
for (const mutant of mutants) {
  const by = await caught(mutant, source);
  green &&= by !== null;
  write(`${by === null ? 'MISSED' : 'caught'}  ${mutant.name} (${mutant.says}): ${by ?? 'nothing'}`);
}
write(green ? `green: ${mutants.length} caught` : 'RED');
process.exitCode = green ? 0 : 1;
