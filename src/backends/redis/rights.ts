/** Checks whether the Redis user has all the rights that the relay needs, and names the missing ACL rules. */
import type { Redis } from 'ioredis';
import { silentLog } from '../../core/ports.ts';
import { connectTo, unavailable } from './client.ts';
import { KINDS, keyOf, ownedNamespace, rootOf, tagsOf, type KeyKind } from './keys.ts';
import type { LegacyKeys } from './legacy.ts';
import { commandsFor, ruleOf, type RightsOptions, type Words } from './rights-commands.ts';
import type { RedisTarget } from './target.ts';

/** A kind of right (keys, channels, commands) that a Redis denies, with the ACL rules that would grant it. */
type Denied = { readonly what: string; readonly rules: readonly string[] };

/** A command that Redis refuses, with the text of the error. */
type Refused = { readonly words: Words; readonly reason: string };

/**
 * A script that asks Redis which of the commands its user may run. It runs the refused commands to get the texts of the
 * refusals; Redis refuses a command before it has any effect. Returns null if this Redis is too old for the check.
 */
const CHECK = `if not redis.acl_check_cmd then return false end
local refused = {}
for i, words in ipairs(cjson.decode(ARGV[1])) do
  if not redis.acl_check_cmd(unpack(words)) then
    local reply = redis.pcall(unpack(words))
    refused[#refused + 1] = { i - 1, reply.err }
  end
end
return refused`;

/**
 * Finds rights that the relay needs and the Redis user lacks: on keys and channels of the namespace, on legacy keys,
 * and for commands. Asks every master, because each has its own users. Returns one sentence for each kind of right and
 * master, with the ACL rules to add; an empty list if nothing is missing. Changes nothing. Throws `store_unavailable`
 * if Redis does not answer.
 */
export async function missingRights(options: RightsOptions): Promise<readonly string[]> {
  const { client, target } = options;
  const masters = 'nodes' in client ? client.nodes('master') : [client];
  const found = await Promise.all(
    masters.map(async (redis) => {
      const at = `${redis.options.host}:${redis.options.port}`;
      const denied = await deniedBy(redis, options);
      return denied.map((one) => sentence(target, at, one));
    }),
  ).catch((error: unknown) => {
    throw unavailable(error);
  });
  return found.flat();
}

/**
 * Asks the first node of a cluster for missing rights, after a connection to the cluster has failed: if the user may
 * not query the cluster, ioredis never says why it cannot connect. Returns an empty list if this node does not answer
 * either.
 */
export async function missingOfFirstNode(
  options: Omit<RightsOptions, 'client'>,
  target: RedisTarget & { readonly form: 'cluster' },
): Promise<readonly string[]> {
  const [at] = target.nodes;
  if (!at) return [];
  const client = connectTo({ ...target, form: 'single', at, db: 0 }, 'commands', silentLog);
  try {
    await client.connect();
    return await missingRights({ ...options, client });
  } catch {
    return [];
  } finally {
    client.disconnect();
  }
}

/** Whether an error message of Redis means that the user lacks a right, directly or in a script. */
export function isRefusal(message: string): boolean {
  return /\bNOPERM\b|The user executing the script can't|ACL failure in script/.test(message);
}

async function deniedBy(redis: Redis, options: RightsOptions): Promise<readonly Denied[]> {
  const { namespace, legacy } = options;
  const names = namesOf(options);
  const sample = { key: rootOf(namespace), channel: names.channels[0] ?? '' };
  const commands = await refusedOf(redis, commandsFor(options, sample));
  // Without the right to EVAL, no other right can be checked.
  if (commands === null) return [deniedCommands([['EVAL']])];
  const [keys, channels] = await Promise.all([
    refusedOf(
      redis,
      names.keys.map((key) => ['EVAL', '', '1', key]),
    ),
    refusedOf(
      redis,
      names.channels.map((channel) => ['PUBLISH', channel, '']),
    ),
  ]);
  const refusedChannels = [...(channels ?? []), ...commands].filter(deniesChannel).map(({ words }) => words[1]);
  const refusedCommands = commands.filter(deniesCommand).map(({ words }) => words);
  return [
    ...ofNamespace(
      'key',
      keys?.map(({ words }) => words[3]),
      `~${prefixOf(namespace)}*`,
    ),
    ...ofNamespace('channel', refusedChannels, `&${prefixOf(namespace)}*`),
    ...legacyDenied(commands, legacy),
    ...(refusedCommands.length === 0 ? [] : [deniedCommands(refusedCommands)]),
  ];
}

