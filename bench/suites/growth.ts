/** Measures how costs grow, each cost as a curve over a size on which it should not depend. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { format } from 'prettier';
import { STYLE, writeSection } from '../lib/figures.ts';
import { connectionsWithin } from '../lib/files.ts';
import { plotted } from '../lib/plot.ts';
import { printed } from '../lib/print.ts';
import type { Report } from '../lib/report.ts';
import { reasonOf, type Run } from '../lib/rounds.ts';
import { type Axis, goalsOf, nameOf, plotOf, tableOf } from './growth-axis.ts';
import { byConnections, byEnded, byUsers } from './growth-population.ts';
import { byMessages, byStreams } from './growth-messages.ts';
import { byHomes } from './growth-homes.ts';
import { byIdleRelays } from './growth-idle.ts';
import { byMasters, byRelays } from './growth-relays.ts';

/** The axes by name. Some are measured together. `--only` selects axes by these names. */
const AXES: readonly (readonly [string, (run: Run) => Promise<Axis | readonly Axis[]>])[] = [
  ['connections-memory', (run) => byConnections(run, 'memory')],
  ['connections-redis', (run) => byConnections(run, 'redis')],
  ['users', byUsers],
  ['messages-memory', (run) => byMessages(run, 'memory')],
  ['messages-redis', (run) => byMessages(run, 'redis')],
  ['subscribers', byStreams],
  ['relays', (run) => byRelays(run, 'redis')],
  ['relays-owned', (run) => byRelays(run, 'owned')],
  ['masters', (run) => byMasters(run, 'redis')],
  ['masters-owned', (run) => byMasters(run, 'owned')],
  ['relays-idle', byIdleRelays],
  ['homes', byHomes],
  ['ended', byEnded],
];

export async function growth(run: Run): Promise<Report> {
  const axes: Axis[] = [];
  const failed: string[] = [];
  for (const [name, measure] of AXES.filter(([name]) => run.wanted(name))) {
    try {
      axes.push(...[await measure(run)].flat());
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

// Writes the results of the suite `growth`: figures and plots into `growth/`, and tables between two markers of
// docs/measurements.md.

const FOLDER = new URL('../growth/', import.meta.url);
const FIGURES = new URL('figures.json', FOLDER);

/** The measured axes to write. `order`: the names of all axes, in the order of the page. */
export type Found = { readonly axes: readonly Axis[]; readonly order: readonly string[]; readonly rounds: number };

/**
 * Writes the plots and the section of the page. Axes that were not measured in this run keep their earlier results.
 * Throws if the page does not have the markers.
 */
async function writeGrowth({ axes, order, rounds }: Found): Promise<void> {
  const known = new Map([...(await figures()), ...axes].map((axis) => [axis.file, axis]));
  // An axis that is measured together with another one has that one's name with a suffix, and comes after it.
  const all = order.flatMap((name) => [name, `${name}-traffic`].flatMap((file) => known.get(file) ?? []));
  await mkdir(FOLDER, { recursive: true });
  await writeFile(FIGURES, await format(JSON.stringify(all), { parser: 'json', ...STYLE }));
  for (const axis of all) await writeFile(new URL(`${axis.file}.svg`, FOLDER), plotted(plotOf(axis)));
  await writeSection('growth', { how: `${rounds} rounds`, text: sectionOf(all) });
}

/** Reads the results that an earlier run wrote. */
async function figures(): Promise<readonly Axis[]> {
  try {
    return JSON.parse(await readFile(FIGURES, 'utf8')) as readonly Axis[];
  } catch {
    return [];
  }
}

function sectionOf(axes: readonly Axis[]): string {
  const images = axes.map(({ file, title }) => `![${title}](../bench/growth/${file}.svg)`);
  const found = printed({ suite: '', tables: axes.map(tableOf), goals: axes.flatMap(goalsOf), notes: [] });
  return [...images, found.replace(/^## *\n+/, '')].join('\n\n');
}
