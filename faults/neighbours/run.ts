/**
 * `npm run neighbours` runs the attacks of a hostile user on relays in separate processes. An honest user of the same
 * relays must not notice the attacks, and must be able to read even while the store is full.
 */
import { namesOf, positiveNumber, readOptions, UsageError } from '../lib/options.ts';
import { mergeTables, writePart } from '../lib/page.ts';
import { ATTACKS, attackOf } from './attacks/attacks.ts';
import { runEpisode } from './episode.ts';
import { FILLED_MODES, MODES, faultsOf, isUsual, tableOf, type Episode, type Mode } from './verdict.ts';

const NAMES = ATTACKS.map(({ name }) => name);
const OPTIONS = {
  attack: { type: 'string', takes: 'a,b', says: `only these attacks: ${NAMES.join(', ')}` },
  mode: { type: 'string', takes: 'm', says: `only these modes: ${MODES.join(', ')} (all but owned)` },
  seconds: { type: 'string', default: '60', takes: 'n', says: 'length of each attack' },
  alone: {
    type: 'string',
    default: '15',
    takes: 'n',
    says: 'length of the time before each attack in which the honest user is alone',
  },
  'full-disk': {
    type: 'boolean',
    default: false,
    says: `fills the disk of the data directory, or the memory of Redis, in the middle of each attack (${FILLED_MODES.join(', ')})`,
  },
  source: { type: 'string', takes: 'f', says: 'the relays run from there instead of from src' },
  write: {
    type: 'boolean',
    default: false,
    says: 'replaces the rows of these attacks and modes in docs/neighbours-measured.md',
  },
} as const;

const { attacks, modes, timing, isFilled, isWritten } = readOptions(
  {
    program: 'npm run neighbours',
    about: 'Prints a table in Markdown for docs/neighbours-measured.md.',
    options: OPTIONS,
  },
  (values) => ({
    attacks: namesOf('attack', values.attack, NAMES),
    modes: modesOf(values.mode, values['full-disk']),
    timing: {
      seconds: positiveNumber('seconds', values.seconds),
      aloneSeconds: positiveNumber('alone', values.alone),
      source: values.source,
    },
    isFilled: values['full-disk'],
    isWritten: values.write,
  }),
);

function modesOf(text: string | undefined, isFilled: boolean): readonly Mode[] {
  if (text === undefined) return (isFilled ? FILLED_MODES : MODES).filter(isUsual);
  const modes = namesOf('mode', text, MODES);
  if (isFilled && modes.includes('direct')) throw new UsageError('--full-disk needs a mode with a store, not direct.');
  return modes;
}

const TIMING = { timing: true };
const write = (line: string): void => void process.stdout.write(`${line}\n`);

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
const episodes: Episode[] = [];
let green = true;
for (const mode of modes) {
  for (const attack of attacks) {
    if (attackOf(attack).notIn?.includes(mode)) {
      write(`not in this mode: ${attack} (${mode})`);
      continue;
    }
    const episode = await runEpisode({ attack, mode, isFilled, ...timing });
    const skipped = episode.full?.skipped ?? null;
    // Episodes without a full store are left out of the table, whose rows state that the store was full.
    if (skipped === null) episodes.push(episode);
    const faults = faultsOf(episode, TIMING);
    green &&= faults.length === 0;
    write(`${faults.length === 0 ? 'holds' : 'FAILS'}  ${attack} (${mode})`);
    if (skipped !== null) write(`       the store was not filled: ${skipped}`);
    for (const fault of faults) write(`       ${fault}`);
  }
}
write(`\n${tableOf(episodes, TIMING)}\n`);
if (isWritten && episodes.length > 0) {
  const keys = MODES.flatMap((mode) => NAMES.map((name) => `${name} ${mode}`));
  const keyOf = ([attack = '', mode = '']: readonly string[]): string => `${attack} ${mode}`;
  const part = `npm run neighbours -- ${isFilled ? '--full-disk ' : ''}--write`;
  await writePart('docs/neighbours-measured.md', part, (old) =>
    mergeTables(old, tableOf(episodes, TIMING), { keyOf, keys }),
  );
}
write(green ? 'green' : 'RED');
process.exitCode = green ? 0 : 1;
