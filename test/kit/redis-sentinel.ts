/** Starts a Redis with a replica and a sentinel. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from './free-port.ts';
import { PROGRAM, startRedis, type RedisServer } from './redis.ts';

/** A master, its replica, and one sentinel with a quorum of 1, on free loopback ports. */
export type RedisSentinel = {
  /** The address of the sentinel. */
  readonly url: string;
  /** The name by which the sentinel knows the master. */
  readonly name: string;
  readonly servers: readonly [RedisServer, RedisServer];
  /** Resolves with the port of the current master according to the sentinel. */
  master(): Promise<number>;
  /** Makes the replica the master while the old master is healthy. Resolves when that is done. */
  failOver(): Promise<void>;
  /**
   * Resolves when the sentinel names a master at another port than `port`, and that server has the role of a master.
   */
  movedFrom(port: number): Promise<void>;
  stop(): Promise<void>;
};

export type SentinelOptions = {
  /** The time without an answer after which the sentinel considers the master down, in milliseconds. */
  readonly downAfterMs?: number;
  /** The additional arguments of both servers. */
  readonly args?: readonly string[];
  /** The passwords that both servers and the sentinel require. */
  readonly passwords?: { readonly servers: string; readonly sentinel: string } | undefined;
};

const NAME = 'callboard';

/**
 * Starts the servers. Resolves when the replica is in sync and the sentinel knows it, so that a failover is possible.
 */
export async function startRedisSentinel(options: SentinelOptions = {}): Promise<RedisSentinel> {
  const { downAfterMs = 1_000, args = ['--save', '', '--appendonly', 'no'], passwords } = options;
  const auth = passwords ? ['--requirepass', passwords.servers, '--masterauth', passwords.servers] : [];
  // Diskless replication without a delay gives the replica its copy at once.
  const quick = [...args, ...auth, '--repl-diskless-sync-delay', '0'];
  const first = await startRedis(quick);
  const follow = ['--replicaof', '127.0.0.1', String(first.port)];
  const second = await startRedis([...quick, ...follow]);
  // The sentinel asks the master for replicas when it starts, and later only rarely. So the replica must be connected
  // first.
  const info = (of: number): Promise<string> => infoOf(of, passwords?.servers);
  await until(async () => (await info(second.port)).includes('master_link_status:up'));
  const port = await freePort();
  const stopSentinel = launchSentinel(configOf({ port, master: first.port, downAfterMs, passwords }));
  const hand = new Redis({ host: '127.0.0.1', port, ...(passwords && { password: passwords.sentinel }) });
  // The client retries until the sentinel listens.
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
      await until(() => beginsFailover(hand));
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

/**
 * Asks the sentinel for a failover. Returns false while it finds its replica not suitable, which lasts until it has read
 * the replica's state again.
 */
async function beginsFailover(hand: Redis): Promise<boolean> {
  return hand.call('SENTINEL', 'FAILOVER', NAME).then(
    () => true,
    (error: unknown) => {
      if (error instanceof Error && error.message.startsWith('NOGOODSLAVE')) return false;
      throw error;
    },
  );
}

/** A sentinel that knows one master, which it never considers down. */
export type Sentinel = { readonly port: number; readonly name: string; stop(): Promise<void> };

/** Starts a sentinel for the master at this loopback port. Resolves when the sentinel answers. */
export async function startSentinel(master: number): Promise<Sentinel> {
  const port = await freePort();
  const stop = launchSentinel(configOf({ port, master, downAfterMs: 3_600_000, passwords: undefined }));
  const hand = new Redis({ host: '127.0.0.1', port });
  // The client retries until the sentinel listens.
  hand.on('error', () => {});
  await hand.ping();
  hand.disconnect();
  return { port, name: NAME, stop };
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

/**
 * Starts a sentinel in a temporary folder, because it writes its state into its configuration file. Returns a function
 * that ends it and removes the folder.
 */
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
