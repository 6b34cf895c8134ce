/** Keeps what the suite found: figures and plots in `growth/`, and tables between two marks of the README. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { format } from 'prettier';
import { plotted } from '../lib/plot.ts';
import { printed } from '../lib/print.ts';
import { goalsOf, plotOf, tableOf, type Axis } from './growth-axis.ts';

const FOLDER = new URL('../growth/', import.meta.url);
const FIGURES = new URL('figures.json', FOLDER);
const README = new URL('../README.md', import.meta.url);
const [BEGIN, END] = ['<!-- growth: begin, written by --write -->', '<!-- growth: end -->'];
const STYLE = { printWidth: 120, singleQuote: true, proseWrap: 'preserve' } as const;

/** `order`: the names of all axes. */
export type Found = { readonly axes: readonly Axis[]; readonly order: readonly string[]; readonly rounds: number };

/** Writes the plot of each axis and the section; axes that were not measured this time keep what was found before. Throws where the README has no marks. */
export async function writeGrowth({ axes, order, rounds }: Found): Promise<void> {
  const text = await readFile(README, 'utf8');
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`bench/README.md has no "${BEGIN}" before "${END}".`);
  const known = new Map([...(await figures()), ...axes].map((axis) => [axis.file, axis]));
  const all = order.flatMap((file) => known.get(file) ?? []);
  await mkdir(FOLDER, { recursive: true });
  await writeFile(FIGURES, await format(JSON.stringify(all), { parser: 'json', ...STYLE }));
  for (const axis of axes) await writeFile(new URL(`${axis.file}.svg`, FOLDER), plotted(plotOf(axis)));
  const section = sectionOf(all, rounds);
  const whole = `${text.slice(0, from)}${BEGIN}\n\n${section}\n\n${text.slice(to)}`;
  await writeFile(README, await format(whole, { parser: 'markdown', ...STYLE }));
}

/** What an earlier run wrote. */
async function figures(): Promise<readonly Axis[]> {
  try {
    return JSON.parse(await readFile(FIGURES, 'utf8')) as readonly Axis[];
  } catch {
    return [];
  }
}

function sectionOf(axes: readonly Axis[], rounds: number): string {
  const machine = `${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GB`;
  const images = axes.map(({ file, title }) => `![${title}](growth/${file}.svg)`);
  const found = printed({ suite: '', tables: axes.map(tableOf), goals: axes.flatMap(goalsOf), notes: [] });
  const said = `Measured with Node ${process.version} on ${machine}; medians of ${rounds} rounds.`;
  return [said, ...images, found.replace(/^## *\n+/, '')].join('\n\n');
}