/**
 * Returns the commands that are refused; null if EVAL itself is refused; an empty list if Redis is too old for the
 * check.
 */
async function refusedOf(redis: Redis, commands: readonly Words[]): Promise<readonly Refused[] | null> {
  const reply: unknown = await redis.eval(CHECK, 0, JSON.stringify(commands)).catch((error: unknown) => {
    if (error instanceof Error && isRefusal(error.message)) return 'refused';
    throw error;
  });
  if (reply === 'refused') return null;
  const rows: readonly unknown[] = Array.isArray(reply) ? reply : [];
  const found = rows.map((row): Refused => {
    const [at, reason]: readonly unknown[] = Array.isArray(row) ? row : [];
    return { words: commands[Number(at)] ?? [], reason: String(reason) };
  });
  return Promise.all(
    found.map((one) => (/not allowed from script/.test(one.reason) ? askedDirectly(redis, one) : one)),
  );
}

/**
 * Runs a command outside a script, for commands that only scripts may not run, to get the text of its refusal. Redis
 * refuses the command, so the state of the connection does not change.
 */
async function askedDirectly(redis: Redis, { words }: Refused): Promise<Refused> {
  const [name = '', ...args] = words;
  const reason = await redis.call(name, ...args).then(
    () => '',
    (error: unknown) => (error instanceof Error ? error.message : ''),
  );
  return { words, reason };
}

/** Whether the command itself was refused. Redis first checks the command, then its keys, then its channels. */
function deniesCommand({ reason }: Refused): boolean {
  return /\brun th(e|is)\b/.test(reason);
}

function deniesChannel({ reason }: Refused): boolean {
  return /\bchannel\b/.test(reason);
}

function deniedCommands(commands: readonly Words[]): Denied {
  const rules = [...new Set(commands.map(ruleOf))];
  return { what: `run ${rules.map((rule) => rule.slice(1).replace('|', ' ').toUpperCase()).join(', ')}`, rules };
}

function ofNamespace(kind: 'key' | 'channel', names: readonly (string | undefined)[] = [], rule: string): Denied[] {
  const [first, ...others] = new Set(names);
  if (first === undefined) return [];
  const more = others.length === 0 ? '' : ` and ${others.length} more of its namespace`;
  return [{ what: `use the ${kind} ${first}${more}`, rules: [rule] }];
}

function legacyDenied(refused: readonly Refused[], { commandStream, pending }: LegacyKeys): Denied[] {
  const keys = [commandStream, pending].filter((key) => key !== null);
  const denied = keys.filter((key) => refused.some((one) => one.words.includes(key) && !deniesCommand(one)));
  return denied.map((key) => ({
    what: `read the legacy key ${key}`,
    rules: [`%R~${key.replaceAll(/[*?[\]\\]/g, '\\$&')}`],
  }));
}

/** Returns the prefix of every key and channel of the namespace. */
function prefixOf(namespace: string): string {
  return `{cb:${namespace}:`;
}

/**
 * Returns the keys and channels to check: one of every kind in the first partition; only one key and one channel in
 * each other partition, because there may be many partitions; and one key and one channel of owners of partitions.
 */
function namesOf({ namespace, partitions, store }: Pick<RightsOptions, 'namespace' | 'partitions' | 'store'>): {
  readonly keys: string[];
  readonly channels: string[];
} {
  const owned = store === 'owned' ? tagsOf(ownedNamespace(namespace), 1) : [];
  const [first = '', ...others] = tagsOf(namespace, partitions);
  const kinds = Object.entries(KINDS) as readonly (readonly [KeyKind, (typeof KINDS)[KeyKind]])[];
  const named = (channel: boolean): string[] =>
    kinds
      .filter(([, { holds }]) => holds.startsWith('channel') === channel)
      .map(([kind]) => keyOf(first, kind, kind === 'meta' || kind === 'bus' ? undefined : 'x'));
  return {
    keys: [
      rootOf(namespace),
      ...named(false),
      ...others.map((tag) => keyOf(tag, 'meta')),
      ...owned.map((tag) => `${tag}:map`),
    ],
    channels: [...named(true), ...others.map((tag) => keyOf(tag, 'bus')), ...owned.map((tag) => `${tag}:mail`)],
  };
}

function sentence({ login }: RedisTarget, at: string, { what, rules }: Denied): string {
  const listed = rules.length === 1 ? `the rule ${rules.join('')}` : `the rules ${rules.join(' ')}`;
  return `The Redis user "${login.username ?? 'default'}" at ${at} may not ${what}: add ${listed}.`;
}
