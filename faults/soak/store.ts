/** Starts the Redis of a soak run, and measures its content. */
import { Redis } from 'ioredis';
import { auditNamespace } from '../audit/audit.ts';
import { startRedis } from '../../test/kit/redis.ts';

/** The size of a run's Redis: the number of its keys, and its memory in bytes. */
export type StoreSize = { readonly keys: number; readonly bytes: number };

export interface SoakStore extends AsyncDisposable {
  readonly url: string;
  size(): Promise<StoreSize>;
  /** Compares all counters of a namespace with the stored data. Returns a sentence for each difference. */
  audit(namespace: string): Promise<readonly string[]>;
}

/** Starts a Redis that persists nothing. Disposal stops the process and removes its folder. */
export async function startStore(): Promise<SoakStore> {
  const server = await startRedis();
  const client = new Redis(server.url);
  return {
    url: server.url,
    async size() {
      const [keys, memory] = await Promise.all([client.dbsize(), client.info('memory')]);
      return { keys, bytes: Number(/^used_memory:(\d+)/m.exec(memory)?.[1] ?? NaN) };
    },
    audit: async (namespace) => (await auditNamespace({ urls: [server.url], namespace })).wrong,
    async [Symbol.asyncDispose]() {
      client.disconnect();
      await server.stop();
    },
  };
}
