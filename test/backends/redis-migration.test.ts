/** Tests that a relay reports how much data a legacy deployment left in Redis, and never changes that data. */
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { openCallboard } from '../../src/callboard.ts';
import { connectCommands } from '../kit/redis.ts';
import { legacyFault, readLegacyDepths } from '../../src/backends/redis/legacy.ts';
import type { Client } from '../../src/backends/redis/client.ts';
import type { ReadCommand, Reply } from '../../src/backends/redis/replies.ts';

let client: Client;
let key: string;
beforeEach(async () => {
  client = connectCommands(inject('redisUrl'));
  await client.connect();
  key = `legacy-${randomUUID()}`;
});
afterEach(async () => {
  await client.del(key);
  await client.del(`${key}:pending`);
  client.disconnect();
});

async function read(commands: readonly ReadCommand[]): Promise<readonly Reply[]> {
  const replies = await client.pipeline(commands.map(([name, ...args]) => [name.toLowerCase(), ...args])).exec();
  return (replies ?? []).map(([error, reply]) => {
    if (error) throw error;
    return reply as Reply;
  });
}

const depths = (commandStream: string | null, pending: string | null) =>
  readLegacyDepths(read, { commandStream, pending });

describe('the data of a legacy deployment', () => {
  it('is unknown if no keys are configured, and zero if they are absent', async () => {
    expect(await depths(null, null)).toEqual({ legacyCommandStreamDepth: null, pendingCommandDepth: null });
    expect(await depths(key, null)).toEqual({ legacyCommandStreamDepth: 0, pendingCommandDepth: 0 });
    expect(await depths(null, key)).toEqual({ legacyCommandStreamDepth: null, pendingCommandDepth: 0 });
    expect(legacyFault(await depths(key, key))).toBeNull();
  });

  it('is the number of entries of its stream, and the number delivered to its groups and not acknowledged', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push((await client.xadd(key, '*', 'n', String(i))) ?? '');
    for (const [group, count] of [
      ['a', 3],
      ['b', 1],
    ] as const) {
      await client.xgroup('CREATE', key, group, '0');
      await client.xreadgroup('GROUP', group, 'me', 'COUNT', count, 'STREAMS', key, '>');
    }
    await client.xack(key, 'a', ids[0] ?? '');
    expect(await depths(key, null)).toEqual({ legacyCommandStreamDepth: 5, pendingCommandDepth: 3 });
    await client.hset(`${key}:pending`, 'x', '1', 'y', '2');
    const all = await depths(key, `${key}:pending`);
    expect(all).toEqual({ legacyCommandStreamDepth: 5, pendingCommandDepth: 5 });
    expect(legacyFault(all)).toContain('5 entries and 5 commands');
  });

  it.each([
    ['a list', (name: string) => client.rpush(name, 'a', 'b', 'c')],
    ['a set', (name: string) => client.sadd(name, 'a', 'b', 'c')],
    ['a sorted set', (name: string) => client.zadd(name, 1, 'a', 2, 'b', 3, 'c')],
    ['a hash', (name: string) => client.hset(name, 'a', 1, 'b', 2, 'c', 3)],
  ])('is counted in %s, and not changed', async (_, fill) => {
    await fill(key);
    const before = await client.dump(key);
    expect((await depths(null, key)).pendingCommandDepth).toBe(3);
    expect(await client.dump(key)).toBe(before);
  });
});

describe('a relay over Redis', () => {
  it.each(['redis', 'owned'] as const)(
    'with STORE=%s shows what is left of a legacy deployment, and does not start beside it if told so',
    async (store) => {
      await client.xadd(key, '*', 'n', '1');
      const redis = {
        ...({ url: inject('redisUrl'), namespace: randomUUID(), partitions: 1, durability: 'memory', store } as const),
        legacy: { commandStream: key, pending: `${key}:pending` },
      };
      const auth = { adminTokens: ['the-token-of-an-administrator'] };
      const open = (strictMigration: boolean) =>
        openCallboard({ config: { auth, redis: { ...redis, strictMigration } } });
      await expect(open(true)).rejects.toMatchObject({
        code: 'invalid_argument',
        message: expect.stringContaining('STRICT_MIGRATION'),
      });
      await using relay = await open(false);
      const headers = { authorization: `Bearer ${auth.adminTokens[0]}` };
      const answer = await fetch(`${await relay.listen()}/delivery/summary`, { headers });
      expect(await answer.json()).toMatchObject({ legacy_command_stream_depth: 1, pending_command_depth: 0 });
    },
  );
});
