/** Refuses to load the package on a Node that is too old. */
import { nodeFault } from './version.ts';

/**
 * The package's entry imports this file first. On an old Node, the import fails with this sentence and not later with a
 * missing function.
 */
const fault = nodeFault(process.versions.node);
if (fault !== null) throw new Error(fault);
