/** Lists the Redis commands that the relay uses, with the ACL rules that allow them. */
import type { Client } from './client.ts';
import type { LegacyKeys } from './legacy.ts';
import type { RedisTarget } from './target.ts';

export type RightsOptions = {
  readonly client: Client;
  readonly target: RedisTarget;
  readonly namespace: string;
  readonly partitions: number;
  readonly legacy: LegacyKeys;
  /** `owned`: relays own partitions, whose data is in the same Redis. */
  readonly store?: 'redis' | 'owned' | undefined;
};

/**
 * Every command that the relay sends to Redis or runs in a script, with arguments that Redis accepts. `KEY` and
 * `CHANNEL` stand for names of the namespace. `test/backends/redis-rights-list.test.ts` compares this list with the
 * sources and with the commands that a Redis has counted, so every new command must be added here.
 */
export const COMMANDS = {
  DECRBY: 'KEY 1',
  DEL: 'KEY',
  EVAL: '- 1 KEY',
  EVALSHA: '- 1 KEY',
  EXISTS: 'KEY',
  GET: 'KEY',
  HDEL: 'KEY f',
  HGET: 'KEY f',
  HGETALL: 'KEY',
  HINCRBY: 'KEY f 1',
  HKEYS: 'KEY',
  HLEN: 'KEY',
  HMGET: 'KEY f',
  HSET: 'KEY f v',
  HSETNX: 'KEY f v',
  INCRBY: 'KEY 1',
  INFO: '',
  LINDEX: 'KEY 0',
  LPOP: 'KEY',
  PEXPIRE: 'KEY 1',
  PTTL: 'KEY',
  PUBLISH: 'CHANNEL v',
  PUBSUB: 'NUMSUB CHANNEL',
  RPUSH: 'KEY m',
  SADD: 'KEY m',
  SET: 'KEY v',
  SRANDMEMBER: 'KEY',
  SREM: 'KEY m',
  SUBSCRIBE: 'CHANNEL',
  TIME: '',
  UNLINK: 'KEY',
  UNSUBSCRIBE: 'CHANNEL',
  XADD: 'KEY * f v',
  XRANGE: 'KEY - +',
  XREAD: 'COUNT 1 STREAMS KEY 0',
  XREVRANGE: 'KEY + -',
  XTRIM: 'KEY MINID 0',
  ZADD: 'KEY 0 m',
  ZCARD: 'KEY',
  ZCOUNT: 'KEY 0 0',
  ZLEXCOUNT: 'KEY - +',
  ZMSCORE: 'KEY m',
  ZRANGE: 'KEY 0 0',
  ZRANGEBYLEX: 'KEY - +',
  ZRANGEBYSCORE: 'KEY 0 0',
  ZREM: 'KEY m',
  ZREMRANGEBYLEX: 'KEY - -',
  ZREMRANGEBYRANK: 'KEY 0 0',
  ZREMRANGEBYSCORE: 'KEY 0 0',
  ZREVRANGE: 'KEY 0 0',
  ZREVRANGEBYLEX: 'KEY + -',
  ZSCORE: 'KEY m',
} as const satisfies Readonly<Record<string, string>>;

/** The additional commands that owners of partitions send or run in a script. */
export const OWNED_COMMANDS = {
  MGET: 'KEY',
  PERSIST: 'KEY',
  SMEMBERS: 'KEY',
  WAIT: '0 1',
} as const satisfies Readonly<Record<string, string>>;

/** The additional commands that owners of partitions use in a cluster. */
export const OWNED_CLUSTER_COMMANDS = {
  SPUBLISH: 'CHANNEL v',
  SSUBSCRIBE: 'CHANNEL',
} as const satisfies Readonly<Record<string, string>>;

/** The commands that ioredis and bus connections send to a cluster. */
const OF_CLUSTER = ['CLUSTER SLOTS', 'CLUSTER INFO'];
const OF_DATABASE = 'SELECT 0';
/** The commands that read the lengths of legacy keys. */
const OF_LEGACY_STREAM = ['TYPE KEY', 'XLEN KEY', 'XINFO GROUPS KEY', 'XPENDING KEY g'];
const OF_LEGACY_PENDING = ['TYPE KEY', 'LLEN KEY', 'SCARD KEY', 'XLEN KEY'];

/** Commands for which a right is granted for a single subcommand. */
const WITH_SUBCOMMAND: ReadonlySet<string> = new Set(['CLUSTER', 'PUBSUB', 'XINFO']);

type Names = { readonly key: string; readonly channel: string };

/** A command to check, as the list of its words. */
export type Words = readonly string[];

/** Lists every command that the relay sends to this target, with names of keys and channels inserted. */
export function commandsFor({ target, legacy, store }: Omit<RightsOptions, 'client'>, names: Names): readonly Words[] {
  const isOwned = store === 'owned';
  const ofOwners = isOwned ? { ...OWNED_COMMANDS, ...(target.form === 'cluster' && OWNED_CLUSTER_COMMANDS) } : {};
  const own = Object.entries({ ...COMMANDS, ...ofOwners }).map(([name, words]) => `${name} ${words}`);
  const database = target.form !== 'cluster' && target.db !== 0 ? [OF_DATABASE] : [];
  const cluster = target.form === 'cluster' ? OF_CLUSTER : [];
  return [
    ...[...own, ...database, ...cluster].map((line) => wordsOf(line, names)),
    ...legacyCommands(legacy.commandStream, OF_LEGACY_STREAM),
    ...legacyCommands(legacy.pending, OF_LEGACY_PENDING),
  ];
}

/** Returns the ACL rule that allows the command, such as `+get` or `+xinfo|groups`. */
export function ruleOf([name = '', subcommand = '']: Words): string {
  const words = WITH_SUBCOMMAND.has(name) ? [name, subcommand] : [name];
  return `+${words.join('|').toLowerCase()}`;
}

function legacyCommands(key: string | null, lines: readonly string[]): readonly Words[] {
  return key === null ? [] : lines.map((line) => wordsOf(line, { key, channel: '' }));
}

function wordsOf(line: string, { key, channel }: Names): Words {
  return line
    .trim()
    .split(' ')
    .map((word) => (word === 'KEY' ? key : word === 'CHANNEL' ? channel : word));
}
