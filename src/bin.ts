#!/usr/bin/env node
import { main } from './cli/main.ts';

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
