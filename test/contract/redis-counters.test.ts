/** Tests that the audit of a namespace finds each counter and index that is not what is there. */
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import type { KeyKind } from '../../src/backends/redis/keys.ts';
import { toJson } from '../../src/core/json.ts';
import { admission, ALICE, BOUND, dispatched, ending, keyFor, openNode } from './kit/bench.ts';
import { hello } from './kit/connections-model.ts';
import { newMessage } from './kit/history-model.ts';
import { redisBench, type RedisBench } from './kit/redis-bench.ts';

/** A change of what Redis has, and the start of what the audit says of it, after the name of the key. */
type Damage = {
  readonly says: string;
  readonly kind: KeyKind;
  /** Makes the command. `name`: the first key of the kind. `of`: returns the hash of texts, as the names of keys have it. */
  readonly command: (name: string, of: (...texts: string[]) => string) => readonly (string | number)[];
  readonly found: string;
};

const DAMAGES: readonly Damage[] = [
  ...(['q', 'r', 'm', 'h', 'e', 'd'] as const).map((share): Damage => ({
    says: `the total of the share ${share} is too high`,
    kind: 'meta',
    command: (name) => ['HINCRBY', name, share, 7],
    found: `has ${share} `,
  })),
  {
    says: 'a user holds bytes of queued params that no command has',
    kind: 'meta',
    command: (name, of) => ['HINCRBY', name, `q:${of('alice')}`, 7],
    found: 'has q:',
  },
  {
    says: 'the bytes of history of a user are not those of its streams',
    kind: 'meta',
    command: (name, of) => ['HINCRBY', name, `h:${of('alice')}`, -1],
    found: 'has h:',
  },
  {
    says: 'more commands wait for a client than there are',
    kind: 'client',
    command: (name) => ['HINCRBY', name, 'n', 1],
    found: 'has n 3 instead of 2',
  },
  {
    says: 'the params of an ended command stay',
    kind: 'client',
    command: (name) => ['HSET', name, 'pgone', '1'],
    found: 'has pgone of no live command',
  },
  {
    says: 'a reservation stays',
    kind: 'reserved',
    command: (name) => ['ZADD', name, 5, 'alice\0tab\0gone'],
    found: 'has alice/tab/gone',
  },
  {
    says: 'a reservation has another deadline',
    kind: 'reserved',
    command: (name) => ['ZINCRBY', name, 5, 'alice\0tab\0waits'],
    found: 'has alice/tab/waits at',
  },
  {
    says: 'a scope stays listed',
    kind: 'scopes',
    command: (name) => ['ZADD', name, 0, 'nobody'],
    found: 'has nobody',
  },
  {
    says: 'a member of a shared scope holds too much',
    kind: 'members',
    command: (name, of) => ['HINCRBY', name, of('alice'), 1],
    found: 'at 2 instead of 1',
  },
  {
    says: 'the deadlines of a scope are searched too late',
    kind: 'scopedue',
    command: (name, of) => ['ZINCRBY', name, 60_000, of('alice')],
    found: 'later than',
  },
  {
    says: 'a parked command is not found at its connect deadline',
    kind: 'connectdue',
    command: (name) => ['ZREMRANGEBYRANK', name, 0, 0],
    found: 'lacks ',
  },
  {
    says: 'the number of ended commands is too low',
    kind: 'endedcount',
    command: (name) => ['DEL', name],
    found: 'lacks ',
  },
  {
    says: 'an ended command is never reduced to a mark',
    kind: 'endorder',
    command: (name) => ['LPOP', name],
    found: 'lacks ',
  },
  {
    says: 'the user with the oldest ended command is not found',
    kind: 'endedoldest',
    command: (name) => ['DEL', name],
    found: 'the index undefined',
  },
  {
    says: 'the mark of a message is never dropped',
    kind: 'markorder',
    command: (name) => ['LPOP', name],
    found: 'lacks ',
  },
  {
    says: 'a command is not in the listing by name',
    kind: 'names',
    command: (name) => ['ZREM', name, 'tab\0ended'],
    found: 'lacks tab/ended',
  },
  {
    says: 'a command is not in the listing by time',
    kind: 'admitted',
    command: (name) => ['ZREMRANGEBYRANK', name, 0, 0],
    found: 'lacks ',
  },
  {
    says: 'a result is missing',
    kind: 'results',
    command: (name, of) => ['HDEL', name, `${of('alice', 'tab')}ended`],
    found: 'lacks the result of alice/tab/ended',
  },
  {
    says: 'a span is never removed',
    kind: 'endedspans',
    command: (name) => ['ZREMRANGEBYRANK', name, 0, 0],
    found: '',
  },
  {
    says: 'a client is not bound to its node',
    kind: 'bound',
    command: (name) => ['DEL', name],
    found: 'lacks ',
  },
  {
    says: 'the head of a stream is behind its last row',
    kind: 'stream',
    command: (name) => ['XADD', name, '*', '1', 'i\0event\0\0\0\0\0\0\0\0\0\0'],
    found: '',
  },
  {
    says: 'a place names no row',
    kind: 'cmdrows',
    command: (name) => ['HSET', name, 'gone', `${Date.UTC(2026, 0, 1)}\0clients/tab\x005\0`],
    found: 'of gone has',
  },
  {
    says: 'a row has no place',
    kind: 'cmdrows',
    command: (name) => ['HDEL', name, 'ended'],
    found: 'of ended lacks',
  },
  {
    says: 'a user without streams is listed',
    kind: 'streamusers',
    command: (name) => ['ZADD', name, 0, 'nobody\0hash'],
    found: 'has nobody/hash',
  },
  {
    says: 'a stream is not forgotten in time',
    kind: 'streamgone',
    command: (name) => ['ZREMRANGEBYRANK', name, 0, 0],
    found: '',
  },
  {
    says: 'a wait is registered twice',
    kind: 'client',
    command: (name) => ['HSET', name, 'wwaits', 'n1\x001\0c1,c1,\0'],
    found: 'has a wait of n1 for waits twice',
  },
  {
    says: 'a connection is not listed',
    kind: 'conns',
    command: (name) => ['DEL', name],
    found: 'lacks ',
  },
  {
    says: 'a connection is forgotten at another time',
    kind: 'conngone',
    command: (name, of) => ['ZINCRBY', name, 1, `alice\0tab\0${of('alice', 'tab')}`],
    found: 'has alice/tab/',
  },
  {
    says: 'a node was never attached',
    kind: 'nodes',
    command: (name) => ['ZADD', name, 1, 'ghost'],
    found: 'has no epoch',
  },
  {
    says: 'ingested messages were not counted',
    kind: 'seen',
    command: (name) => ['DEL', name],
    found: 'has unique at 0',
  },
  {
    says: 'the bytes of payloads are too many',
    kind: 'payloadbytes',
    command: (name) => ['SET', name, 5],
    found: 'has bytes 5 instead of 0',
  },
  {
    says: 'a key has no known kind',
    kind: 'meta',
    command: (name) => ['SET', name.replace(/meta$/, 'strange'), 5],
    found: 'has no known kind',
  },
];

