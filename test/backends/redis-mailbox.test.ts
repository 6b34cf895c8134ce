/** Tests a mailbox in Redis that cannot be read, and rows that are not taken. */
import { randomUUID } from 'node:crypto';
import { inject, expect, it } from 'vitest';
import { connectCommands } from '../kit/redis.ts';
import { readMailbox } from '../../src/backends/redis/nodes-mailbox.ts';
import type { RawRow } from '../../src/backends/redis/nodes-rows.ts';
import { silentLog, type Log } from '../../src/core/ports.ts';
import { systemClock } from '../../src/platform/system.ts';

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
  const stop = readMailbox({ deps: { connect, log, system: systemClock }, key, take });
  await taken.promise;
  expect((await back.promise).afterMs).toBeGreaterThan(0);
  expect([attempts, lines]).toEqual([4, ['a mailbox cannot be read', 'a mailbox is read again']]);
  stop();
  await hand.del(key);
  hand.disconnect();
});

it('a row that is not taken is delivered again, and the rows before it in its entry are not', async () => {
  const key = `mailbox-${randomUUID()}`;
  const hand = connectCommands(inject('redisUrl'));
  await hand.connect();
  const fields = ['a', 'b', 'c'].flatMap((name) => ['kind', 'command', 'commandId', name]);
  await hand.xadd(key, '*', ...fields);
  await hand.xadd(key, '*', 'kind', 'drain');
  const taken: string[] = [];
  const all = Promise.withResolvers<void>();
  let refused = false;
  const take = async ({ fields: row }: RawRow): Promise<void> => {
    const name = row.get('commandId') ?? String(row.get('kind'));
    if (name === 'b' && !refused) {
      refused = true;
      throw new Error('not now');
    }
    taken.push(name);
    if (name === 'drain') all.resolve();
  };
  const deps = { connect: () => connectCommands(inject('redisUrl')), log: silentLog, system: systemClock };
  const stop = readMailbox({ deps, key, take });
  await all.promise;
  expect([refused, taken]).toEqual([true, ['a', 'b', 'c', 'drain']]);
  stop();
  await hand.del(key);
  hand.disconnect();
});
