/**
 * `npm run neighbours`: attacks of a hostile user on relays in processes of their own. An honest user of the same
 * relays must not notice the attacks.
 *
 * npm run neighbours                                       each attack for a minute, in both modes
 * npm run neighbours -- --attack large-results,bad-tokens --mode direct --seconds 10
 * npm run neighbours -- --source <folder>                  the relays run from there instead of from src
 *
 * Prints a table in Markdown for docs/neighbours.md.
 */
import { parseArgs } from 'node:util';
import { ATTACKS, attackOf } from './attacks/attacks.ts';
import { runEpisode } from './episode.ts';
import { faultsOf, tableOf, type Episode } from './verdict.ts';

const { values } = parseArgs({
  options: {
    attack: { type: 'string' },
    mode: { type: 'string' },
    seconds: { type: 'string', default: '60' },
    alone: { type: 'string', default: '15' },
    source: { type: 'string' },
  },
});

const MODES = ['direct', 'shared'] as const;
const TIMING = { timing: true };
const write = (line: string): void => void process.stdout.write(`${line}\n`);
const attacks = values.attack?.split(',').map((name) => attackOf(name).name) ?? ATTACKS.map(({ name }) => name);
const modes = MODES.filter((mode) => values.mode === undefined || values.mode === mode);
if (modes.length === 0) throw new Error(`--mode is one of ${MODES.join(', ')}`);

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));
const episodes: Episode[] = [];
let green = true;
for (const mode of modes) {
  for (const attack of attacks) {
    const { seconds, alone, source } = values;
    const episode = await runEpisode({ attack, mode, seconds: Number(seconds), aloneSeconds: Number(alone), source });
    episodes.push(episode);
    const faults = faultsOf(episode, TIMING);
    green &&= faults.length === 0;
    write(`${faults.length === 0 ? 'holds' : 'FAILS'}  ${attack} (${mode})`);
    for (const fault of faults) write(`       ${fault}`);
  }
}
write(`\n${tableOf(episodes, TIMING)}\n`);
write(green ? 'green' : 'RED');
process.exitCode = green ? 0 : 1;
