/** Tests a relay whose Redis user has only the documented smallest rights, on every master of a cluster. */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectCommands } from '../kit/redis.ts';
import { startRedisCluster, type RedisCluster } from '../kit/redis-cluster.ts';
import { smallestRules } from '../kit/redis-user.ts';
import type { RedisBackend } from '../../src/backends/redis/open.ts';
import { impatient, openRedis } from './kit/open-redis.ts';

const OF_CLUSTER = ['+cluster|slots', '+cluster|info'];

let cluster: RedisCluster;
let address: string;
beforeAll(async () => {
  cluster = await startRedisCluster(3);
  address = cluster.address.replace('redis+cluster://', 'redis+cluster://relay:pass@');
  const client = connectCommands(cluster.address);
  await client.connect();
  client.disconnect();
});
afterAll(() => cluster.stop());

async function allow(url: string, rules: readonly string[]): Promise<void> {
  const admin = new Redis(url);
  await admin.call('ACL', 'SETUSER', 'relay', 'reset', 'on', '>pass', ...rules);
  admin.disconnect();
}

function open(namespace: string): Promise<RedisBackend> {
  return openRedis({ url: address, namespace, partitions: 6 });
}

it('a cluster opens with the smallest rules on every master', async () => {
  const namespace = randomUUID();
  await Promise.all(cluster.urls.map((url) => allow(url, [...smallestRules(namespace), ...OF_CLUSTER])));
  const { backend } = await open(namespace);
  await backend.ready();
  await backend.close();
});

it('a cluster is refused if one master lacks a right, and that master is named', async () => {
  const namespace = randomUUID();
  const whole = [...smallestRules(namespace), ...OF_CLUSTER];
  const [, second = '', third = ''] = cluster.urls;
  await Promise.all(cluster.urls.map((url) => allow(url, whole)));
  await allow(
    third,
    whole.filter((rule) => rule !== '+hset'),
  );
  await expect(open(namespace)).rejects.toMatchObject({
    code: 'invalid_argument',
    message: `REDIS_URL: The Redis user "relay" at ${new URL(third).host} may not run HSET: add the rule +hset.`,
  });
  await allow(third, whole);
  await allow(
    second,
    whole.filter((rule) => !rule.startsWith('~')),
  );
  await expect(open(namespace)).rejects.toMatchObject({
    message: expect.stringContaining(`at ${new URL(second).host} may not use the key {cb:${namespace}:root}:meta`),
  });
});

it.each(OF_CLUSTER)('a cluster is refused without %s, and the missing right is named', async (rule) => {
  const namespace = randomUUID();
  const rules = [...smallestRules(namespace), ...OF_CLUSTER].filter((other) => other !== rule);
  await Promise.all(cluster.urls.map((url) => allow(url, rules)));
  await expect(openRedis({ url: address, namespace, partitions: 6, system: impatient })).rejects.toMatchObject({
    code: 'invalid_argument',
    message: expect.stringContaining(`add the rule ${rule}.`),
  });
});
