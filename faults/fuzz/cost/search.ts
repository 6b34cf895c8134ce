/** Searches the most expensive inputs of each kind: keeps the inputs that cost most, and grows them. */
import { Draw } from '../../lib/random.ts';
import { BOUNDS, type Cost, type CostInput, type CostKind, dearness, medianOf } from './cost.ts';

/** The most expensive input of a kind, by the medians of several measurements. */
export type Finalist = { readonly kind: CostKind; readonly input: CostInput; readonly cost: Cost };

type SearchOptions = {
  readonly seed: number;
  readonly kinds: readonly CostKind[];
  /** Sends an input once and returns its cost. */
  measure(input: CostInput): Promise<Cost>;
  /** Returns the completed fraction of the search, from 0 to 1. The search begins at the first call. */
  progress(): number;
  readonly onFinalist?: (finalist: Finalist) => void;
};

/**
 * The number of inputs of a kind that are sent before the measurement, so that the kind's code is compiled and cached.
 */
const WARM_UP = 3;
/** The number of expensive inputs of each kind that are kept. */
const KEPT = 4;
/** The number of inputs of one kind that are sent before the next kind. */
const ROUND = 3;
/**
 * The fraction of the search in which all kinds get the same number of inputs. After it, only the most expensive kinds
 * grow.
 */
const EVEN_PART = 0.6;
/** The number of kinds that grow in the last part of the search. */
const DEAREST_KINDS = 8;
/** The probability that an input is a mutant of an expensive one instead of a new one. */
const GROWN = 0.85;
/**
 * A kind whose most expensive input is at least this near to a limit is measured again. At least FINAL_KINDS kinds are.
 */
const FINAL_DEARNESS = 0.25;
const FINAL_KINDS = 10;
/** The number of expensive inputs of a kind that are measured again. */
const FINAL_INPUTS = 2;
/** The number of measurements of a finalist, whose median counts. */
export const REPETITIONS = 5;

type Tried = { readonly input: CostInput; readonly shown: string; readonly dear: number };
type Pool = { readonly kind: CostKind; readonly draw: Draw; best: readonly Tried[]; refused: boolean };

/**
 * Warms up each kind, searches until `progress` returns 1, and then measures again the most expensive inputs of the
 * kinds that came near a limit. Returns these inputs, most expensive first.
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
    // A kind that this sender may not use costs only as much as any refusal.
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
  // Measured twice, because a garbage collection can make any input expensive once.
  if (dear > dearOf(pool)) dear = Math.min(dear, dearness(await measure(input), kind.sender));
  const shown = input.show();
  const others = best.filter((one) => one.shown !== shown);
  // Of inputs with equal costs, the newest is kept: most mutants are larger, and may become expensive when they grow
  // further.
  pool.best = [{ input, shown, dear }, ...others].sort((a, b) => b.dear - a.dear).slice(0, KEPT);
}

/**
 * Measures the kept inputs of a kind again, and returns the most expensive one by its median. Otherwise an input that
 * was expensive once, because of a garbage collection, would hide one that is always expensive.
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

// Judges the most expensive inputs by the limits, and writes their table.

/**
 * Returns the limits that these inputs exceed; empty if there are none. It is a fault if there are no inputs, because
 * then nothing was proved.
 */
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

/** Returns a Markdown table of these inputs, with at most `rows` rows. */
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

/** Returns the text in a form that is allowed in a table cell, shortened. */
function cell(text: string): string {
  const short = text.length <= SHOWN ? text : `${text.slice(0, SHOWN)}… (${text.length} characters)`;
  return short.replaceAll(/[|`\s]+/g, ' ').trim();
}

function ms(value: number): string {
  return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms`;
}
