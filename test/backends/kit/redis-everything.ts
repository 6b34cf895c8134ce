import type { RedisBench } from '../../contract/kit/redis-bench.ts';

/** Values that an act takes from its own clock or random source, and that no reader of commands sees. */
const OWN = /:(meta|node|nodes|mailbox|mark|conn\w*)(:|$)/;

const READS: Readonly<Record<string, readonly [command: string, ...rest: string[]]>> = {
  string: ['GET'],
  hash: ['HGETALL'],
  set: ['SMEMBERS'],
  zset: ['ZRANGE', '0', '-1', 'WITHSCORES'],
  stream: ['XRANGE', '-', '+'],
};

/** Every key and its value, by its name without the namespace. */
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
      // The order of last writes depends on these values.
      return [command, name, ...(name.includes(':streamage:') ? rest.slice(0, 2) : rest)];
    }),
  );
  const held: Record<string, unknown> = {};
  for (const [i, name] of names.entries()) {
    // The numbers of waits only show in which order they arrived.
    const text = JSON.stringify(values[i]).replace(/(\d{15}:)\d+:/g, '$1');
    const told: unknown = JSON.parse(text);
    const inOrder = types[i] === 'set' && Array.isArray(told) ? told.map(String).sort() : told;
    held[name.slice(tag.length)] = { value: inOrder, expires: Number(ttls[i]) > 0 };
  }
  return held;
}
