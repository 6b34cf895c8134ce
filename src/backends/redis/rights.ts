/**
 * Checks, at the start and later, whether the Redis user may do all that the relay needs, and says which ACL rules are
 * missing. Also counts what is left in the legacy keys. Changes nothing.
 */
import type { Redis } from 'ioredis';
import type { DeliverySummary } from '../../core/commands/stores.ts';
import { CallboardError } from '../../core/errors.ts';
import { silentLog, type Clock, type Log } from '../../core/ports.ts';
import { connectTo, unavailable, type Client, type ReadCommand, type Reply } from './client.ts';
import type { RedisTarget } from './target.ts';
import { KINDS, keyOf, ownedNamespace, rootOf, tagsOf, type KeyKind } from './keys.ts';

export type RightsOptions = {
  readonly client: Client;
  readonly target: RedisTarget;
  readonly namespace: string;
  readonly partitions: number;
  readonly legacy: LegacyKeys;
  /** `owned`: partitions that relays own are in the same Redis. */
  readonly store?: 'redis' | 'owned' | undefined;
};

/** A kind of thing (keys, channels, commands) that one Redis denies its user, and the ACL rules that would allow it. */
type Denied = { readonly what: string; readonly rules: readonly string[] };

/** A command that Redis refuses. `reason`: the text of its error. */
type Refused = { readonly words: Words; readonly reason: string };

/**
 * A script that asks Redis which of the commands its user may run. To get the text of a refusal, it runs the commands
 * that the check refuses; Redis refuses them before it does anything. Returns null if this Redis is too old for the
 * check.
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
 * Finds what the Redis user may not do although the relay needs it: keys and channels of the namespace, the legacy
 * keys, and commands. Asks every master, since each has its own users. Returns one sentence for each kind of thing and
 * master, with the ACL rules to add; none when all is allowed. Changes nothing. Throws `store_unavailable` if Redis
 * cannot be asked.
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
 * Asks the first node of a cluster for missing rights, after connecting to the cluster has failed. If the user may not
 * ask about the cluster, ioredis never says why it cannot connect. Finds nothing if that node cannot be asked either.
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

/** Says whether an error of Redis means that its user may not do something, directly or in a script. */
export function isRefusal(message: string): boolean {
  return /\bNOPERM\b|The user executing the script can't|ACL failure in script/.test(message);
}

