/** Makes JSON texts that grow, for payloads, params and variables. */
import { GROWING_JSON } from '../json-text.ts';
import type { Draw } from '../random.ts';

/** A form of JSON text and its size in bytes. */
export type JsonGene = { readonly form: number; readonly bytes: number };

/** The size that leaves room for the rest of a body or frame of 1 MiB. */
const BYTES_MAX = 1_020_000;

export function drawJson(draw: Draw): JsonGene {
  return { form: draw.int(0, GROWING_JSON.length - 1), bytes: draw.size(BYTES_MAX) };
}

/** Returns a larger text of the same form, or another form of the same size. */
export function growJson(draw: Draw, { form, bytes }: JsonGene): JsonGene {
  if (draw.chance(0.3)) return { form: draw.int(0, GROWING_JSON.length - 1), bytes };
  return { form, bytes: Math.min(BYTES_MAX, bytes * draw.pick([2, 4, 16])) };
}

export function jsonOf({ form, bytes }: JsonGene): string {
  return GROWING_JSON[form]?.(bytes) ?? 'null';
}

export function showJson(gene: JsonGene): string {
  return `${jsonOf(gene).slice(0, 24)}... of ${gene.bytes} bytes`;
}
