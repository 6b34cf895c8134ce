/** The oldest major version of Node that callboard runs on. `scripts/require-node.cjs` and `engines` in package.json say the same. */
const NEEDED_NODE = 24;

/** Why callboard cannot run on this version of Node (`24.1.0`), in one sentence; null when it can. */
export function nodeFault(version: string): string | null {
  if (Number.parseInt(version, 10) >= NEEDED_NODE) return null;
  return `callboard needs Node ${NEEDED_NODE} or newer; this is ${version}.`;
}
