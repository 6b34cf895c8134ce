import { Redis } from 'ioredis';

/** A command that Redis has not answered after this long is given up; whether it ran is then unknown. Without it ioredis may leave it open for ever. */
const COMMAND_MS = 2_000;

/** A connection for acts and reads: it fails at once while Redis is away and comes back by itself. */
export function connectCommands(url: string): Redis {
  return new Redis(url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: COMMAND_MS,
    retryStrategy: (attempt) => Math.min(1_000, 50 * attempt),
  });
}
