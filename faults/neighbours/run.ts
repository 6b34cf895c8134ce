/**
 * `npm run neighbours`: attacks of a hostile user on relays in processes of their own. An honest user of the same
 * relays must not notice the attacks.
 */
import { namesOf, positiveNumber, readOptions } from '../lib/options.ts';
import { mergeTables, writePart } from '../lib/page.ts';
import { ATTACKS } from './attacks/attacks.ts';
import { runEpisode } from './episode.ts';
import { faultsOf, tableOf, type Episode } from './verdict.ts';

const MODES = ['direct', 'shared'] as const;
const NAMES = ATTACKS.map(({ name }) => name);
const OPTIONS = {
  attack: { type: 'string', takes: 'a,b', says: `only these attacks: ${NAMES.join(', ')}` },
  mode: { type: 'string', takes: 'm', says: `only these modes: ${MODES.join(', ')}` },
  seconds: { type: 'string', default: '60', takes: 'n', says: 'length of each attack' },
  alone: {
    type: 'string',
    default: '15',
    takes: 'n',
    says: 'length of the time before each attack in which the honest user is alone',
  },
  source: { type: 'string', takes: 'f', says: 'the relays run from there instead of from src' },
  write: { type: 'boolean', default: false, says: 'replaces the rows of these attacks in docs/neighbours.md' },
} as const;

const { attacks, modes, timing, isWritten } = readOptions(
  { program: 'npm run neighbours', about: 'Prints a table in Markdown for docs/neighbours.md.', options: OPTIONS },
  (values) => ({
    attacks: namesOf('attack', values.attack, NAMES),
    modes: namesOf('mode', values.mode, MODES),
    timing: {
      seconds: positiveNumber('seconds', values.seconds),
      aloneSeconds: positiveNumber('alone', values.alone),
      source: values.source,
    },
    isWritten: values.write,
  }),
);

const TIMING = { timing: true };
const write = (line: string): void => void process.stdout.write(`${line}\n`);

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
const episodes: Episode[] = [];
let green = true;
for (const mode of modes) {
  for (const attack of attacks) {
    const episode = await runEpisode({ attack, mode, ...timing });
    episodes.push(episode);
    const faults = faultsOf(episode, TIMING);
    green &&= faults.length === 0;
    write(`${faults.length === 0 ? 'holds' : 'FAILS'}  ${attack} (${mode})`);
    for (const fault of faults) write(`       ${fault}`);
  }
}
write(`\n${tableOf(episodes, TIMING)}\n`);
if (isWritten) {
  const keys = MODES.flatMap((mode) => NAMES.map((name) => `${name} ${mode}`));
  const keyOf = ([attack = '', mode = '']: readonly string[]): string => `${attack} ${mode}`;
  await writePart('docs/neighbours.md', 'npm run neighbours -- --write', (old) =>
    mergeTables(old, tableOf(episodes, TIMING), { keyOf, keys }),
  );
}
write(green ? 'green' : 'RED');
process.exitCode = green ? 0 : 1;
