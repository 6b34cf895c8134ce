/**
 * `npm run mutants`: leaves out one guard after the other in a copy of the sources, and prints what noticed it. Each
 * missing guard must be noticed, and the judging tests must pass on a copy without a mutant.
 *
 * npm run mutants -- --only no-frame-rate,codes-masked
 * npm run mutants -- --source <folder>       uses a copy of that `src`, judged by the tests beside it
 */
import { parseArgs } from 'node:util';
import { GUARD_MUTANTS } from './guards.ts';
import { caught, failsUnharmed } from './judge.ts';

const { values } = parseArgs({ options: { only: { type: 'string' }, source: { type: 'string' } } });
const wanted = values.only?.split(',');
const mutants = GUARD_MUTANTS.filter(({ name }) => wanted?.includes(name) ?? true);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
const write = (line: string): void => void process.stdout.write(`${line}\n`);
const unharmed = await failsUnharmed(mutants, values.source);
if (unharmed !== null) write(`RED     without any mistake: ${unharmed}`);
let green = mutants.length > 0 && unharmed === null;
for (const mutant of mutants) {
  const by = await caught(mutant, values.source);
  green &&= by !== null;
  write(`${by === null ? 'MISSED' : 'caught'}  ${mutant.name} (${mutant.says}): ${by ?? 'nothing'}`);
}
write(green ? `green: ${mutants.length} caught` : 'RED');
process.exitCode = green ? 0 : 1;
