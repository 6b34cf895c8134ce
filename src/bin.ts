#!/usr/bin/env node
import module from 'node:module';
import { join } from 'node:path';
import { nodeFault } from './node-version.ts';

/**
 * On an old Node, prints one line and exits. All other modules are loaded after this check, because they need a newer
 * Node.
 */
const fault = nodeFault(process.versions.node);
if (fault !== null) {
  process.stderr.write(`${fault}\n`);
  process.exit(1);
}
// In a checkout, Node strips the types of each file. The next start reads the result of this one instead.
if (import.meta.filename.endsWith('.ts'))
  module.enableCompileCache(join(import.meta.dirname, '..', 'node_modules', '.cache', 'callboard'));
const { holdHeapGrowth } = await import('./cli/heap-growth.ts');
holdHeapGrowth();
const { main } = await import('./cli/main.ts');

/** The exit code when a second signal ends a stop that hangs: that of a shell after SIGINT. */
const INTERRUPTED = 130;

function onStop(stop: () => void): void {
  let asked = false;
  const handle = (): void => {
    if (asked) process.exit(INTERRUPTED);
    asked = true;
    stop();
  };
  process.on('SIGINT', handle);
  process.on('SIGTERM', handle);
}

process.exitCode = await main(process.argv.slice(2), {
  env: process.env,
  print: (text) => void process.stdout.write(text),
  complain: (text) => void process.stderr.write(text),
  onStop,
});
