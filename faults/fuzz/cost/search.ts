/** Searches each kind for its dearest inputs: keeps those that cost most, and grows them. */
import { Draw } from '../../lib/random.ts';
import { BOUNDS, type Cost, type CostInput, type CostKind, dearness, medianOf } from './cost.ts';

/** The dearest input of a kind, by the medians of several measurements. */
export type Finalist = { readonly kind: CostKind; readonly input: CostInput; readonly cost: Cost };

type SearchOptions = {
  readonly seed: number;
  readonly kinds: readonly CostKind[];
  /** Sends an input once and returns what it cost. */
  measure(input: CostInput): Promise<Cost>;
  /** Returns the part of the search that is over, from 0 to 1. The search begins with the first call. */
  progress(): number;
  readonly onFinalist?: (finalist: Finalist) => void;
};

/** The number of inputs of a kind that are sent first and not counted, so that its code is compiled and cached. */
const WARM_UP = 3;
/** The number of dear inputs that are kept of each kind. */
const KEPT = 4;
/** The number of inputs of one kind that are sent one after the other, before the next kind. */
const ROUND = 3;
/** The part of the search in which all kinds get the same number of inputs; then only the dearest kinds grow. */
const EVEN_PART = 0.6;
/** The number of kinds that grow in the last part. */
const DEAREST_KINDS = 8;
/** The chance that an input is a mutant of a dear one, and not a new one. */
const GROWN = 0.85;
/** Kinds whose dearest input is this near to a bound are measured again, and at least so many kinds. */
const FINAL_DEARNESS = 0.25;
const FINAL_KINDS = 10;
/** The number of dear inputs of a kind that are measured again. */
const FINAL_INPUTS = 2;
/** The measurements of a finalist, of which the median counts. */
export const REPETITIONS = 5;

type Tried = { readonly input: CostInput; readonly shown: string; readonly dear: number };
type Pool = { readonly kind: CostKind; readonly draw: Draw; best: readonly Tried[]; refused: boolean };

/**
 * Warms up each kind, searches until `progress` returns 1, then measures the dearest inputs of the kinds that came near
 * a bound again. Returns them, dearest first.
 */
export async function searchDearest(options: SearchOptions): Promise<readonly Finalist[]> {
  const { seed, kinds, measure, progress, onFinalist = () => {} } = options;
  const pools = kinds.map((kind): Pool => ({
    kind,
    draw: new Draw(seed, `${kind.name} ${kind.sender}`, 0),
    best: [],
    refused: false,
  }));
  for (const pool of pools) {
    const answers: string[] = [];
    for (let n = 0; n < WARM_UP; n++) answers.push((await measure(pool.kind.draw(pool.draw))).answer);
    // A kind that this sender may not use costs what any refusal costs.
    pool.refused = answers.every((answer) => answer === 'forbidden');
  }
  const open = pools.filter(({ refused }) => !refused);
  for (let round = 0; progress() < 1; round++) {
    const even = progress() < EVEN_PART;
    const chosen = even ? open : [...open].sort((a, b) => dearOf(b) - dearOf(a)).slice(0, DEAREST_KINDS);
    for (const pool of chosen)
      for (let n = 0; n < ROUND && progress() < 1 && (even ? progress() < EVEN_PART : true); n++)
        await tryOne(pool, measure);
    if (chosen.length === 0) break;
  }
  const finalists: Finalist[] = [];
  const byDearness = [...open].sort((a, b) => dearOf(b) - dearOf(a));
  for (const pool of byDearness.filter((pool, i) => i < FINAL_KINDS || dearOf(pool) >= FINAL_DEARNESS)) {
    const finalist = await measureAgain(pool, measure);
    if (!finalist) continue;
    finalists.push(finalist);
    onFinalist(finalist);
  }
  return finalists.sort((a, b) => dearness(b.cost, b.kind.sender) - dearness(a.cost, a.kind.sender));
}

const dearOf = ({ best }: Pool): number => best[0]?.dear ?? 0;

async function tryOne(pool: Pool, measure: SearchOptions['measure']): Promise<void> {
  const { kind, draw, best } = pool;
  const parent = best.length > 0 && draw.chance(GROWN) ? draw.pick(best) : null;
  const input = parent ? parent.input.mutate(draw) : kind.draw(draw);
  let dear = dearness(await measure(input), kind.sender);
  // A garbage collection makes any input dear once. A new dearest must be dear twice.
  if (dear > dearOf(pool)) dear = Math.min(dear, dearness(await measure(input), kind.sender));
  const shown = input.show();
  const others = best.filter((one) => one.shown !== shown);
  // Of inputs that cost the same the newest is kept: most mutants are larger, and the cost may only show later.
  pool.best = [{ input, shown, dear }, ...others].sort((a, b) => b.dear - a.dear).slice(0, KEPT);
}

/**
 * Measures the kept inputs of a kind again and returns the dearest by its median. An input that was dear once, because
 * of a garbage collection, must not hide one that is always dear.
 */
async function measureAgain({ kind, best }: Pool, measure: SearchOptions['measure']): Promise<Finalist | null> {
  let dearest: Finalist | null = null;
  for (const { input } of best.slice(0, FINAL_INPUTS)) {
    const costs: Cost[] = [];
    for (let n = 0; n < REPETITIONS; n++) costs.push(await measure(input));
    const cost = medianOf(costs);
    if (!dearest || dearness(cost, kind.sender) > dearness(dearest.cost, kind.sender)) dearest = { kind, input, cost };
  }
  return dearest;
}

// Judges the dearest inputs by the bounds, and writes their table.

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
