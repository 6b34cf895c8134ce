/**
 * Runs the command `callboard spill-clean`, which deletes expired payloads from the spill directory, and nothing else.
 */
import { cleanSpillDirectory } from '../callboard.ts';
import { readConfig } from '../config.ts';
import { createLog } from '../platform/log.ts';
import { UsageError, type Io } from './io.ts';

/**
 * Removes expired payloads from the configured spill directory and prints how many it removed. May run while relays use
 * the directory.
 */
export async function spillClean(argv: readonly string[], io: Io): Promise<void> {
  const { spillDir, logLevel } = readConfig(io.env, argv);
  if (spillDir === null)
    throw new UsageError('CALLBOARD_SPILL_DIR: is required: without a directory, payloads are kept in memory');
  const removed = await cleanSpillDirectory(spillDir, createLog({ level: logLevel, secrets: [] }));
  io.print(`removed ${removed} expired ${removed === 1 ? 'payload' : 'payloads'}\n`);
}
