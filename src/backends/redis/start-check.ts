/**
 * The checks at the start: that every Redis master is fit for a deployment (version, eviction, durability), that all
 * nodes use the same directory for large payloads, and that the namespace has the schema and the partitions of this
 * node.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { CallboardError } from '../../core/errors.ts';
import { rootOf } from './keys.ts';
import type { Store } from './store.ts';
import { unavailable, type Client } from './client.ts';

/**
 * What happens to acknowledged writes if the machine of Redis fails. `memory`: all may be lost. `aof_everysec`: at most
 * those of the last second. `aof_always`: none.
 */
export type Durability = 'memory' | 'aof_everysec' | 'aof_always';

type Survey = {
  readonly version: string;
  readonly durability: Durability;
  /** False if a Redis does not say how it writes to disk. */
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
 * asked. Reads only.
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
  // The deployment promises what was declared, even if Redis is more durable.
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
    at: `${redis.options.host}:${redis.options.port}`,
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
      // An error that Redis answered is a denial; an error of the connection is an outage.
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
 * Returns the durability that the settings give; null if Redis does not report enough. A Redis with snapshots alone can
 * lose minutes of writes. One with `appendfsync no` can lose all that the operating system has not written. Both count
 * as `memory`.
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

// Checks that all nodes of a deployment use the same directory for large payloads.

const MARKER = '.callboard-directory';
/** The length of a UUID as text, in characters. */
const ID_CHARS = 36;

/**
 * Proves that the directory is the one that all nodes of the deployment mount: it has a marker file with an id that the
 * store knows. The first node creates the marker. Throws `invalid_argument` if it is another directory, or cannot be
 * written.
 */
export async function proveDirectory(store: Store, root: string): Promise<void> {
  const key = rootOf(store.namespace);
  const known = await store.read([['HGET', key, 'spill']]);
  const found = await markerOf(root, known[0] === null);
  if (found !== null) await store.read([['HSETNX', key, 'spill', found]]);
  const [expected] = await store.read([['HGET', key, 'spill']]);
  if (found === null || found !== expected)
    throw new CallboardError(
      'invalid_argument',
      'SPILL_DIR: this is not the directory that the other nodes of the deployment use: mount one on all of them',
    );
}

/**
 * Reads the id in the directory's marker; null if there is no marker. `create`: creates the marker if it is missing.
 */
async function markerOf(root: string, create: boolean): Promise<string | null> {
  const path = join(root, MARKER);
  try {
    if (create) {
      await mkdir(root, { recursive: true, mode: 0o700 });
      await createMarker(path);
    }
    const id = await readFile(path, 'utf8');
    return id.length === ID_CHARS ? id : null;
  } catch (error) {
    unlessCode('ENOENT')(error);
    return null;
  }
}

/**
 * Writes the marker under another name and then links it to its own, so that another node that starts at the same time
 * reads a whole id or none.
 */
async function createMarker(path: string): Promise<void> {
  const id = randomUUID();
  const draft = `${path}.${id}`;
  await writeFile(draft, id, { flag: 'wx', mode: 0o600 });
  try {
    await link(draft, path).catch(unlessCode('EEXIST'));
  } finally {
    await rm(draft, { force: true });
  }
}

function unlessCode(expected: string): (error: unknown) => void {
  return (error) => {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    if (code !== expected)
      throw new CallboardError('invalid_argument', `SPILL_DIR: the directory cannot be used (${code})`, {
        cause: error,
      });
  };
}

// Opens the namespace in Redis: schema, partitions, and the secret that signs cursors.

/** The version of the data in Redis. Every change that older nodes would misread increments it. */
export const SCHEMA = 10;

type Namespace = {
  /**
   * The secret that signs the cursors of the deployment. All nodes have the same, so each accepts the others' cursors.
   */
  readonly cursorKey: string;
};

/**
 * Opens the namespace. The first node sets its partitions and its schema, and every later node must have the same.
 * Throws `invalid_argument` if they differ, and then changes nothing.
 */
export async function enterNamespace(store: Store): Promise<Namespace> {
  const root = rootOf(store.namespace);
  const fixed = { schema: SCHEMA, partitions: store.partitions };
  const written = await hold(store, root, { ...fixed, cursor: secret() });
  check(store, written);
  const metas = Array.from({ length: store.partitions }, (_, partition) => store.key(partition, 'meta'));
  for (const meta of await Promise.all(metas.map((key) => hold(store, key, { ...fixed, store: secret() }))))
    check(store, meta);
  const { cursor } = written;
  if (!cursor) throw new CallboardError('internal', 'The namespace could not be read back.');
  return { cursorKey: cursor };
}

/** Sets the fields that are not set yet, and returns all of them. */
async function hold(
  store: Store,
  key: string,
  fields: Readonly<Record<string, string | number>>,
): Promise<Readonly<Record<string, string | null>>> {
  const names = Object.keys(fields);
  const set = Object.entries(fields).map(([name, value]) => ['HSETNX', key, name, value] as const);
  const replies = await store.read([...set, ['HMGET', key, ...names]]);
  const values = replies.at(-1);
  if (!Array.isArray(values)) throw new CallboardError('internal', 'Redis answered HMGET without a list.');
  return Object.fromEntries(names.map((name, i) => [name, typeof values[i] === 'string' ? values[i] : null]));
}

function check({ namespace, partitions }: Store, written: Readonly<Record<string, string | null>>): void {
  const faults: string[] = [];
  if (written['schema'] !== String(SCHEMA))
    faults.push(
      `NAMESPACE: the data of "${namespace}" has schema ${written['schema']}, this version needs schema ${SCHEMA}: choose another namespace`,
    );
  if (written['partitions'] !== String(partitions))
    faults.push(
      `PARTITIONS: the namespace "${namespace}" was created with ${written['partitions']}, not ${partitions}: partitions are fixed for a namespace`,
    );
  if (faults.length > 0) throw new CallboardError('invalid_argument', faults.join('\n'));
}

function secret(): string {
  return randomBytes(32).toString('base64url');
}