describe('the audit of a namespace', () => {
  let bench: RedisBench;
  let redis: Redis;
  beforeEach(async () => {
    bench = await redisBench({ partitions: 1 });
    redis = new Redis(inject('redisUrl'));
    await fill(bench);
  });
  afterEach(async () => {
    redis.disconnect();
    await bench.close();
  });

  it('finds nothing while nothing is wrong, also when everything is over', async () => {
    expect(await bench.audit()).toEqual([]);
    await bench.advance(3_600_000);
    for (const key of await bench.backend.nodes.due(100)) await bench.backend.commands.settle(key, { kind: 'expire' });
    expect(await bench.audit()).toEqual([]);
    await bench.advance(8 * 24 * 3_600_000);
    expect(await bench.audit()).toEqual([]);
    await bench.sweep();
    expect(await bench.audit()).toEqual([]);
  });

  it.each(DAMAGES)('finds that $says', async ({ kind, command, found }) => {
    const { store } = bench;
    const names = await redis.keys(`${store.key(0, 'meta').slice(0, -'meta'.length)}${kind}*`);
    const exact = names.filter((name) => name.split('}:')[1]?.split(':')[0] === kind).sort();
    const own = { client: store.hash('alice', 'tab'), reserved: store.hash('alice') } as Readonly<
      Record<string, string>
    >;
    const name =
      exact.find((one) => own[kind] !== undefined && one.endsWith(own[kind])) ?? exact[0] ?? store.key(0, kind);
    const [verb = '', ...args] = command(name, store.hash);
    await redis.call(String(verb), ...args);
    const wrong = await bench.audit();
    expect(wrong).toContainEqual(expect.stringContaining(found));
    expect(wrong).not.toEqual([]);
  });
});

/** Leaves something of every kind that the audit compares. */
async function fill(bench: RedisBench): Promise<void> {
  const { backend } = bench;
  const { commands, connections, history } = backend;
  await openNode(bench);
  await connections.connect(hello('alice', 'tab'));
  await commands.rebind(ALICE, BOUND, 'up');
  await dispatched(bench, 'ended', { params: toJson({ n: 1 }) });
  await commands.finish(keyFor('ended'), ending());
  await dispatched(bench, 'runs');
  await commands.admit(admission('waits'));
  await commands.admit(admission('team', { scopeId: 'team' }));
  await commands.admit(admission('parked', { clientId: 'phone', connectWithinMs: 5_000 }));
  await history.ingest({ ...newMessage({ id: 'm1', suffix: 'notes' }), clientId: 'tab' });
}
