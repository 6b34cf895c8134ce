/** Runs the command `callboard demo`: reads its flags and starts the demo. */
import { UsageError, allowHeapGrowth, splitFlags, type Io } from './io.ts';
import { endOnCrash } from './serve.ts';

/** The highest pace of the demo, in scenes per second. Above it the demo would mainly measure the machine. */
const PACE_MAX = 50;

/** Runs the demo until the first stop signal. */
export async function demo(argv: readonly string[], io: Io): Promise<void> {
  const { own, rest } = splitFlags(argv, { values: ['--pace', '--browser'] });
  const pace = readPace(own.get('--pace'));
  const browser = own.get('--browser');
  const { runDemo } = await import('../../demo/demo.ts');
  allowHeapGrowth();
  const { promise: stopped, resolve } = Promise.withResolvers<void>();
  io.onStop(resolve);
  await runDemo({
    env: io.env,
    argv: rest,
    print: io.print,
    stopped,
    onRelay: (callboard, log) => endOnCrash(io, log).ends(callboard),
    ...(pace !== undefined && { pace }),
    ...(browser !== undefined && { browser: browser === 'none' ? null : browser }),
  });
}

function readPace(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const pace = Number(text);
  if (pace >= 0.1 && pace <= PACE_MAX) return pace;
  throw new UsageError(`--pace: expected 0.1 to ${PACE_MAX} calls per second`);
}
