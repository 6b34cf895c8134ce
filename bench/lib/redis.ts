/** Starts a Redis that writes to disk, for one benchmark. */
import { Redis } from 'ioredis';
import { startRedis, type RedisServer } from '../../test/kit/redis.ts';

/** A Redis for one benchmark, which logs each write and syncs once a second. */
export type BenchRedis = AsyncDisposable & {
  readonly url: string;
  readonly port: number;
  /** Microseconds of CPU, user and system, since it started, by its own accounting. */
  cpu(): Promise<number>;
  /** Its resource use since it started, by its own accounting. */
  usage(): Promise<RedisUsage>;
};

export type RedisUsage = {
  /** Microseconds, user and system. */
  readonly cpu: number;
  /**
   * Commands that Redis ran, including those inside scripts and functions. The script calls themselves and INFO are not
   * counted.
   */
  readonly commands: number;
  /** Bytes of its append-only log. */
  readonly log: number;
  /** Bytes of its data set. */
  readonly data: number;
};

/** The log is never rewritten, so its growth is the amount that was written. */
export const EVERYSEC = [
  ...['--save', '', '--appendonly', 'yes', '--appendfsync', 'everysec'],
  ...['--auto-aof-rewrite-percentage', '0'],
] as const;

/** Commands that only run other commands, and commands that the benchmark itself sends. */
const NOT_COUNTED = /^(eval|evalsha|fcall|info|config|hello|client)\b/;

export async function openRedis(args: readonly string[] = EVERYSEC): Promise<BenchRedis> {
  const server: RedisServer = await startRedis(args);
  const hand = new Redis(server.url);
  const field = async (section: string, name: string): Promise<number> =>
    Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(await hand.info(section))?.[1] ?? NaN);
  return {
    url: server.url,
    port: server.port,
    async cpu() {
      const [user, system] = [await field('cpu', 'used_cpu_user'), await field('cpu', 'used_cpu_sys')];
      return (user + system) * 1e6;
    },
    async usage() {
      const info = await hand.info('everything');
      const at = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1] ?? NaN);
      const counted = [...info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].filter(
        ([, name = '']) => !NOT_COUNTED.test(name),
      );
      return {
        cpu: (at('used_cpu_user') + at('used_cpu_sys')) * 1e6,
        commands: counted.reduce((sum, [, , calls]) => sum + Number(calls), 0),
        log: at('aof_current_size'),
        data: at('used_memory_dataset'),
      };
    },
    async [Symbol.asyncDispose]() {
      hand.disconnect();
      await server.stop();
    },
  };
}
