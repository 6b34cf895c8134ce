/**
 * `npm run mutants`: leaves out one guard after the other, in a copy of the sources, and says what noticed. Each must be caught, and the
 * tests that judge must pass in a copy without a mistake.
 *
 *     npm run mutants -- --only no-frame-rate,codes-masked
 *     npm run mutants -- --source <folder>       the guards are left out of a copy of that `src`, and judged by the tests beside it
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
