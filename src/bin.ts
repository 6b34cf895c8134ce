#!/usr/bin/env node
/** The entry point of the command `callboard`. Only this file reads the environment. */
import module from 'node:module';
import { join } from 'node:path';
import { nodeFault } from './version.ts';

/**
 * With an unsupported Node version, prints one line and exits. All other modules are loaded after this check, because
 * they need a newer Node.
 */
const fault = nodeFault(process.versions.node);
if (fault !== null) {
  process.stderr.write(`${fault}\n`);
  process.exit(1);
}
// In a checkout, Node strips the types of each file at each start. The compile cache stores the result for the next
// start.
if (import.meta.filename.endsWith('.ts'))
  module.enableCompileCache(join(import.meta.dirname, '..', 'node_modules', '.cache', 'callboard'));
const { CRASHED } = await import('./cli/exit-codes.ts');
const { holdHeapGrowth } = await import('./cli/heap-growth.ts');
holdHeapGrowth();
const { main } = await import('./cli/main.ts');

/** The exit code after a second signal ends a shutdown that hangs. Shells use this code for SIGINT. */
const INTERRUPTED = 130;

/**
 * Under npm, a signal that repeats within this time is the same Ctrl-C, in milliseconds: a terminal sends it to npm and
 * to this process, and npm passes it on too.
 */
const PASSED_ON_MS = process.env['npm_lifecycle_event'] === undefined ? 0 : 500;

function onStop(stop: () => void): void {
  let stoppedAt: number | null = null;
  const handle = (): void => {
    if (stoppedAt === null) {
      stoppedAt = performance.now();
      stop();
    } else if (performance.now() - stoppedAt >= PASSED_ON_MS) process.exit(INTERRUPTED);
  };
  process.on('SIGINT', handle);
  process.on('SIGTERM', handle);
}

function onCrash(end: (error: unknown) => Promise<void>): void {
  let ending = false;
  const handle = (error: unknown): void => {
    if (ending) process.exit(CRASHED);
    ending = true;
    // The exit code if the process runs out of work before `end` resolves.
    process.exitCode = CRASHED;
    void end(error).finally(() => process.exit(CRASHED));
  };
  process.on('uncaughtException', handle);
  process.on('unhandledRejection', handle);
}

async function ask(question: string): Promise<string> {
  const { createInterface } = await import('node:readline/promises');
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  return lines.question(question).finally(() => lines.close());
}

process.exitCode = await main(process.argv.slice(2), {
  env: process.env,
  print: (text) => void process.stdout.write(text),
  complain: (text) => void process.stderr.write(text),
  onStop,
  onCrash,
  endNow: () => process.exit(0),
  screen: process.stdout.isTTY,
  ...(process.stdin.isTTY && process.stderr.isTTY && { ask }),
});
