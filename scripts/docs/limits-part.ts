/** Writes the generated part of docs/limits.md: the limits in core/limits.ts, grouped by their subject. */
import * as limits from '../../src/core/limits.ts';
import { amount } from './amounts.ts';
import { table } from './table.ts';
import { LIMIT_TEXTS } from './texts.ts';

type Bound = number | { readonly default: number; readonly min: number; readonly max: number };

const BOUNDS: Readonly<Record<string, unknown>> = { ...limits };

/** Returns Markdown with one table for each group of limits. Throws if a described limit does not exist. */
export function limitsPart(): string {
  return Object.entries(LIMIT_TEXTS)
    .map(([title, texts]) => {
      const rows = Object.entries(texts).map(([name, text]) => [text, figure(name, boundOf(name))]);
      return `## ${title}\n\n${table(['what', 'figure'], rows)}`;
    })
    .join('\n\n');
}

function boundOf(name: string): Bound {
  const bound = BOUNDS[name];
  if (typeof bound === 'number' || isRange(bound)) return bound;
  throw new Error(`src/core/limits.ts has no bound ${name}.`);
}

function isRange(bound: unknown): bound is Exclude<Bound, number> {
  return typeof bound === 'object' && bound !== null && 'default' in bound && 'min' in bound && 'max' in bound;
}

function figure(name: string, bound: Bound): string {
  if (typeof bound === 'number') return amount(name, bound);
  return `${amount(name, bound.default)}; ${amount(name, bound.min)} to ${amount(name, bound.max)}`;
}
