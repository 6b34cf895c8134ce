/** Lists the branches of the stores that no simulation can reach, with the reason of each. */
import type { StoreName } from './workloads.ts';
import type { Unreachable } from './unreached.ts';

export const UNREACHABLE: Readonly<Record<StoreName, readonly Unreachable[]>> = { owned: [], directory: [] };
