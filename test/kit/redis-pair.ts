/** Starts two Redis, one of which follows the other, and makes the follower the master at a time that a test chooses. */
import { Redis } from 'ioredis';
import { startProxy, type Proxy } from '../../faults/outages/processes/proxy.ts';
import { startRedis, type RedisServer } from './redis.ts';

export type RedisPair = AsyncDisposable & {
  /** The address of the proxy, which leads to the master of the time. */
  readonly url: string;
  readonly master: RedisServer;
  readonly replica: RedisServer;
  /** Lets the replica no longer follow: it keeps what it has now. */
  part(): Promise<void>;
  /** Lets nothing reach the replica any more, which the master does not notice: WAIT is not answered. */
  hold(): void;
  /** Makes the replica the master, with what it has, and lets the old master follow it. All connections are cut. */
  failOver(): Promise<void>;
};

const NO_DISK = ['--save', '', '--appendonly', 'no', '--repl-diskless-sync', 'no'];

/** Starts the pair. Resolves when the replica has all that the master has. */
export async function startRedisPair(): Promise<RedisPair> {
  let [master, replica] = await Promise.all([startRedis(NO_DISK), startRedis(NO_DISK)]);
  const proxy = await startProxy(() => [master.port]);
  const link = await startProxy(() => [master.port]);
  await follows(replica, master, link);
  return {
    url: `redis://127.0.0.1:${proxy.port}`,
    get master() {
      return master;
    },
    get replica() {
      return replica;
    },
    async part() {
      await call(replica, (hand) => hand.replicaof('NO', 'ONE'));
    },
    hold() {
      link.set({ kind: 'black-hole' });
    },
    async failOver() {
      proxy.set({ kind: 'refuse' });
      proxy.reset();
      await call(replica, (hand) => hand.replicaof('NO', 'ONE'));
      [master, replica] = [replica, master];
      link.reset();
      for (const one of [proxy, link]) one.set({ kind: 'pass' });
      await follows(replica, master, link);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([proxy, link].map((one) => one[Symbol.asyncDispose]()));
      await Promise.all([master.stop(), replica.stop()]);
    },
  };
}

/** Resolves when the replica follows, and the master knows that it has what was written. */
async function follows(replica: RedisServer, master: RedisServer, link: Proxy): Promise<void> {
  await call(replica, (hand) => hand.replicaof('127.0.0.1', link.port));
  await call(master, async (hand) => {
    // WAIT waits for what its own connection has written.
    while ((await hand.set('written', 'by the test', 'EX', 3_600)) && (await hand.wait(1, 100)) < 1);
    // A replica that has just connected again has acknowledged nothing over this connection.
    while (!/state=online,offset=[1-9]/.test(await hand.info('replication'))) await hand.wait(1, 100);
  });
}

async function call<T>({ url }: RedisServer, run: (hand: Redis) => Promise<T>): Promise<T> {
  const hand = new Redis(url);
  try {
    return await run(hand);
  } finally {
    hand.disconnect();
  }
}
