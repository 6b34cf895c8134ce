/** Writes the results of a suite into docs/measurements.md, between two markers. */
import { readFile, writeFile } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { format } from 'prettier';

const PAGE = new URL('../../docs/measurements.md', import.meta.url);
export const STYLE = { printWidth: 120, singleQuote: true, proseWrap: 'preserve' } as const;

/** Returns a description of this machine for the reader of the results. */
export function machine(): string {
  return `${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GB`;
}

/**
 * Replaces the text between a suite's markers in docs/measurements.md. `how`: a sentence about how the medians were
 * taken. Throws if the page does not have the markers.
 */
export async function writeSection(suite: string, { how, text }: { how: string; text: string }): Promise<void> {
  const [begin, end] = [`<!-- ${suite}: begin, written by --write -->`, `<!-- ${suite}: end -->`];
  const whole = await readFile(PAGE, 'utf8');
  const [from, to] = [whole.indexOf(begin), whole.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/measurements.md has no "${begin}" before "${end}".`);
  const said = `Measured with Node ${process.version} on ${machine()}; medians of ${how}.`;
  const written = `${whole.slice(0, from)}${begin}\n\n${said}\n\n${text}\n\n${whole.slice(to)}`;
  await writeFile(PAGE, await format(written, { parser: 'markdown', ...STYLE }));
}
