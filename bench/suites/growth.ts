/** Measures how costs grow: each cost as a curve over a size on which it should not depend. */
import { connectionsWithin } from '../lib/files.ts';
import { reasonOf, type Run } from '../lib/rounds.ts';
import type { Report } from '../lib/report.ts';
import { goalsOf, nameOf, tableOf, type Axis } from './growth-axis.ts';
import { byEnded } from './growth-ended.ts';
import { byMessages } from './growth-messages.ts';
import { byConnections, byUsers } from './growth-population.ts';
import { byMasters, byRelays } from './growth-relays.ts';
import { byStreams } from './growth-streams.ts';
import { writeGrowth } from './growth-write.ts';

/** The axes by name. `--only` selects by these names. */
const AXES: readonly (readonly [string, (run: Run) => Promise<Axis>])[] = [
  ['connections-memory', (run) => byConnections(run, 'memory')],
  ['connections-redis', (run) => byConnections(run, 'redis')],
  ['users', byUsers],
  ['messages-memory', (run) => byMessages(run, 'memory')],
  ['messages-redis', (run) => byMessages(run, 'redis')],
  ['subscribers', byStreams],
  ['relays', byRelays],
  ['masters', byMasters],
  ['ended', byEnded],
];

export async function growth(run: Run): Promise<Report> {
  const axes: Axis[] = [];
  const failed: string[] = [];
  for (const [name, measure] of AXES.filter(([name]) => run.wanted(name))) {
    try {
      axes.push(await measure(run));
    } catch (error) {
      failed.push(`${name} could not run: ${reasonOf(error)}`);
    }
  }
  const notes = [
    `A process may hold ${nameOf(connectionsWithin(20_000))} connections here. Pages are of 50 rows, from the middle of what they list. "Redis" is the CPU of Redis for the same operation.`,
    ...failed,
  ];
  const report: Report = { suite: 'growth', tables: axes.map(tableOf), goals: axes.flatMap(goalsOf), notes };
  if (run.write) await writeGrowth({ axes, order: AXES.map(([name]) => name), rounds: run.pace.rounds });
  return report;
}
