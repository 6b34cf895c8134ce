/** Reads everything that a Redis namespace holds, so that a test can compare two namespaces. */
import { fieldsOf, type Reply } from '../../../src/backends/redis/types.ts';
import { decodeBlocks, type StoredMessage } from '../../../src/backends/redis/history-rows.ts';
import type { RedisBench } from '../../contract/kit/redis-bench.ts';

/**
 * Matches the names of keys that are not compared, because their values contain times or random ids of the acts that
 * wrote them. No read of commands returns these values.
 */
const OWN = /:(meta|node|nodes|mailbox|mark|conn\w*)(:|$)/;

const READS: Readonly<Record<string, readonly [command: string, ...rest: string[]]>> = {
  string: ['GET'],
  hash: ['HGETALL'],
  set: ['SMEMBERS'],
  zset: ['ZRANGE', '0', '-1', 'WITHSCORES'],
  stream: ['XRANGE', '-', '+'],
};

/** Returns every key of the namespace with its value. The names of the keys are without the namespace. */
export async function everything({ store }: RedisBench): Promise<Record<string, unknown>> {
  const tag = store.key(0, 'meta').slice(0, -'meta'.length);
  const [found] = await store.read([['KEYS', `${tag}*`]]);
  const names = [found]
    .flat()
    .map(String)
    .filter((name) => !OWN.test(name))
    .sort();
  const types = await store.read(names.map((name) => ['TYPE', name]));
  const ttls = await store.read(names.map((name) => ['PTTL', name]));
  const values = await store.read(
    names.map((name, i) => {
      const [command, ...rest] = READS[String(types[i])] ?? ['GET'];
      // `streamage`: only the members are compared, because their scores depend on keys that are not compared.
      return [command, name, ...(name.includes(':streamage:') ? rest.slice(0, 2) : rest)];
    }),
  );
  const held: Record<string, unknown> = {};
  for (const [i, name] of names.entries()) {
    // Streams: only the rows are compared, because the ids of entries depend on the order of arrival.
    const value = types[i] === 'stream' ? rowsOf(values[i]) : values[i];
    const text = JSON.stringify(value)
      .replace(/(\d{13}:)\d{12}/g, '$1')
      .replace(/(completed|acknowledged)((?:\\u0000\d{13}){2}\\u0000)\d+/g, '$1$2');
    const told: unknown = JSON.parse(text);
    const inOrder = types[i] === 'set' && Array.isArray(told) ? told.map(String).sort() : told;
    held[name.slice(tag.length)] = { value: inOrder, expires: Number(ttls[i]) > 0 };
  }
  return { ...held, shares: await sharesOf(store) };
}

/**
 * Returns the rows of a stream of history without their blocks. How rows are grouped into blocks depends on which acts
 * were sent together.
 */
function rowsOf(entries: Reply | undefined): readonly StoredMessage[] {
  return decodeBlocks({ userId: '', suffix: '' }, entries).flatMap(({ rows }) => rows);
}

/** Returns the fields of the meta key that count users' shares. Its other fields are not compared. */
async function sharesOf(store: RedisBench['store']): Promise<readonly (readonly [string, string])[]> {
  const [meta = null] = await store.read([['HGETALL', store.key(0, 'meta')]]);
  return [...fieldsOf(meta)].filter(([name]) => /^[a-z]$|:.{22}$/.test(name)).sort();
}
