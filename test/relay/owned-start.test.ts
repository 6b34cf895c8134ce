/** Tests that a relay with owned partitions which cannot start leaves nothing open, so that its process ends. */
import { expect, it } from 'vitest';
import { openCallboard } from '../../src/callboard.ts';
import { readConfig } from '../../src/config.ts';
import { eventually } from '../kit/patience.ts';
import { connectCommands, startRedis } from '../kit/redis.ts';

it('a relay whose name another one has, or whose scopes divide users otherwise, is refused, and closes its connections to Redis', async () => {
  const redis = await startRedis();
  const url = `redis://127.0.0.1:${redis.port}`;
  const config = readConfig(
    {
      ...{ CALLBOARD_REDIS_URL: url, CALLBOARD_STORE: 'owned', CALLBOARD_NODE_ID: 'a', CALLBOARD_PORT: '0' },
      ...{
        CALLBOARD_DURABILITY: 'memory',
        CALLBOARD_SECRET: 'a secret that is long enough for it',
        CALLBOARD_ADMIN_TOKEN: 'an-administrator-of-the-test',
      },
    },
    [],
  );
  const first = await openCallboard({ config });
  const client = connectCommands(url);
  await client.connect();
  const connections = async (): Promise<number> =>
    String(await client.client('LIST'))
      .trim()
      .split('\n').length;
  const before = await connections();
  await expect(openCallboard({ config })).rejects.toThrow('Another live node is called "a".');
  await eventually(async () => expect(await connections()).toBe(before));
  // Its scopes divide the users otherwise, so it would look for their data where it is not.
  const scopes = [{ id: 'support', members: ['*@support.example'], capacity: 5 }];
  const other = { ...config, nodeId: 'b', policy: { rules: [], scopes, userCapacity: null } };
  await expect(openCallboard({ config: other })).rejects.toThrow('POLICY_FILE: scopes:');
  await eventually(async () => expect(await connections()).toBe(before));
  client.disconnect();
  await first.close();
  await redis.stop();
});
