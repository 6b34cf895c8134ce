/** Generates random JSON texts with numbers, names and nesting that parsers often handle wrongly. */
import { hostileText } from './hostile.ts';
import type { Draw } from '../lib/random.ts';

const NUMBERS: readonly string[] = [
  ...['0', '-0', '1', '-1', '1.5', '1e999', '-1e999', '1e-999', '9007199254740993', '18446744073709551616'],
  ...[
    '0.1000000000000000055511151231257827',
    '123456789012345678901234567890',
    '1E+2',
    '9'.repeat(300),
    `0.${'1'.repeat(300)}`,
  ],
];
const LITERALS: readonly string[] = ['null', 'true', 'false', '""', '[]', '{}', '"\\u0000"', '"\\ud800"', '"\\u2028"'];
const KEYS: readonly string[] = [
  'a',
  'b',
  '0',
  '10',
  '2',
  '-1',
  '01',
  '__proto__',
  'constructor',
  'toJSON',
  'then',
  '',
  'id',
];

/** Forms of JSON whose cost grows with its size, in bytes. */
const GROWING_JSON: readonly ((bytes: number) => string)[] = [
  (n) => `{${list(n / 9, (i) => `"k${i}":${i % 10}`)}}`,
  (n) => `[${list(n / 2, () => '0')}]`,
  (n) => `[${list(n / 3, () => '{}')}]`,
  (n) => `{${list(n / 6, () => '"a":1')}}`,
  (n) => `{${list(n / 9, (i) => `"${n - i}":0`)}}`,
  (n) => '['.repeat(n / 2) + ']'.repeat(n / 2),
  (n) => '{"a":'.repeat(n / 6) + '1' + '}'.repeat(n / 6),
  (n) => '9'.repeat(n),
  (n) => `"${'\\u0041'.repeat(n / 6)}"`,
  (n) => `"${'\\\\'.repeat(n / 2)}"`,
  (n) => `"${'x'.repeat(n)}"`,
  (n) => ' '.repeat(n) + '1',
  (n) => '\n'.repeat(n) + '{}',
];

function list(count: number, item: (i: number) => string): string {
  return Array.from({ length: Math.max(1, Math.floor(count)) }, (_, i) => item(i)).join(',');
}

/**
 * Draws JSON text of any form, up to `max` bytes. It contains repeated keys, large numbers and unusual white space,
 * which JSON.stringify cannot write.
 */
export function jsonText(draw: Draw, max: number): string {
  if (draw.chance(0.1)) return growing(draw, () => draw.size(max));
  if (draw.chance(0.04)) return growing(draw, () => 200);
  return value(draw, draw.int(0, 4));
}

/** Draws JSON text like `jsonText`, but always an object. */
export function objectText(draw: Draw, max: number): string {
  if (draw.chance(0.15)) return `{${list(draw.size(max) / 9, (i) => `"k${i}":${i % 10}`)}}`;
  return members(draw, draw.int(0, 3));
}

/** Draws one of the growing forms, or a hostile text. The size is drawn after the form. */
function growing(draw: Draw, bytes: () => number): string {
  const form = draw.pick([...GROWING_JSON, null]);
  const size = bytes();
  return form === null ? JSON.stringify(hostileText(draw)) : form(size);
}

function value(draw: Draw, depth: number): string {
  const kind = depth === 0 ? draw.int(0, 2) : draw.int(0, 4);
  if (kind === 0) return draw.pick(NUMBERS);
  if (kind === 1) return draw.pick(LITERALS);
  if (kind === 2) return JSON.stringify(hostileText(draw, 2_000));
  if (kind === 3) return `[${list(draw.int(1, 4), () => value(draw, depth - 1))}]`;
  return members(draw, depth - 1);
}

function members(draw: Draw, depth: number): string {
  const count = draw.int(0, 4);
  if (count === 0) return '{}';
  return `{${list(count, () => `${JSON.stringify(draw.chance(0.8) ? draw.pick(KEYS) : hostileText(draw, 200))}:${value(draw, depth)}`)}}`;
}

// Generates JSON texts that grow, for payloads, params and variables.

/** A growing JSON text: the index of its form, and its size in bytes. */
export type JsonGene = { readonly form: number; readonly bytes: number };

/** The maximum size in bytes, which leaves room for the rest of a body or frame of 1 MiB. */
const BYTES_MAX = 1_020_000;

export function drawJson(draw: Draw): JsonGene {
  return { form: draw.int(0, GROWING_JSON.length - 1), bytes: draw.size(BYTES_MAX) };
}

/** Returns a larger text of the same form, or a text of another form with the same size. */
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
