/** Opens the Redis backend as a relay does, with settings that suit tests. */
import { randomUUID } from 'node:crypto';
import { openRedisBackend, type RedisBackend, type RedisBackendOptions } from '../../../src/backends/redis/open.ts';
import { silentLog, type Clock } from '../../../src/core/ports.ts';
import { createShares } from '../../../src/core/shares/shares.ts';
import { systemClock, createCrypto } from '../../../src/platform/system.ts';

/** Real timers that end a wait after a fifth of its time, for tests that wait in vain. */
export const impatient: Clock = { ...systemClock, after: (ms, run) => systemClock.after(ms / 5, run) };

export type RedisChoices = Partial<RedisBackendOptions> & Pick<RedisBackendOptions, 'url'>;

/** Returns options with a random namespace, real timers, nothing stored on disk, and no log. */
export function redisOptions(choices: RedisChoices): RedisBackendOptions {
  return {
    namespace: randomUUID(),
    partitions: 2,
    durability: 'memory',
    retentionMs: 3600_000,
    streamMessages: 100,
    scopeOf: (userId) => userId,
    sha256: createCrypto('test').sha256,
    spillDir: null,
    shares: createShares(),
    legacy: { commandStream: null, pending: null },
    strictMigration: false,
    system: systemClock,
    log: silentLog,
    ...choices,
  };
}

export function openRedis(choices: RedisChoices): Promise<RedisBackend> {
  return openRedisBackend(redisOptions(choices));
}
