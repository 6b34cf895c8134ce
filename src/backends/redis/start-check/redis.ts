import type { Redis } from 'ioredis';
import { CallboardError } from '../../../core/errors.ts';
import { unavailable, type Client } from '../types.ts';

/** What an acknowledged write survives. `memory`: nothing is written to disk. `aof_everysec`: at most its last second is lost with the machine. */
export type Durability = 'memory' | 'aof_everysec' | 'aof_always';

export type Survey = {
  readonly version: string;
  readonly durability: Durability;
  /** False where Redis does not say how it writes: then it is what was declared. */
  readonly proven: boolean;
};

/** What one Redis says of itself; null where it does not say. */
type Said = {
  readonly at: string;
  readonly version: string;
  readonly policy: string | null;
  readonly appendonly: boolean | null;
  readonly appendfsync: string | null;
};

const MAJOR = 7;
const RANK: Readonly<Record<Durability, number>> = { memory: 0, aof_everysec: 1, aof_always: 2 };

/**
 * Looks whether Redis, every master of it, is fit to hold a deployment: its version, that it never evicts, and that it keeps what `declared`
 * promises. Throws one `invalid_argument` that names every fault; `store_unavailable` when it cannot be asked. Reads only.
 */
export async function surveyRedis(client: Client, declared: Durability | null): Promise<Survey> {
  const all = await Promise.all(mastersOf(client).map(ask)).catch((error: unknown) => {
    throw unavailable(error);
  });
  const [first] = all;
  if (!first) throw unavailable(new Error('no master of the cluster is known'));
  const faults = [...new Set(all.flatMap((said) => faultsOf(said, declared)))];
  if (faults.length > 0) throw new CallboardError('invalid_argument', faults.join('\n'));
  const found = all.map(durabilityOf);
  const proven = found.every((one) => one !== null);
  const least = found.flatMap((one) => one ?? []).reduce((a, b) => (RANK[a] < RANK[b] ? a : b), 'aof_always');
  // Promised is what was declared, even where Redis keeps more.
  return { version: first.version, durability: declared ?? least, proven };
}

function mastersOf(client: Client): readonly Redis[] {
  return 'nodes' in client ? client.nodes('master') : [client];
}

async function ask(redis: Redis): Promise<Said> {
  const info = fieldsOf(await redis.info());
  const config = await configOf(redis);
  const appendonly = config?.get('appendonly') ?? null;
  return {
    at: `${redis.options.host}:${redis.options.port}`,
    version: info.get('redis_version') ?? '0',
    policy: config?.get('maxmemory-policy') ?? info.get('maxmemory_policy') ?? null,
    appendonly: appendonly === null ? said(info.get('aof_enabled')) : appendonly === 'yes',
    appendfsync: config?.get('appendfsync') ?? null,
  };
}

/** Null where it is denied, as hosted ones do. */
async function configOf(redis: Redis): Promise<ReadonlyMap<string, string> | null> {
  const found = new Map<string, string>();
  for (const name of ['maxmemory-policy', 'appendonly', 'appendfsync']) {
    try {
      const reply = await redis.call('CONFIG', 'GET', name);
      if (Array.isArray(reply) && typeof reply[1] === 'string') found.set(name, reply[1]);
    } catch (error) {
      // What Redis answered is a denial; what the connection says is an outage.
      if (error instanceof Error && error.name === 'ReplyError') return null;
      throw error;
    }
  }
  return found;
}

function faultsOf(said: Said, declared: Durability | null): string[] {
  const faults: string[] = [];
  const { at, version, policy } = said;
  if (Number.parseInt(version, 10) < MAJOR)
    faults.push(`REDIS_URL: Redis ${MAJOR}.0 or newer is needed; ${at} is ${version}`);
  if (policy === null)
    faults.push(`REDIS_URL: ${at} does not say its maxmemory-policy: let its user read INFO memory or CONFIG GET`);
  else if (policy !== 'noeviction')
    faults.push(
      `REDIS_URL: ${at} has maxmemory-policy ${policy}: it may drop commands and reservations; set it to noeviction`,
    );
  const fault = durabilityFault(said, declared);
  return fault === null ? faults : [...faults, `DURABILITY: ${fault}`];
}

function durabilityFault(said: Said, declared: Durability | null): string | null {
  if (declared === 'memory') return null;
  const found = durabilityOf(said);
  if (found === null) {
    if (declared !== null) return null;
    return `${said.at} does not say how it writes to disk: declare aof_everysec, aof_always or memory`;
  }
  if (found === 'memory')
    return `${said.at} keeps no append-only file that is synced: set appendonly yes and appendfsync everysec, or declare memory`;
  if (declared !== null && RANK[found] < RANK[declared]) return `${declared} was declared, but ${said.at} has ${found}`;
  return null;
}

/** Null: it does not say enough. Snapshots alone lose minutes, and `appendfsync no` as much as the system likes: both count as memory. */
function durabilityOf({ appendonly, appendfsync }: Said): Durability | null {
  if (appendonly === false || appendfsync === 'no') return 'memory';
  if (appendonly === null || appendfsync === null) return null;
  return appendfsync === 'always' ? 'aof_always' : 'aof_everysec';
}

function said(text: string | undefined): boolean | null {
  return text === undefined ? null : text === '1';
}

function fieldsOf(info: string): ReadonlyMap<string, string> {
  const lines = info.split('\r\n').filter((line) => line.includes(':'));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]));
}
