/** Waits until the replicas of Redis have the fence of a partition, so that a failover does not take its owner back. */
import type { Clock, Log } from '../../core/ports.ts';
import type { Client } from '../redis/client.ts';
import type { PartitionKeys } from './keys.ts';

/** How long a change of owners waits for replicas, in milliseconds. */
const WAIT_MS = 500;
/** For how long the number of replicas is believed, in milliseconds. */
const COUNTED_MS = 2_000;
/** For how long no change of owners waits after one for which replicas were too far behind, in milliseconds. */
const BEHIND_MS = 10_000;

type ReplicasOptions = {
  readonly client: Client;
  /** Creates the connection that waits, because nothing else can use it meanwhile. Called if there are replicas. */
  readonly connect: () => Client;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Log;
  /** Absent: WAIT_MS. */
  readonly waitMs?: number | undefined;
};

/** The keys of a partition by which the Redis is found that has them. */
type FenceKeys = Pick<PartitionKeys, 'fence' | 'map'>;

/** The replicas of the Redis of a slot group. `until`: until when the number is believed. */
type Count = { readonly replicas: number; readonly until: number };

export class Replicas {
  readonly #options: ReplicasOptions;
  readonly #counts = new Map<string, Count>();
  #waiting: Promise<Client> | null = null;
  #behindUntil = -Infinity;
  #isWarned = false;

  constructor(options: ReplicasOptions) {
    this.#options = options;
  }

  /**
   * Resolves once all replicas that follow have the fence, or after a while. Then the owner goes on without them: an
   * owner whose fence a failover takes back sets it again, so only its death at the same time loses something, and
   * without an owner each call of these users would wait for the slowest replica.
   */
  async have(keys: FenceKeys): Promise<void> {
    const { clock, log } = this.#options;
    if (clock.monotonic() < this.#behindUntil) return;
    try {
      const replicas = await this.#count(keys);
      if (replicas === 0 || (await this.#wait(keys, replicas)) >= replicas) {
        this.#isWarned = false;
        return;
      }
      this.#behind({});
    } catch (error) {
      log.debug({ err: error }, 'replicas of Redis were not asked');
      this.#behind({ err: error });
    }
  }

  close(): void {
    void this.#waiting?.then((client) => client.disconnect());
  }

  #behind(fields: Record<string, unknown>): void {
    const { clock, log } = this.#options;
    this.#behindUntil = clock.monotonic() + BEHIND_MS;
    if (!this.#isWarned)
      log.warn(fields, 'replicas of Redis are behind: a failover now may take back who owns some users');
    this.#isWarned = true;
  }

  /** Returns how many replicas follow the Redis that has the keys. */
  async #count({ fence, map }: FenceKeys): Promise<number> {
    const { client, clock } = this.#options;
    const known = this.#counts.get(map);
    if (known && clock.monotonic() < known.until) return known.replicas;
    // The key leads the question to the right node of a cluster.
    const replies = await client.pipeline().exists(fence).info('replication').exec();
    // One that has acknowledged nothing since it copied the data does not follow yet.
    const replicas = String(replyAt(replies, 1)).match(/^slave\d+:.*state=online,offset=[1-9]/gm)?.length ?? 0;
    this.#counts.set(map, { replicas, until: clock.monotonic() + COUNTED_MS });
    return replicas;
  }

  /** Returns how many replicas have what Redis had written when this was called. */
  async #wait({ fence }: FenceKeys, replicas: number): Promise<number> {
    const { connect, waitMs = WAIT_MS } = this.#options;
    this.#waiting ??= opened(connect());
    const client = await this.#waiting;
    // In a cluster this call learns where the key is now. WAIT has none, so it follows a call that does.
    await client.exists(fence);
    // WAIT waits for what was written before the last call of its own connection.
    const replies = await client.pipeline().exists(fence).wait(replicas, waitMs).exec();
    return Number(replyAt(replies, 1));
  }
}

async function opened(client: Client): Promise<Client> {
  // A failure shows at the first call, and the client tries again by itself.
  await client.connect().catch(() => undefined);
  return client;
}

type Replies = readonly (readonly [error: Error | null, reply: unknown])[] | null;

function replyAt(replies: Replies, at: number): unknown {
  for (const [error] of replies ?? []) if (error) throw error;
  return replies?.[at]?.[1];
}
