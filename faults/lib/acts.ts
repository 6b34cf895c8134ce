/** Answers the requests of the parent process, in a child process that `child.ts` has started. */
import { z } from 'zod';

/** The requests that a process answers over its IPC channel, by name. Arguments and answers are JSON. */
export type Acts = Readonly<Record<string, (given: unknown) => unknown>>;

const REQUEST = z.object({ id: z.number(), act: z.string(), given: z.unknown().optional() });

/** Answers the requests of the parent process, and exits when the parent process has ended. */
export function serveActs(acts: Acts): void {
  const answer = async (message: unknown): Promise<void> => {
    const { id, act, given } = REQUEST.parse(message);
    try {
      const run = acts[act];
      if (!run) throw new Error(`There is no act "${act}".`);
      process.send?.({ id, answer: await run(given) });
    } catch (error) {
      process.send?.({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  };
  process.on('message', (message) => void answer(message));
  process.on('disconnect', () => process.exit());
  process.send?.({ ready: true });
}
