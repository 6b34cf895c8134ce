/** Tests how many connections to Redis a relay that owns partitions keeps. */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import { openCallboard } from '../../src/callboard.ts';
import { eventually } from '../kit/patience.ts';
import { startRedis } from '../kit/redis.ts';

it('subscribes by one connection, and hears nothing that other relays say to themselves', async () => {
  const server = await startRedis();
  const hand = new Redis(server.url);
  const namespace = randomUUID();
  const place = { url: server.url, namespace, partitions: 4, durability: 'memory', store: 'owned' } as const;
  const legacy = { commandStream: null, pending: null };
  const open = () =>
    openCallboard({
      config: { auth: { adminTokens: ['an administrator'] }, redis: { ...place, legacy, strictMigration: false } },
    });
  const relays = [await open(), await open()];
  onTestFinished(async () => {
    for (const relay of relays) await relay.close();
    hand.disconnect();
    await server.stop();
  });
  const lines = String(await hand.call('CLIENT', 'LIST', 'TYPE', 'pubsub'))
    .trim()
    .split('\n');
  expect(lines).toHaveLength(relays.length);
  // Channels that both subscribe to have only notes about owners.
  const channels = (await hand.pubsub('CHANNELS', '*')) as string[];
  const counts = (await hand.pubsub('NUMSUB', ...channels)) as (string | number)[];
  const shared = channels.filter((_, i) => Number(counts[2 * i + 1]) > 1);
  expect(shared).toHaveLength(1);
  const texts: string[] = [];
  const ear = new Redis(server.url);
  onTestFinished(() => ear.disconnect());
  await ear.subscribe(...shared);
  ear.on('message', (_channel, text: string) => texts.push(text));
  await eventually(async () => {
    const published = /^cmdstat_publish:calls=(\d+)/m.exec(await hand.info('commandstats'))?.[1];
    expect(Number(published)).toBeGreaterThan(12);
  });
  expect(texts.filter((text) => text.includes('probe'))).toEqual([]);
});
