/** Finds waits in tests whose bound is a number of their own, or the second that Vitest gives to them by default. */
import type { SourceFile } from './imports.ts';

/** Each names the bound that the file chose itself. The bounds for all tests are in `test/kit/patience.ts`. */
const OWN_BOUNDS: readonly RegExp[] = [
  /\b(?:timeout|testTimeout|hookTimeout): *[\d_]{3,}/g,
  /\bsetDefaultTimeout\([\d_]+\)/g,
  /\bAbortSignal\.timeout\([\d_]+\)/g,
  // The last argument of a test or of a hook.
  /^ *\}, [\d_]{4,}\);$/gm,
  /\bvi\.wait(?:For|Until)\(/g,
  // A token that may expire while its file runs.
  /\bttlSeconds: *[\d_]+, *now: Date\.now\(\)/g,
];

/** Returns the bounds that these files chose themselves, each with its path. */
export function ownBounds(files: readonly Pick<SourceFile, 'path' | 'text'>[]): readonly string[] {
  return files.flatMap(({ path, text }) =>
    OWN_BOUNDS.flatMap((bound) => [...text.matchAll(bound)].map(([found]) => `${path}: ${found.trim()}`)),
  );
}
