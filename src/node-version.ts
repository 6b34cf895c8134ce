/** Checks whether this version of Node can run callboard. Older versions of Node must be able to load this file. */

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
  return `callboard needs Node ${NEEDED_NODE} or newer; this is ${version}.`;
}
