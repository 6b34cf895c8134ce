import { once } from 'node:events';
import { expect, test } from 'vitest';
import { connectTo } from '../../src/backends/redis/client.ts';
import { readTarget } from '../../src/backends/redis/target.ts';
import { silentLog } from '../../src/core/log.ts';
import { startRedisSentinel } from '../kit/redis-sentinel.ts';

type Inside = { readonly connector: { disconnect(): void }; readonly stream: { destroy(): void } };

test('a connection that a failover ended while it looked for the master comes back, and one that was closed does not', async () => {
  const servers = await startRedisSentinel();
  try {
    const address = `redis+sentinel://${new URL(servers.url).host}/${servers.name}`;
    const client = connectTo(readTarget(address), 'commands', silentLog);
    await client.connect();
    // As ioredis' detector of failovers does when it hears of one; its moment cannot be met from outside.
    const { connector, stream } = client as unknown as Inside;
    client.once('connecting', () => process.nextTick(() => connector.disconnect()));
    stream.destroy();
    await once(client, 'end');
    await once(client, 'ready');
    expect(await client.ping()).toBe('PONG');
    client.disconnect();
    await once(client, 'end');
    expect(client.status).toBe('end');
  } finally {
    await servers.stop();
  }
});
