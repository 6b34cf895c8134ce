/** Creates clients of Redis for tests. */
import { connectTo } from '../../src/backends/redis/client.ts';
import { readTarget } from '../../src/backends/redis/target.ts';
import type { Client } from '../../src/backends/redis/types.ts';
import { silentLog, type Log } from '../../src/core/ports.ts';

/** Returns a client for commands to the Redis at this address. The client is not connected yet. */
export function connectCommands(url: string, log: Log = silentLog): Client {
  return connectTo(readTarget(url), 'commands', log);
}
