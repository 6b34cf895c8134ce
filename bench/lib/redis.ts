/** Starts a Redis that writes to disk, for one benchmark. */
import { Redis } from 'ioredis';
import { startRedis, type RedisServer } from '../../test/kit/redis.ts';

/** A Redis for one benchmark. It logs each write, and syncs the log once a second. */
export type BenchRedis = AsyncDisposable & {
  readonly url: string;
  readonly port: number;
  /** Returns the CPU time (user and system) of Redis since it started, as Redis itself accounts it, in microseconds. */
  cpu(): Promise<number>;
  /** Returns the resource usage of Redis since it started, as Redis itself accounts it. */
  usage(): Promise<RedisUsage>;
};

export type RedisUsage = {
  /** The CPU time (user and system), in microseconds. */
  readonly cpu: number;
  /**
   * The number of commands that Redis ran, including those inside scripts and functions. Calls of scripts, and INFO,
   * are not counted.
   */
  readonly commands: number;
  /** The number of published messages, including those published by scripts. */
  readonly published: number;
  /** The bytes that Redis received and sent. */
  readonly traffic: number;
  /** The size of the append-only log, in bytes. */
  readonly log: number;
  /** The size of the data set, in bytes. */
  readonly data: number;
};

/**
 * The arguments of a Redis that syncs its log once a second. The log is never rewritten, so its growth equals the
 * amount written.
 */
export const EVERYSEC = [
  ...['--save', '', '--appendonly', 'yes', '--appendfsync', 'everysec'],
  ...['--auto-aof-rewrite-percentage', '0'],
] as const;

/**
 * Matches commands that are not counted: those that only run other commands, and those that the benchmark itself sends.
 */
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
        published: counted
          .filter(([, name]) => name === 'publish')
          .reduce((sum, [, , calls]) => sum + Number(calls), 0),
        traffic: at('total_net_input_bytes') + at('total_net_output_bytes'),
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
