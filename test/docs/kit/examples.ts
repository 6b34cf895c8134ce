import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../../..');

/** A fenced block of a page. `info`: what follows the language, such as `file=client.mjs` or `not-run: reason`. */
export type Example = {
  readonly language: string;
  readonly info: string;
  readonly text: string;
  readonly line: number;
};

const FENCE = /^( *)```(\w+)(?: +(.*))?\n([\s\S]*?)^ *```$/gm;

/** The fenced blocks of a page that name a language, in order. */
export function examplesOf(page: string): readonly Example[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  return [...text.matchAll(FENCE)].map(({ index, 1: indent = '', 2: language = '', 3: info = '', 4: body = '' }) => ({
    language,
    info,
    text: body.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    line: text.slice(0, index).split('\n').length,
  }));
}

/** Why a block is not run; null if it is. An empty reason counts as none given. */
export function reasonNotRun({ info }: Example): string | null {
  return /^not-run: *(.*)$/.exec(info)?.[1] ?? null;
}
