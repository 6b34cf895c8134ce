/** Finds keys that a run left in Redis although they should have expired. */
import { Redis } from 'ioredis';
import { OWNED_KINDS } from '../../../src/backends/owned/keys.ts';
import { KINDS } from '../../../src/backends/redis/keys.ts';

/** The kinds of keys that need no expiry: they are removed with their content or their node, or never. */
const ALLOWED: ReadonlySet<string> = new Set(
  [
    ...Object.entries(KINDS).map(([kind, { ends }]) => ({ kind, ends })),
    ...Object.entries(OWNED_KINDS).map(([kind, ends]) => ({ kind, ends })),
  ].flatMap(({ kind, ends }) => (ends === 'ttl' ? [] : [kind])),
);
/** The number of keys that Redis examines in one step of a scan. */
const SCAN = 1000;

/** Returns the keys of a Redis that should expire but have no expiry, and keys of unknown kinds. */
export async function leftovers(url: string): Promise<readonly string[]> {
  const redis = new Redis(url);
  const found: string[] = [];
  try {
    let cursor = '0';
    do {
      const [next, keys] = await redis.scan(cursor, 'COUNT', SCAN);
      const ttls = await Promise.all(keys.map((key) => redis.pttl(key)));
      found.push(...keys.filter((key, index) => ttls[index] === -1 && !ALLOWED.has(kindOf(key))));
      cursor = next;
    } while (cursor !== '0');
  } finally {
    redis.disconnect();
  }
  return found;
}

/** Returns the kind of a key: the word after its tag. A namespace may contain colons. */
function kindOf(key: string): string {
  return /\}:([^:]*)/.exec(key)?.[1] ?? '';
}
