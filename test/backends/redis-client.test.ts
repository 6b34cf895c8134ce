/** Tests a connection to a Redis that disappeared without closing it. */
import { describe, expect, inject, it } from 'vitest';
import { connectCommands } from '../kit/redis.ts';
import { startProxy } from '../../faults/outages/processes/proxy.ts';

describe('a connection to Redis whose peer disappeared without closing it', () => {
  it('fails its requests, and is replaced by a connection that answers', async () => {
    const { port } = new URL(inject('redisUrl'));
    await using proxy = await startProxy(() => [Number(port)]);
    const client = connectCommands(`redis://127.0.0.1:${proxy.port}`);
    await client.connect();
    try {
      expect(await client.ping()).toBe('PONG');
      const ready = new Promise((resolve) => client.once('ready', resolve));
      proxy.halfOpen();
      await expect(client.ping()).rejects.toThrow();
      await ready;
      expect(await client.ping()).toBe('PONG');
    } finally {
      client.disconnect();
    }
  });
});
