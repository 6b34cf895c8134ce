/**
 * Waits until the replicas of Redis have a partition's new fence, so that a failover does not undo the change of owner.
 */
import type { Clock, Log } from '../../core/ports.ts';
import type { Client } from '../redis/client.ts';
import type { PartitionKeys } from './keys.ts';

/** How long a change of owner waits for replicas, in milliseconds. */
const WAIT_MS = 500;
/** How long the number of replicas is cached, in milliseconds. */
const COUNTED_MS = 2_000;
/** After replicas were too far behind: how long changes of owner do not wait for replicas, in milliseconds. */
const BEHIND_MS = 10_000;

type ReplicasOptions = {
  readonly client: Client;
  /** Creates the connection for WAIT, which blocks its connection. Called only if there are replicas. */
  readonly connect: () => Client;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Log;
  /** Default: WAIT_MS. */
  readonly waitMs?: number | undefined;
};

/** Keys of a partition, used to find the Redis that holds them. */
type FenceKeys = Pick<PartitionKeys, 'fence' | 'map'>;

/**
 * The number of replicas of the Redis of a slot group. `until`: when the number has to be read again, by elapsed time.
 */
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
   * Resolves once all connected replicas have the fence, or after `waitMs`. The owner then goes on without the rest.
   * The risk is small: if a failover undoes the fence, its owner sets the fence again, so data is lost only if the
   * owner dies at the same time. Waiting longer would make each call of these users wait for the slowest replica.
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

  /** Returns the number of replicas that follow the Redis with these keys. */
  async #count({ fence, map }: FenceKeys): Promise<number> {
    const { client, clock } = this.#options;
    const known = this.#counts.get(map);
    if (known && clock.monotonic() < known.until) return known.replicas;
    // The call of EXISTS sends the pipeline to the node that holds the key in a cluster.
    const replies = await client.pipeline().exists(fence).info('replication').exec();
    // A replica that has acknowledged nothing since it copied the data (offset 0) is not counted.
    const replicas = String(replyAt(replies, 1)).match(/^slave\d+:.*state=online,offset=[1-9]/gm)?.length ?? 0;
    this.#counts.set(map, { replicas, until: clock.monotonic() + COUNTED_MS });
    return replicas;
  }

  /** Returns how many replicas have everything that Redis had written when this method was called. */
  async #wait({ fence }: FenceKeys, replicas: number): Promise<number> {
    const { connect, waitMs = WAIT_MS } = this.#options;
    this.#waiting ??= opened(connect());
    const client = await this.#waiting;
    // In a cluster, this call finds the node that now holds the key. WAIT has no key, so it must follow a call that has
    // one.
    await client.exists(fence);
    // WAIT waits for the writes that came before the last call on its own connection.
    const replies = await client.pipeline().exists(fence).wait(replicas, waitMs).exec();
    return Number(replyAt(replies, 1));
  }
}

async function opened(client: Client): Promise<Client> {
  // A failure is reported by the first call, and the client reconnects by itself.
  await client.connect().catch(() => undefined);
  return client;
}

type Replies = readonly (readonly [error: Error | null, reply: unknown])[] | null;

function replyAt(replies: Replies, at: number): unknown {
  for (const [error] of replies ?? []) if (error) throw error;
  return replies?.[at]?.[1];
}
