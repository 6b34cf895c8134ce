import type { Io } from './io.ts';

/** Runs the demo until it is told to stop. */
export async function demo(argv: readonly string[], io: Io): Promise<void> {
  const { runDemo } = await import('../demo/demo.ts');
  const { promise: stopped, resolve } = Promise.withResolvers<void>();
  io.onStop(resolve);
  await runDemo({ env: io.env, argv, print: io.print, stopped });
}
