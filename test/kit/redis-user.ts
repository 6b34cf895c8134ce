/** Starts a Redis whose user has only the rights that a test grants. */
import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { COMMANDS, OWNED_CLUSTER_COMMANDS, OWNED_COMMANDS, ruleOf } from '../../src/backends/redis/rights-commands.ts';
import { startRedis, type RedisServer } from './redis.ts';

/** The rules that permit the Redis commands of a relay, as docs/redis-rights.md lists them. */
export const COMMAND_RULES: readonly string[] = rulesOf(COMMANDS);
/** The rules that a relay needs besides if relays own partitions. */
export const OWNED_RULES: readonly string[] = rulesOf(OWNED_COMMANDS);
/** The rules that it needs besides in a cluster. */
export const OWNED_CLUSTER_RULES: readonly string[] = rulesOf(OWNED_CLUSTER_COMMANDS);

function rulesOf(commands: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(commands).map(([name, words]) => ruleOf([name, ...words.split(' ')]));
}

/** Returns the smallest set of rules for a namespace; `*` stands for every namespace. */
export function smallestRules(namespace: string): readonly string[] {
  const prefix = namespace === '*' ? '{cb:*' : `{cb:${namespace}:*`;
  return [`~${prefix}`, `&${prefix}`, ...COMMAND_RULES];
}

/** A Redis with a user `relay` that has only the rights that were granted last. */
export type RestrictedRedis = AsyncDisposable & {
  readonly server: RedisServer;
  /** The address for the relay, with the login of its user. */
  readonly url: string;
  readonly password: string;
  /** Grants the user these rights and revokes all others. */
  allow(rules: readonly string[]): Promise<void>;
  /** Adds rules to the user. */
  change(...rules: readonly string[]): Promise<void>;
  /** Returns the commands that were run since the start, also in scripts, in upper case. */
  used(): Promise<ReadonlySet<string>>;
};

export async function startRestrictedRedis(): Promise<RestrictedRedis> {
  const server = await startRedis();
  const admin = new Redis(server.url);
  const password = randomBytes(12).toString('hex');
  return {
    server,
    password,
    url: server.url.replace('redis://', `redis://relay:${password}@`),
    async allow(rules) {
      await admin.call('ACL', 'SETUSER', 'relay', 'reset', 'on', `>${password}`, ...rules);
    },
    async change(...rules) {
      await admin.call('ACL', 'SETUSER', 'relay', ...rules);
    },
    async used() {
      const stats = await admin.info('commandstats');
      const rows = [...stats.matchAll(/^cmdstat_([^:]+):calls=(\d+),.*rejected_calls=(\d+)/gm)];
      const ran = rows.filter(([, , calls, rejected]) => Number(calls) > Number(rejected));
      return new Set(ran.map(([, name = '']) => name.replace('|', ' ').toUpperCase()));
    },
    async [Symbol.asyncDispose]() {
      admin.disconnect();
      await server.stop();
    },
  };
}
