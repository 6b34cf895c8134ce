/** Finds the fenced examples of the documentation. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../../..');

/**
 * A fenced block of a page. `info` is what follows the language. A block without `info` is run. `file=client.mjs` gives
 * the program a name, `clicks=Allow,Refuse` names the buttons that are clicked in a page, `enrols=demo` the user for whom the page's code is
 * confirmed, `shows` marks what the examples
 * before it printed, `not-run: reason` says why a block is not run, and RUN_BY names the test that runs it.
 */
export type Example = {
  readonly language: string;
  readonly info: string;
  readonly text: string;
  readonly line: number;
};

const FENCE = /^( *)```(\w+)(?: +(.*))?\n([\s\S]*?)^ *```$/gm;

/** Returns the fenced blocks of a page that name a language, in order. */
export function examplesOf(page: string): readonly Example[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  return [...text.matchAll(FENCE)].map(({ index, 1: indent = '', 2: language = '', 3: info = '', 4: body = '' }) => ({
    language,
    info,
    text: body.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    line: text.slice(0, index).split('\n').length,
  }));
}

/**
 * The tests that run some of the examples instead. The key is the word with which the example's `info` begins, such as
 * `interop: apollo.mjs`. These tests install packages first.
 */
const RUN_BY: Readonly<Record<string, string>> = {
  interop: 'run by `npm run interop`, with the libraries that it installs',
  demo: 'run by test/docs/demo-examples.test.ts against the demo',
  packages: 'run by test/packages, in a folder where the package is installed',
};

/** Returns why a block is not run by this test; null if it is run. The text is empty if the page states no reason. */
export function reasonNotRun({ info }: Example): string | null {
  const [, word = '', rest = ''] = /^([\w-]+): *(.*)$/.exec(info) ?? [];
  return word === 'not-run' ? rest : (RUN_BY[word] ?? null);
}
