/**
 * Writes the results of the suite `growth`: figures and plots in `growth/`, and tables between two markers of
 * docs/performance.md.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { format } from 'prettier';
import { plotted } from '../lib/plot.ts';
import { printed } from '../lib/print.ts';
import { STYLE, writeSection } from '../lib/figures.ts';
import { goalsOf, plotOf, tableOf, type Axis } from './growth-axis.ts';

const FOLDER = new URL('../growth/', import.meta.url);
const FIGURES = new URL('figures.json', FOLDER);

/** The measured axes to write. `order`: the names of all axes in the order of the page. */
export type Found = { readonly axes: readonly Axis[]; readonly order: readonly string[]; readonly rounds: number };

/**
 * Writes the plots and the section of the page. Axes that were not measured this time keep their earlier results.
 * Throws if the page has no markers for the section.
 */
export async function writeGrowth({ axes, order, rounds }: Found): Promise<void> {
  const known = new Map([...(await figures()), ...axes].map((axis) => [axis.file, axis]));
  const all = order.flatMap((file) => known.get(file) ?? []);
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
