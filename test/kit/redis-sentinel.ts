import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort, PROGRAM, startRedis, type RedisServer } from './redis.ts';

/** A master, its replica, and one sentinel that decides alone, on free ports of loopback. */
export type RedisSentinel = {
  /** Of the sentinel. */
  readonly url: string;
  /** By which name the sentinel knows the master. */
  readonly name: string;
  readonly servers: readonly [RedisServer, RedisServer];
  /** The port of the one that the sentinel calls the master now. */
  master(): Promise<number>;
  /** Makes the replica the master without a fault; resolves once it is. */
  failOver(): Promise<void>;
  /** Resolves once the sentinel calls another than this port the master, and that one takes writes. */
  movedFrom(port: number): Promise<void>;
  stop(): Promise<void>;
};

export type SentinelOptions = {
  /** After how long without an answer the sentinel counts the master as gone, milliseconds. */
  readonly downAfterMs?: number;
  /** Further arguments of both servers. */
  readonly args?: readonly string[];
  /** Asked for by both servers, and by the sentinel. */
  readonly passwords?: { readonly servers: string; readonly sentinel: string } | undefined;
};

const NAME = 'callboard';

/** Resolves once the replica follows and the sentinel knows it: from then on a failover has somewhere to go. */
export async function startRedisSentinel(options: SentinelOptions = {}): Promise<RedisSentinel> {
  const { downAfterMs = 1_000, args = ['--save', '', '--appendonly', 'no'], passwords } = options;
  const auth = passwords ? ['--requirepass', passwords.servers, '--masterauth', passwords.servers] : [];
  // Without a wait, and without a disk between them, the replica has its copy at once.
  const quick = [...args, ...auth, '--repl-diskless-sync-delay', '0'];
  const first = await startRedis(quick);
  const follow = ['--replicaof', '127.0.0.1', String(first.port)];
  const second = await startRedis([...quick, ...follow]);
  // The sentinel asks the master of its replicas at once, and then seldom.
  const info = (of: number): Promise<string> => infoOf(of, passwords?.servers);
  await until(async () => (await info(second.port)).includes('master_link_status:up'));
  const port = await freePort();
  const stopSentinel = launchSentinel(configOf({ port, master: first.port, downAfterMs, passwords }));
  const hand = new Redis({ host: '127.0.0.1', port, ...(passwords && { password: passwords.sentinel }) });
  // It listens soon: until then the hand tries again.
  hand.on('error', () => {});
  const master = async (): Promise<number> => {
    const address = await hand.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME);
    return Number(Array.isArray(address) ? address[1] : 0);
  };
  const movedFrom = async (from: number): Promise<void> => {
    await until(async () => (await master()) !== from && (await info(await master())).includes('role:master'));
  };
  await until(() => knowsReplica(hand));
  return {
    url: `redis://127.0.0.1:${port}`,
    name: NAME,
    servers: [first, second],
    master,
    async failOver() {
      const from = await master();
      await hand.call('SENTINEL', 'FAILOVER', NAME);
      await movedFrom(from);
    },
    movedFrom,
    async stop() {
      hand.disconnect();
      await stopSentinel();
      await Promise.all([first.stop(), second.stop()]);
    },
  };
}

type Watch = Pick<SentinelOptions, 'passwords'> & {
  readonly port: number;
  readonly master: number;
  readonly downAfterMs: number;
};

function configOf({ port, master, downAfterMs, passwords }: Watch): string {
  return [
    'bind 127.0.0.1',
    `port ${port}`,
    `sentinel monitor ${NAME} 127.0.0.1 ${master} 1`,
    `sentinel down-after-milliseconds ${NAME} ${downAfterMs}`,
    `sentinel failover-timeout ${NAME} ${Math.max(2_000, 2 * downAfterMs)}`,
    `sentinel parallel-syncs ${NAME} 1`,
    ...(passwords ? [`sentinel auth-pass ${NAME} ${passwords.servers}`, `requirepass ${passwords.sentinel}`] : []),
  ].join('\n');
}

/** Starts it in a folder of its own, since it writes what it learns into its file; how it is ended. */
function launchSentinel(config: string): () => Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-sentinel-'));
  const file = join(folder, 'sentinel.conf');
  writeFileSync(file, `${config}\ndir ${folder}\n`);
  const child = spawn(PROGRAM, [file, '--sentinel'], { stdio: 'ignore' });
  return async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    rmSync(folder, { recursive: true, force: true });
  };
}

async function knowsReplica(hand: Redis): Promise<boolean> {
  const replicas = await hand.call('SENTINEL', 'REPLICAS', NAME);
  return Array.isArray(replicas) && replicas.length === 1;
}

async function infoOf(port: number, password: string | undefined): Promise<string> {
  const login = password === undefined ? {} : { password };
  const hand = new Redis({ host: '127.0.0.1', port, ...login, lazyConnect: true, retryStrategy: () => null });
  hand.on('error', () => {});
  try {
    await hand.connect();
    return await hand.info('replication');
  } catch {
    return '';
  } finally {
    hand.disconnect();
  }
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((done) => setTimeout(done, 50));
}
