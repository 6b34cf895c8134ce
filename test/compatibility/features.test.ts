/** Tests that the libraries that a relay serves to pages use nothing newer than the browsers of docs/compatibility.md. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildClients } from '../../scripts/bundles.ts';

/** Features that one of the browsers of the list lacks in its oldest version, as built code would use them. */
const NEWER: Readonly<Record<string, RegExp>> = {
  'Promise.withResolvers': /Promise\.withResolvers/,
  'Promise.try': /Promise\.try\b/,
  'Array.fromAsync': /Array\.fromAsync/,
  'URL.parse': /\bURL\.parse\(/,
  'methods of sets': /\.(isDisjointFrom|isSubsetOf|isSupersetOf|symmetricDifference)\(/,
  'helpers of iterators':
    /(?<!Object)\.(values|keys|entries|matchAll)\([^()]*\)\.(map|filter|take|drop|flatMap|reduce|toArray|forEach|some|every|find)\(/,
  'Iterator.from': /\bIterator\.(from|prototype)/,
  'RegExp.escape': /RegExp\.escape/,
  'Uint8Array.fromBase64': /\.(fromBase64|toBase64|fromHex|toHex)\(/,
  'JSON.rawJSON': /JSON\.(rawJSON|isRawJSON)/,
  'flag v of patterns': /\/[dgimsuy]*v[dgimsuy]*\.(test|exec)\(/,
  'using declarations': /\bawait using\b|\{using \w/,
};

let folder: string;
let texts: ReadonlyMap<string, string>;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'callboard-features-'));
  const built = await buildClients(folder);
  texts = new Map(built.map(({ file }) => [file, readFileSync(join(folder, file), 'utf8')]));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(Object.entries(NEWER))('no library of a page uses %s', (_name, pattern) => {
  expect([...texts.keys()].toSorted()).toEqual(['caller.js', 'enrol.js', 'runtime.js', 'site.js']);
  expect([...texts].filter(([, text]) => pattern.test(text)).map(([file]) => file)).toEqual([]);
});

test.each([
  ['helpers of iterators', 'for(let e of t.values().filter(n))'],
  ['Promise.withResolvers', 'let{promise:e}=Promise.withResolvers()'],
  ['using declarations', '{using a=b()}'],
])('%s would be found', (name, text) => {
  expect(NEWER[name]?.test(text)).toBe(true);
});
