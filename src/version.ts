/** Reads the version of this package, and checks the version of Node. */
import { readFileSync } from 'node:fs';

/** The version of the package, from package.json; `0.0.0` if it has none. */
export const VERSION: string = readVersion();

function readVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  const version: unknown = JSON.parse(text).version;
  return typeof version === 'string' ? version : '0.0.0';
}

// Checks whether this version of Node can run callboard. Older versions of Node must be able to load the
// compiled file, to print what is wrong.

/**
 * The oldest supported major version of Node. `scripts/require-node.cjs` and `engines` in package.json must have the
 * same.
 */
const NEEDED_NODE = 24;

/**
 * Returns one sentence that says why callboard cannot run on this version of Node (such as `24.1.0`); null if it can.
 */
export function nodeFault(version: string): string | null {
  if (Number.parseInt(version, 10) >= NEEDED_NODE) return null;
  return `callboard needs Node ${NEEDED_NODE} or newer; this is ${version}. https://nodejs.org/en/download has it.`;
}
