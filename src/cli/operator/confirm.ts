/** Asks the operator to confirm a command that changes something for other people. */
import { usageFailure } from './failure.ts';
import type { OperatorRun } from './verb.ts';

/** Resolves if the operator gave `--yes`, or types the name again. Throws a usage failure otherwise. */
export async function confirmed({ io, flags }: OperatorRun, what: string, name: string): Promise<void> {
  if (flags['yes'] !== undefined) return;
  if (!io.ask) throw usageFailure(`${what} needs --yes if the input is not a terminal`);
  const typed = await io.ask(`${what}. Type ${name} to go on: `);
  if (typed.trim() !== name) throw usageFailure('nothing was done: that is another name');
}
