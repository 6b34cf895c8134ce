import { nodeFault } from './node-version.ts';

/** Imported first by the package's entry: an old Node then fails with this sentence, and not with a missing function somewhere inside. */
const fault = nodeFault(process.versions.node);
if (fault !== null) throw new Error(fault);
