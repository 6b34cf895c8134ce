/** The command `callboard schema`. */
import { printedSchema } from '../graphql/schema/print.ts';
import { UsageError, type Io } from './io.ts';

/** Prints the GraphQL schema. */
export async function schema(argv: readonly string[], io: Io): Promise<void> {
  if (argv.length > 0) throw new UsageError(`schema takes no flags: ${argv.join(' ')}`);
  io.print(printedSchema());
}
