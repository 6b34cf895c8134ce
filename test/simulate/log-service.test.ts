/** Compares the model of Redis in the simulation with a real Redis, by random calls of the commands of owners. */
import { createHash, randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { LogError, LogService, type Reply } from '../../faults/simulate/log-service.ts';
import { OWNER_SCRIPTS } from '../../src/backends/owned/scripts.ts';

/** The number of sequences of calls. */
const RUNS = Number(process.env['CALLBOARD_TEST_RUNS'] ?? 60);
/** A time that no key of a test outlives: the model and Redis have clocks of their own. */
const LONG_MS = '600000';

type Call = { readonly name: string; readonly keys: readonly string[]; readonly args: readonly string[] };

const PARTITIONS = ['0', '1'] as const;
const partition = fc.constantFrom(...PARTITIONS);
const owner = fc.constantFrom('a.1', 'b.1');
const small = fc.integer({ min: 0, max: 4 });
/** The fences that the calls of `START` leave behind are the most frequent ones, so that many calls write. */
const fence = fc.oneof(
  fc.constantFrom('a.1 1 1', 'a.1 1 2'),
  fc.tuple(owner, small, small).map((parts) => parts.join(' ')),
);
const map = fc.constantFrom('map', 'map', 'map', 'other');
const name = fc.constantFrom('s1', 's2');
const text = fc.constantFrom('x', 'y', 'a longer text');

const turn = fc
  .record({
    map,
    appends: fc.array(fc.tuple(partition, fence, fence, small, text), { maxLength: 2 }),
    checks: fc.array(fc.tuple(partition, fence), { maxLength: 2 }),
    mail: fc.array(text, { maxLength: 2 }),
  })
  .map(({ map, appends, checks, mail }): Call => {
    const keys = ['map', ...appends.flatMap(([p]) => [`fence:${p}`, `log:${p}`]), ...checks.map(([p]) => `fence:${p}`)];
    const args = [map, String(appends.length), String(checks.length)];
    for (const [, before, after, number, body] of appends) args.push(before, after, String(number), body);
    return {
      name: 'turn',
      keys,
      args: [...args, ...checks.map(([, found]) => found), ...mail.flatMap((one) => ['channel', one])],
    };
  });

const setFence = fc
  .record({
    partition,
    found: fc.oneof(fence, fc.constant('')),
    next: fence,
    map,
    alive: fc.array(owner),
    dead: fc.array(owner),
  })
  .map(({ partition: p, found, next, map, alive, dead }): Call => {
    const live = [...alive, ...dead].map((one) => `live:${one}`);
    return { name: 'setFence', keys: [`fence:${p}`, 'map', ...live], args: [found, next, map, String(alive.length)] };
  });

const snapshot = fc
  .record({
    partition,
    owner,
    epoch: small,
    number: small,
    name,
    before: name,
    anew: fc.boolean(),
    fence,
    batches: fc.array(fc.tuple(small, text), { maxLength: 2 }),
  })
  .map(({ partition: p, owner, epoch, number, name, before, anew, fence, batches }): Call => {
    const keys = [`fence:${p}`, `snapat:${p}`, `log:${p}`, `snap:${p}:${name}`, `snap:${p}:${before}`];
    const args = [`${owner} ${epoch} `, String(number), `${number} ${name}`];
    const more = anew ? [fence, ...batches.flatMap(([at, body]) => [String(at), body])] : [];
    return { name: anew ? 'beginAnew' : 'commitSnapshot', keys, args: [...args, ...more] };
  });

const renew = fc
  .record({ process: owner, text, isFirst: fc.boolean(), reports: fc.boolean() })
  .map(({ process, text, isFirst, reports }): Call => ({
    name: 'renew',
    keys: [`live:${process}`, ...(isFirst ? ['processes', ...(reports ? [`report:${process}`] : [])] : [])],
    args: [text, LONG_MS, process, 'live:', ...(reports ? [`${text} of ${process}`, LONG_MS] : [])],
  }));

const piece = fc
  .record({ partition, name, text, drops: fc.boolean() })
  .map(({ partition: p, name, text, drops }): Call => ({
    name: drops ? 'dropPieces' : 'addPiece',
    keys: [`snap:${p}:${name}`],
    args: drops ? [] : [text, LONG_MS],
  }));

const plain = fc.oneof(
  partition.map((p): Call => ({ name: 'get', keys: [`fence:${p}`], args: [] })),
  fc.constant<Call>({ name: 'mget', keys: ['map', 'fence:0', 'fence:1', 'live:a.1', 'report:a.1'], args: [] }),
  fc.constant<Call>({ name: 'smembers', keys: ['processes'], args: [] }),
  owner.map((one): Call => ({ name: 'srem', keys: ['processes'], args: [one] })),
  owner.map((one): Call => ({ name: 'del', keys: [`live:${one}`], args: [] })),
  owner.map((one): Call => ({ name: 'exists', keys: [`live:${one}`], args: [] })),
  fc
    .tuple(partition, name, small)
    .map(([p, one, at]): Call => ({ name: 'lindex', keys: [`snap:${p}:${one}`], args: [String(at)] })),
  fc.tuple(partition, small).map(([p, from]): Call => ({ name: 'xrange', keys: [`log:${p}`], args: [String(from)] })),
);

/** The beginning of a log, so that most later calls fit: the map, and an owner with a lease. */
const START: readonly Call[] = [
  { name: 'renew', keys: ['live:a.1', 'processes'], args: ['x', LONG_MS, 'a.1', 'live:'] },
  { name: 'setFence', keys: ['fence:0', 'map', 'live:a.1'], args: ['', 'a.1 1 0', 'map', '1'] },
  { name: 'turn', keys: ['map', 'fence:0', 'log:0'], args: ['map', '1', '0', 'a.1 1 0', 'a.1 1 1', '1', 'x'] },
  { name: 'addPiece', keys: ['snap:0:s1'], args: ['x', LONG_MS] },
];
const calls = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: turn },
      { weight: 3, arbitrary: setFence },
      { weight: 3, arbitrary: snapshot },
      { weight: 2, arbitrary: renew },
      { weight: 3, arbitrary: piece },
      { weight: 3, arbitrary: plain },
    ),
    { minLength: 10, maxLength: 60, size: 'max' },
  )
  .map((some) => [...START, ...some]);

