/** Runs the command `callboard demo`: reads its flags and starts the demo. */
import { readConfig } from '../config.ts';
import { UsageError, allowHeapGrowth, splitFlags, type Io } from './io.ts';
import { endOnCrash } from './serve.ts';
import { explainTaken, signInLine } from './tools.ts';
import { keepTrial, pasteable } from './trial-credentials.ts';

/** The highest pace, in scenes per second. With a higher one, the demo would mainly measure the machine. */
const PACE_MAX = 50;

/** Runs the demo until the first stop signal. */
export async function demo(argv: readonly string[], io: Io): Promise<void> {
  const { own, rest } = splitFlags(argv, { values: ['--pace', '--browser'], switches: ['--fresh'] });
  const pace = readPace(own.get('--pace'));
  const browser = own.get('--browser');
  const given = readConfig({ CALLBOARD_LOG_LEVEL: 'warn', ...io.env }, rest);
  const { config, keptIn, onDataUnusable } = keepTrial(given, own.has('--fresh'), io);
  const { runDemo } = await import('../../demo/demo.ts');
  allowHeapGrowth();
  const { promise: stopped, resolve } = Promise.withResolvers<void>();
  io.onStop(resolve);
  await runDemo({
    env: io.env,
    config,
    callboard: pasteable,
    signInLine: keptIn === null ? null : signInLine,
    print: io.print,
    stopped,
    ...(onDataUnusable && { onDataUnusable }),
    onRelay: (callboard, log) => endOnCrash(io, log).ends(callboard),
    ...(pace !== undefined && { pace }),
    ...(browser !== undefined && { browser: browser === 'none' ? null : browser }),
  }).catch(async (error: unknown) => {
    throw await explainTaken(error, config, 'demo');
  });
}

function readPace(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const pace = Number(text);
  if (pace >= 0.1 && pace <= PACE_MAX) return pace;
  throw new UsageError(`--pace: expected 0.1 to ${PACE_MAX} calls per second`);
}
