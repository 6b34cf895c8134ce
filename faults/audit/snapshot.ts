/** Reads all keys of a namespace from Redis. All keys of one partition are read at the same moment. */
import { Redis } from 'ioredis';
import { KINDS, type KeyKind } from '../../src/backends/redis/keys.ts';

/** An entry of a STREAM: its id, and its fields as alternating names and values. */
export type Entry = { readonly id: string; readonly fields: readonly string[] };

type Content = {
  readonly HASH: ReadonlyMap<string, string>;
  readonly ZSET: ReadonlyMap<string, number>;
  readonly SET: ReadonlySet<string>;
  readonly STREAM: readonly Entry[];
  readonly LIST: readonly string[];
  readonly STRING: string;
};
type Type = keyof Content;

/**
 * All keys of a partition at one moment. The functions return the keys of a kind, by the part of the name after the
 * kind: the hashes and ids of keys.ts, or an empty text for a kind with a single key. They throw if the kind has
 * another type.
 */
export type Snapshot = {
  /** The tag with which the names of the partition's keys begin. */
  readonly tag: string;
  /** The time of the partition, in epoch milliseconds. */
  readonly now: number;
  /** The number of keys. */
  readonly keys: number;
  /** The names of keys of unknown kinds. */
  readonly strange: readonly string[];
  hashes(kind: KeyKind): ReadonlyMap<string, Content['HASH']>;
  zsets(kind: KeyKind): ReadonlyMap<string, Content['ZSET']>;
  sets(kind: KeyKind): ReadonlyMap<string, Content['SET']>;
  streams(kind: KeyKind): ReadonlyMap<string, Content['STREAM']>;
  lists(kind: KeyKind): ReadonlyMap<string, Content['LIST']>;
  strings(kind: KeyKind): ReadonlyMap<string, Content['STRING']>;
};

export type SnapshotOptions = {
  /** The URLs of the servers that receive writes: one server, or each master of a cluster. */
  readonly urls: readonly string[];
  readonly namespace: string;
  /** The present time, if the backend has a clock of its own. Absent: the time of Redis. */
  readonly now?: number | undefined;
};

/**
 * The maximum number of attempts to read a partition. A new attempt is needed if keys were added or removed since they
 * were listed.
 */
const ATTEMPTS = 50;

const READS: Readonly<Record<Type, (name: string) => string[]>> = {
  HASH: (name) => ['hgetall', name],
  ZSET: (name) => ['zrange', name, '0', '-1', 'WITHSCORES'],
  SET: (name) => ['smembers', name],
  STREAM: (name) => ['xrange', name, '-', '+'],
  LIST: (name) => ['lrange', name, '0', '-1'],
  STRING: (name) => ['get', name],
};

/** Reads the partitions of a namespace. While Redis reads a partition, it answers no other request. */
export async function readSnapshots({ urls, namespace, now }: SnapshotOptions): Promise<readonly Snapshot[]> {
  const snapshots: Snapshot[] = [];
  for (const url of urls) {
    const redis = new Redis(url);
    try {
      const names = await redis.keys(`${literally(`{cb:${namespace}:`)}*`);
      const tags = new Set(names.map((name) => name.slice(0, name.indexOf('}') + 1)));
      for (const tag of tags) snapshots.push(await readPartition(redis, tag, now));
    } finally {
      redis.disconnect();
    }
  }
  return snapshots;
}

/** Returns the pattern that matches only this text. */
function literally(text: string): string {
  return text.replaceAll(/[\\*?[\]]/g, String.raw`\$&`);
}

async function readPartition(redis: Redis, tag: string, now: number | undefined): Promise<Snapshot> {
  const pattern = `${literally(tag)}:*`;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const names = (await redis.keys(pattern)).toSorted();
    const known = names.filter((name) => typeOf(name) !== null);
    const reads = known.map((name) => READS[typeOf(name) ?? 'STRING'](name));
    // One transaction, so that no call of a relay runs between two reads.
    const replies = await redis.multi([['time'], ['keys', pattern], ...reads]).exec();
    const [time, there, ...contents] = (replies ?? []).map(([error, reply]) => {
      if (error) throw error;
      return reply;
    });
    if ((there as string[]).toSorted().join('\n') !== names.join('\n')) continue;
    const [seconds, micros] = (time as string[]).map(Number);
    const serverTime = (seconds ?? 0) * 1000 + Math.floor((micros ?? 0) / 1000);
    return snapshotOf({ tag, names, known, contents, time: now ?? serverTime });
  }
  throw new Error(`keys of ${tag} came and went during each of ${ATTEMPTS} readings`);
}

type Read = {
  readonly tag: string;
  readonly names: readonly string[];
  readonly known: readonly string[];
  readonly contents: readonly unknown[];
  readonly time: number;
};

function snapshotOf({ tag, names, known, contents, time }: Read): Snapshot {
  const byKind = new Map<string, Map<string, unknown>>();
  for (const [i, name] of known.entries()) {
    const [kind, part] = partsOf(name);
    const keys = byKind.get(kind) ?? new Map<string, unknown>();
    byKind.set(kind, keys);
    keys.set(part, DECODERS[typeOf(name) ?? 'STRING'](contents[i]));
  }
  const keysOf = <T extends Type>(type: T) => {
    return (kind: KeyKind): ReadonlyMap<string, Content[T]> => {
      if (typeOfKind(kind) !== type) throw new Error(`${kind} is no ${type}`);
      return (byKind.get(kind) ?? new Map()) as ReadonlyMap<string, Content[T]>;
    };
  };
  const hashes = keysOf('HASH');
  return {
    tag,
    // The clock of a partition is never behind the time that a heartbeat stored.
    now: Math.max(time, Number(hashes('meta').get('')?.get('floor') ?? 0)),
    keys: names.length,
    strange: names.filter((name) => typeOf(name) === null),
    hashes,
    zsets: keysOf('ZSET'),
    sets: keysOf('SET'),
    streams: keysOf('STREAM'),
    lists: keysOf('LIST'),
    strings: keysOf('STRING'),
  };
}

const DECODERS: { readonly [T in Type]: (reply: unknown) => Content[T] } = {
  HASH: (reply) => new Map(Array.isArray(reply) ? pairsOf(reply) : Object.entries(reply as Record<string, string>)),
  ZSET: (reply) => new Map(pairsOf(reply as string[]).map(([member, score]) => [member, Number(score)])),
  SET: (reply) => new Set(reply as string[]),
  STREAM: (reply) => (reply as [string, string[]][]).map(([id, fields]) => ({ id, fields })),
  LIST: (reply) => reply as string[],
  STRING: (reply) => String(reply),
};

function pairsOf(flat: readonly string[]): [string, string][] {
  return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i] ?? '', flat[2 * i + 1] ?? '']);
}

/** Splits the name of a key after its tag into its kind and the rest. */
function partsOf(name: string): [kind: string, part: string] {
  const rest = name.slice(name.indexOf('}') + 2);
  const end = rest.indexOf(':');
  return end < 0 ? [rest, ''] : [rest.slice(0, end), rest.slice(end + 1)];
}

/** Returns the type of a key of this kind; null for an unknown kind, and for a kind that names no key. */
function typeOf(name: string): Type | null {
  const [kind] = partsOf(name);
  return Object.hasOwn(KINDS, kind) ? typeOfKind(kind as KeyKind) : null;
}

function typeOfKind(kind: KeyKind): Type | null {
  const type = /^[A-Z]+/.exec(KINDS[kind].holds)?.[0] ?? '';
  return Object.hasOwn(READS, type) ? (type as Type) : null;
}