function callModel(model: LogService, { name, keys, args }: Call): Reply {
  const [key = ''] = keys;
  switch (name) {
    case 'get':
      return model.get(key);
    case 'mget':
      return model.mget(keys);
    case 'smembers':
      return [...model.smembers(key)].sort();
    case 'srem':
      return model.srem(key, args);
    case 'del':
      return model.del(keys);
    case 'exists':
      return model.exists(key);
    case 'lindex':
      return model.lindex(key, Number(args[0]));
    case 'xrange':
      return model.xrange(key, Number(args[0]), 100).map(([number, body]) => [`${number}-0`, ['b', body]]);
    default:
      return model.eval(OWNER_SCRIPTS[name as keyof typeof OWNER_SCRIPTS], keys, args);
  }
}

async function callRedis(redis: Redis, prefix: string, { name, keys, args }: Call): Promise<unknown> {
  const named = keys.map((key) => prefix + key);
  const [key = ''] = named;
  switch (name) {
    case 'get':
      return redis.get(key);
    case 'mget':
      return redis.mget(named);
    case 'smembers':
      return (await redis.smembers(key)).sort();
    case 'srem':
      return redis.srem(key, ...args);
    case 'del':
      return redis.del(named);
    case 'exists':
      return redis.exists(key);
    case 'lindex':
      return redis.lindex(key, Number(args[0]));
    case 'xrange':
      return redis.xrange(key, `${args[0]}-0`, '+', 'COUNT', 100);
    default: {
      const given = name === 'renew' ? args.with(3, `${prefix}live:`) : args;
      return redis.eval(OWNER_SCRIPTS[name as keyof typeof OWNER_SCRIPTS], named.length, ...named, ...given);
    }
  }
}

const failed = (error: unknown): string => {
  if (!(error instanceof Error)) throw new Error(String(error));
  return error.message.includes('XADD') ? 'refused an entry' : error.message;
};

describe('the model of Redis', () => {
  let redis: Redis;
  beforeAll(() => {
    redis = new Redis(inject('redisUrl'));
  });
  afterAll(() => redis.disconnect());

  it('answers any calls of owners as Redis does', async () => {
    const property = fc.asyncProperty(calls, async (all) => {
      const prefix = `${randomUUID()}:`;
      const model = new LogService(() => 0);
      for (const call of all) {
        const real = await callRedis(redis, prefix, call).catch(failed);
        let modelled: unknown;
        try {
          modelled = callModel(model, call);
        } catch (error) {
          if (!(error instanceof LogError)) throw error;
          modelled = failed(error);
        }
        expect([call, comparable(call, modelled, '')]).toEqual([call, comparable(call, real, prefix)]);
      }
    });
    await fc.assert(property, { numRuns: RUNS });
  });

  it('forgets what a replica did not have, and the scripts', () => {
    const model = new LogService(() => 0);
    const renew = (text: string) => model.eval(OWNER_SCRIPTS.renew, ['live:a.1'], [text, LONG_MS, 'a.1', 'live:']);
    renew('1');
    const replica = model.copy();
    renew('2');
    const digest = createHash('sha1').update(OWNER_SCRIPTS.renew).digest('hex');
    expect(model.evalKnown(digest, ['live:b.1'], ['x', LONG_MS, 'b.1', 'live:'])).toEqual([null]);
    expect(model.get('live:a.1')).toBe('2');
    model.become(replica);
    expect(model.get('live:a.1')).toBe('1');
    expect(() => model.evalKnown(digest, [], [])).toThrow('NOSCRIPT');
  });

  it('refuses what may grow, and nothing else, while there is no memory', () => {
    const model = new LogService(() => 0);
    model.isFull = true;
    expect(() => model.eval(OWNER_SCRIPTS.mayGrow, ['map'], [])).toThrow('OOM');
    expect(model.eval(OWNER_SCRIPTS.setFence, ['fence:0', 'map'], ['', 'a.1 1 0', 'map', '0'])).toBe(1);
    model.isFull = false;
    expect(model.eval(OWNER_SCRIPTS.mayGrow, ['map'], [])).toBe(1);
  });
});

/** A reply without the prefix of a test. Redis gives the processes of a set in any order. */
function comparable({ name }: Call, reply: unknown, prefix: string): unknown {
  const plain = strings(reply, prefix);
  if (name !== 'renew' || !Array.isArray(plain)) return plain;
  const [before, ...texts] = plain;
  return [before, new Map(texts.flatMap((text, i) => (i % 2 === 0 ? [[text, texts[i + 1]] as const] : [])))];
}

/** Numbers and texts alike, without the prefix of a test. */
function strings(reply: unknown, prefix: string): unknown {
  if (Array.isArray(reply)) return reply.map((one) => strings(one, prefix));
  return reply === null || reply === undefined ? null : String(reply).replaceAll(prefix, '');
}