async function deniedBy(redis: Redis, options: RightsOptions): Promise<readonly Denied[]> {
  const { namespace, legacy } = options;
  const names = namesOf(options);
  const sample = { key: rootOf(namespace), channel: names.channels[0] ?? '' };
  const commands = await refusedOf(redis, commandsFor(options, sample));
  // Without EVAL nothing else can be asked.
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
 * Returns the commands that are refused; null if EVAL itself is refused. Returns an empty list if Redis is too old for
 * the check.
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
 * Runs a command that is allowed outside scripts only, for the text of its refusal. Redis refuses the command, so the
 * state of the connection does not change.
 */
async function askedDirectly(redis: Redis, { words }: Refused): Promise<Refused> {
  const [name = '', ...args] = words;
  const reason = await redis.call(name, ...args).then(
    () => '',
    (error: unknown) => (error instanceof Error ? error.message : ''),
  );
  return { words, reason };
}

/** Says whether the command itself was refused. Redis checks the command first, then its keys, then its channels. */
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

/** Returns the text with which every key and channel of the namespace begins. */
function prefixOf(namespace: string): string {
  return `{cb:${namespace}:`;
}

/**
 * Returns the keys and channels to check: one of every kind in the first partition, and one key and one channel in each
 * other partition, because there may be many partitions; and one key and one channel of owners.
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

// Lists the Redis commands that the relay uses, and gives the ACL rules that allow them. Sends nothing.

/**
 * Every command that the relay sends to Redis or runs in a script, with arguments that Redis accepts for it: `KEY` and
 * `CHANNEL` are replaced by names of the namespace. `test/backends/redis-rights-list.test.ts` compares the list with
 * the sources and with what a Redis counted, so every new command must be added here.
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

/** The commands that owners send or run in a script besides these. */
export const OWNED_COMMANDS = {
  MGET: 'KEY',
  PERSIST: 'KEY',
  SMEMBERS: 'KEY',
  WAIT: '0 1',
} as const satisfies Readonly<Record<string, string>>;

/** The commands that owners send to a cluster, or run there in a script, besides these. */
export const OWNED_CLUSTER_COMMANDS = {
  SPUBLISH: 'CHANNEL v',
  SSUBSCRIBE: 'CHANNEL',
} as const satisfies Readonly<Record<string, string>>;

/** The commands that ioredis, or a connection for the bus, sends to a cluster. */
const OF_CLUSTER = ['CLUSTER SLOTS', 'CLUSTER INFO'];
const OF_DATABASE = 'SELECT 0';
/** The commands that read the lengths of legacy keys. */
const OF_LEGACY_STREAM = ['TYPE KEY', 'XLEN KEY', 'XINFO GROUPS KEY', 'XPENDING KEY g'];
const OF_LEGACY_PENDING = ['TYPE KEY', 'LLEN KEY', 'SCARD KEY', 'XLEN KEY'];

/** Commands whose right is given for one subcommand. */
const WITH_SUBCOMMAND: ReadonlySet<string> = new Set(['CLUSTER', 'PUBSUB', 'XINFO']);

type Names = { readonly key: string; readonly channel: string };

/** One command to check, as the list of its words. */
type Words = readonly string[];

/** Lists every command that the relay sends to this target, with names of keys and channels filled in. */
function commandsFor({ target, legacy, store }: Omit<RightsOptions, 'client'>, names: Names): readonly Words[] {
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

// Checks the rights of the Redis user while the relay runs, because they can be taken away.

/** The time in which refusals lead to at most one check, milliseconds. */
const CHECK_MS = 1_000;

/** Watches the rights of the Redis user. */
type RightsWatch = {
  /** Throws `store_unavailable`: with `reason` if a right is missing now, without it if Redis cannot be asked. */
  check(): Promise<void>;
  /**
   * Checks the rights if this error of Redis is a refusal. Logs the missing rights when they have changed. Call it with
   * every error of Redis.
   */
  noticed(error: unknown): void;
};

export function watchRights(options: RightsOptions & { readonly system: Clock; readonly log: Log }): RightsWatch {
  const { system, log } = options;
  let missing = '';
  let checkedAt = -Infinity;
  const check = async (): Promise<void> => {
    const found = (await missingRights(options)).join(' ');
    if (found !== missing) {
      if (found === '') log.info({}, 'the Redis user has all its rights again');
      else log.warn({ missing: found }, 'the Redis user lacks rights');
    }
    missing = found;
    if (found !== '')
      throw new CallboardError('store_unavailable', 'The store refuses the relay.', {
        reason: found,
        retryAfterMs: CHECK_MS,
      });
  };
  return {
    check,
    noticed(error) {
      if (!(error instanceof Error) || !isRefusal(error.message)) return;
      if (system.monotonic() - checkedAt < CHECK_MS) return;
      checkedAt = system.monotonic();
      // The check logs what is missing. If Redis cannot be asked, its connection logs that.
      check().catch(() => {});
    },
  };
}

// Reads how many commands are left in the Redis keys of the system that ran before callboard, and says whether they
// prevent a strict start. Changes nothing.

type LegacyDepths = Pick<DeliverySummary, 'legacyCommandStreamDepth' | 'pendingCommandDepth'>;

/** The keys of the system that ran before callboard. */
export type LegacyKeys = {
  /** The key of a stream of commands. */
  readonly commandStream: string | null;
  /** The key of the commands that were taken and have not ended: a list, set, sorted set, hash or stream. */
  readonly pending: string | null;
};

type Read = (commands: readonly ReadCommand[]) => Promise<readonly Reply[]>;

const LENGTHS: Readonly<Record<string, string>> = {
  list: 'LLEN',
  set: 'SCARD',
  zset: 'ZCARD',
  hash: 'HLEN',
  stream: 'XLEN',
};

/**
 * Counts what is left in the legacy keys: the entries of the stream, and the pending commands. A command is pending if
 * a consumer group took it from the stream and did not acknowledge it, or if it is in the key `pending`. A count is
 * null if its keys are not configured. A key that does not exist counts as empty.
 */
export async function readLegacyDepths(read: Read, { commandStream, pending }: LegacyKeys): Promise<LegacyDepths> {
  const taken = commandStream === null ? null : await takenOf(read, commandStream);
  const kept = pending === null ? null : await lengthOf(read, pending);
  return {
    legacyCommandStreamDepth: commandStream === null ? null : await lengthOf(read, commandStream),
    pendingCommandDepth: taken === null && kept === null ? null : (taken ?? 0) + (kept ?? 0),
  };
}

/** Returns why a strict start is refused; null if nothing is left. */
export function legacyFault({ legacyCommandStreamDepth, pendingCommandDepth }: LegacyDepths): string | null {
  const stream = legacyCommandStreamDepth ?? 0;
  const pending = pendingCommandDepth ?? 0;
  if (stream + pending === 0) return null;
  return `STRICT_MIGRATION: the legacy command stream holds ${stream} entries and ${pending} commands are pending: let them end, or remove them`;
}

async function takenOf(read: Read, stream: string): Promise<number> {
  if ((await typeOf(read, stream)) !== 'stream') return 0;
  const [groups] = await read([['XINFO', 'GROUPS', stream]]);
  let sum = 0;
  for (const group of Array.isArray(groups) ? groups : []) {
    const name = fieldOf(group, 'name');
    const [summary] = await read([['XPENDING', stream, String(name)]]);
    sum += Array.isArray(summary) ? Number(summary[0]) : 0;
  }
  return sum;
}

async function lengthOf(read: Read, key: string): Promise<number> {
  const type = await typeOf(read, key);
  const command = LENGTHS[type];
  // A key of another type, such as a string, counts as one command.
  if (command === undefined) return type === 'none' ? 0 : 1;
  const [length] = await read([[command, key]]);
  return Number(length);
}

async function typeOf(read: Read, key: string): Promise<string> {
  const [type] = await read([['TYPE', key]]);
  return String(type);
}

function fieldOf(flat: Reply | undefined, name: string): Reply | undefined {
  const list = Array.isArray(flat) ? flat : [];
  return list[list.indexOf(name) + 1];
}
