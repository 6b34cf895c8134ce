/** Tests a connection that a failover ended while it searched for the master. */
import { expect, test } from 'vitest';
import { connectTo } from '../../src/backends/redis/client.ts';
import { readTarget } from '../../src/backends/redis/target.ts';
import { silentLog } from '../../src/core/ports.ts';
import { startRedisSentinel } from '../kit/redis-sentinel.ts';

test('a connection that a failover ended while it searched for the master reconnects, and a closed one does not', async () => {
  const servers = await startRedisSentinel();
  try {
    const address = `redis+sentinel://${new URL(servers.url).host}/${servers.name}`;
    const client = connectTo(readTarget(address), 'commands', silentLog);
    await client.connect();
    // Imitates the failover detector of ioredis, whose timing a test cannot control.
    const within = (name: string, act: string): void => {
      const part: unknown = Reflect.get(client, name);
      if (typeof part === 'object' && part !== null) Reflect.get(part, act).call(part);
    };
    const received = (event: string): Promise<void> => new Promise((done) => void client.once(event, () => done()));
    client.once('connecting', () => process.nextTick(() => within('connector', 'disconnect')));
    within('stream', 'destroy');
    await received('end');
    await received('ready');
    expect(await client.ping()).toBe('PONG');
    client.disconnect();
    await received('end');
    expect(client.status).toBe('end');
  } finally {
    await servers.stop();
  }
});
