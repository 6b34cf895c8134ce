/**
 * Checks that every Redis master is fit for a deployment (version, no eviction of keys, durability as declared), at the
 * start and repeatedly while the relay runs.
 */
import type { Redis } from 'ioredis';
import { CallboardError } from '../../core/errors.ts';
import type { Cancel, Clock, Log } from '../../core/ports.ts';
import { unavailable, type Client } from './client.ts';

/**
 * How many acknowledged writes are lost if the machine of Redis fails. `memory`: perhaps all. `aof_everysec`: at most
 * those of the last second. `aof_always`: none.
 */
export type Durability = 'memory' | 'aof_everysec' | 'aof_always';

type Survey = {
  readonly version: string;
  readonly durability: Durability;
  /** False if some Redis does not report how it writes to disk. */
  readonly proven: boolean;
};

/** The settings that one Redis reports about itself; null for each that it does not report. */
type Reported = {
  readonly at: string;
  readonly version: string;
  readonly policy: string | null;
  readonly appendonly: boolean | null;
  readonly appendfsync: string | null;
};

const MAJOR = 7;
const RANK: Readonly<Record<Durability, number>> = { memory: 0, aof_everysec: 1, aof_always: 2 };

/**
 * Checks that every master of Redis is fit for a deployment: its version, that it never evicts keys, and that it is as
 * durable as declared. Throws one `invalid_argument` that names every fault, or `store_unavailable` if Redis cannot be
 * asked. Changes nothing.
 */
export async function surveyRedis(client: Client, declared: Durability | null): Promise<Survey> {
  const all = await Promise.all(mastersOf(client).map(ask)).catch((error: unknown) => {
    throw unavailable(error);
  });
  const [first] = all;
  if (!first) throw unavailable(new Error('no master of the cluster is known'));
  const faults = [...new Set(all.flatMap((reported) => faultsOf(reported, declared)))];
  if (faults.length > 0) throw new CallboardError('invalid_argument', faults.join('\n'));
  const found = all.map(durabilityOf);
  const proven = found.every((one) => one !== null);
  const least = found.flatMap((one) => one ?? []).reduce((a, b) => (RANK[a] < RANK[b] ? a : b), 'aof_always');
  // The deployment promises the declared durability, even if Redis is more durable.
  return { version: first.version, durability: declared ?? least, proven };
}

function mastersOf(client: Client): readonly Redis[] {
  return 'nodes' in client ? client.nodes('master') : [client];
}

async function ask(redis: Redis): Promise<Reported> {
  const info = fieldsOf(await redis.info());
  const config = await configOf(redis);
  const appendonly = config?.get('appendonly') ?? null;
  return {
    at: redis.options.path ?? `${redis.options.host}:${redis.options.port}`,
    version: info.get('redis_version') ?? '0',
    policy: config?.get('maxmemory-policy') ?? info.get('maxmemory_policy') ?? null,
    appendonly: appendonly === null ? flagOf(info.get('aof_enabled')) : appendonly === 'yes',
    appendfsync: config?.get('appendfsync') ?? null,
  };
}

/** Reads the settings of a Redis; null if it denies CONFIG, as hosted Redis services do. */
async function configOf(redis: Redis): Promise<ReadonlyMap<string, string> | null> {
  const found = new Map<string, string>();
  for (const name of ['maxmemory-policy', 'appendonly', 'appendfsync']) {
    try {
      const reply = await redis.call('CONFIG', 'GET', name);
      if (Array.isArray(reply) && typeof reply[1] === 'string') found.set(name, reply[1]);
    } catch (error) {
      // An error reply of Redis is a denial; an error of the connection is an outage.
      if (error instanceof Error && error.name === 'ReplyError') return null;
      throw error;
    }
  }
  return found;
}

function faultsOf(reported: Reported, declared: Durability | null): string[] {
  const faults: string[] = [];
  const { at, version, policy } = reported;
  if (Number.parseInt(version, 10) < MAJOR)
    faults.push(`REDIS_URL: Redis ${MAJOR}.0 or newer is needed; ${at} is ${version}`);
  if (policy === null)
    faults.push(`REDIS_URL: ${at} does not say its maxmemory-policy: let its user read INFO memory or CONFIG GET`);
  else if (policy !== 'noeviction')
    faults.push(
      `REDIS_URL: ${at} has maxmemory-policy ${policy}: it may drop commands and reservations; set it to noeviction`,
    );
  const fault = durabilityFault(reported, declared);
  return fault === null ? faults : [...faults, `DURABILITY: ${fault}`];
}

function durabilityFault(reported: Reported, declared: Durability | null): string | null {
  if (declared === 'memory') return null;
  const { at } = reported;
  const found = durabilityOf(reported);
  if (found === null) {
    if (declared !== null) return null;
    return `${at} does not say how it writes to disk: declare aof_everysec, aof_always or memory`;
  }
  if (found === 'memory')
    return `${at} keeps no append-only file that is synced: set appendonly yes and appendfsync everysec, or declare memory`;
  if (declared !== null && RANK[found] < RANK[declared]) return `${declared} was declared, but ${at} has ${found}`;
  return null;
}

/**
 * Returns the durability that the settings give; null if Redis does not report enough. A Redis that only writes
 * snapshots can lose minutes of writes. A Redis with `appendfsync no` can lose everything that the operating system has
 * not written to disk. Both count as `memory`.
 */
function durabilityOf({ appendonly, appendfsync }: Reported): Durability | null {
  if (appendonly === false || appendfsync === 'no') return 'memory';
  if (appendonly === null || appendfsync === null) return null;
  return appendfsync === 'always' ? 'aof_always' : 'aof_everysec';
}

function flagOf(text: string | undefined): boolean | null {
  return text === undefined ? null : text === '1';
}

function fieldsOf(info: string): ReadonlyMap<string, string> {
  const lines = info.split('\r\n').filter((line) => line.includes(':'));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]));
}

/** The time between two surveys while the relay runs, in milliseconds. */
const WATCH_MS = 30_000;

type WatchOptions = {
  readonly client: Client;
  readonly declared: Durability | null;
  readonly system: Clock;
  readonly log: Log;
};

/**
 * Repeats the survey while the relay runs, until the returned function is called. Logs once when a change makes Redis
 * unfit, and once when Redis is fit again. The relay keeps running in between, because the operator decides. If Redis
 * does not answer, the survey is repeated later.
 */
export function watchSurvey({ client, declared, system, log }: WatchOptions): Cancel {
  let told = '';
  const look = async (): Promise<void> => {
    const faults = await surveyRedis(client, declared).then(
      () => '',
      (error: unknown) => {
        if (error instanceof CallboardError && error.code === 'invalid_argument') return error.message;
        return told;
      },
    );
    if (faults === told) return;
    told = faults;
    if (faults === '') log.info({}, 'the settings of Redis are fit again');
    else
      log.warn({ faults }, 'the settings of Redis were changed while the relay runs: it may lose what it answered for');
  };
  return system.every(WATCH_MS, () => void look());
}
