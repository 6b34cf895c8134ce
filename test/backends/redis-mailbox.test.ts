import { randomUUID } from 'node:crypto';
import { inject, expect, it } from 'vitest';
import { connectCommands } from '../kit/redis-client.ts';
import { readMailbox } from '../../src/backends/redis/nodes/mailbox.ts';
import { silentLog, type Log } from '../../src/core/log.ts';
import { systemClock } from '../../src/platform/clock.ts';

it('a mailbox logs once that it cannot be read, and once that it is read again and for how long it was not', async () => {
  const key = `mailbox-${randomUUID()}`;
  const hand = connectCommands(inject('redisUrl'));
  await hand.connect();
  await hand.xadd(key, '*', 'kind', 'drain');
  const lines: string[] = [];
  const back = Promise.withResolvers<Record<string, unknown>>();
  const log: Log = {
    ...silentLog,
    warn: (_fields, message) => void lines.push(message),
    info(fields, message) {
      lines.push(message);
      back.resolve(fields);
    },
  };
  let attempts = 0;
  const connect = () => connectCommands(++attempts < 4 ? 'redis://127.0.0.1:1' : inject('redisUrl'));
  const taken = Promise.withResolvers<void>();
  const take = async (): Promise<void> => taken.resolve();
  const stop = readMailbox({ parts: { connect, log, system: systemClock }, key, take });
  await taken.promise;
  expect((await back.promise).afterMs).toBeGreaterThan(0);
  expect([attempts, lines]).toEqual([4, ['a mailbox cannot be read', 'a mailbox is read again']]);
  stop();
  await hand.del(key);
  hand.disconnect();
});
