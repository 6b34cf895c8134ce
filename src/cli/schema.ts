/** Runs the command `callboard schema`, which prints the GraphQL schema of the relay. */
import { printedSchema } from '../graphql/schema/print.ts';
import { UsageError, type Io } from './io.ts';

/** Prints the GraphQL schema. Throws UsageError for any argument. */
export async function schema(argv: readonly string[], io: Io): Promise<void> {
  if (argv.length > 0) throw new UsageError(`schema takes no flags: ${argv.join(' ')}`);
  io.print(printedSchema());
}
