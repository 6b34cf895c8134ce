import { Redis } from 'ioredis';
import { startRedis, type RedisServer } from '../../test/kit/redis.ts';

/** A Redis for one benchmark, which logs each write and syncs once a second. */
export type BenchRedis = AsyncDisposable & {
  readonly url: string;
  readonly port: number;
  /** Microseconds of CPU, user and system, since it started, by its own accounting. */
  cpu(): Promise<number>;
  /** The number of commands run since it started. */
  commands(): Promise<number>;
};

export const EVERYSEC = ['--save', '', '--appendonly', 'yes', '--appendfsync', 'everysec'] as const;

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
    commands: () => field('stats', 'total_commands_processed'),
    async [Symbol.asyncDispose]() {
      hand.disconnect();
      await server.stop();
    },
  };
}
