import { nodeFault } from './node-version.ts';

/**
 * Imported first by the package's entry, so that an old Node fails with this sentence and not with a missing function
 * elsewhere.
 */
const fault = nodeFault(process.versions.node);
if (fault !== null) throw new Error(fault);
