/** Judges the dearest inputs by the bounds, and writes their table. */
import { BOUNDS } from './cost.ts';
import type { Finalist } from './search.ts';

/** Returns the bounds that these inputs break; none if they keep all. No inputs prove nothing, which is a fault. */
export function costFaults(finalists: readonly Finalist[]): readonly string[] {
  if (finalists.length === 0) return ['nothing was measured, so this proves nothing'];
  return finalists.flatMap(({ kind, cost }) => {
    const bounds = BOUNDS[kind.sender];
    const of = `${kind.family}: ${kind.name} (${kind.sender})`;
    const faults = [];
    if (cost.turnMs > bounds.turnMs) faults.push(`${of}: a turn of ${ms(cost.turnMs)}, at most ${bounds.turnMs} ms`);
    if (cost.cpuMs > bounds.cpuMs) faults.push(`${of}: ${ms(cost.cpuMs)} of CPU, at most ${bounds.cpuMs} ms`);
    if (cost.scriptMs > bounds.scriptMs)
      faults.push(`${of}: ${cost.script} took ${ms(cost.scriptMs)}, at most ${bounds.scriptMs} ms`);
    return faults;
  });
}

const COLUMNS = ['mode', 'kind', 'sender', 'longest turn', 'CPU', 'longest script', 'all scripts', 'answer', 'input'];

/** Returns a Markdown table of these inputs, at most `rows`. */
export function costTable(mode: string, finalists: readonly Finalist[], rows: number): string {
  const lines = finalists
    .slice(0, rows)
    .map(({ kind, input, cost }) => [
      mode,
      `\`${kind.name}\``,
      kind.sender,
      ms(cost.turnMs),
      ms(cost.cpuMs),
      cost.scriptMs === 0 ? '-' : `${ms(cost.scriptMs)} (${cost.script})`,
      cost.redisMs === 0 ? '-' : ms(cost.redisMs),
      cost.answer,
      `\`${cell(input.show())}\``,
    ]);
  return [COLUMNS, COLUMNS.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

const SHOWN = 160;

/** Returns the text as it may be in a cell of a table, shortened. */
function cell(text: string): string {
  const short = text.length <= SHOWN ? text : `${text.slice(0, SHOWN)}… (${text.length} characters)`;
  return short.replaceAll(/[|`\s]+/g, ' ').trim();
}

function ms(value: number): string {
  return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms`;
}
