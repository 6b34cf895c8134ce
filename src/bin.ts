#!/usr/bin/env node
import { nodeFault } from './node-version.ts';

/** An old Node is told in one line; everything else is loaded afterwards, since its imports need a new one. */
const fault = nodeFault(process.versions.node);
if (fault !== null) {
  process.stderr.write(`${fault}\n`);
  process.exit(1);
}
const { main } = await import('./cli/main.ts');

/** A stop that hangs is ended by the second signal, as a shell would say it. */
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
