/**
 * Watches relays that own partitions: the owner of each user, and the takeovers, handovers and snapshots in progress.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { nodeOf, readFence } from '../../../src/backends/owned/fence.ts';
import { Keys } from '../../../src/backends/owned/keys.ts';
import { readEnvelope } from '../../../src/backends/owned/mail.ts';
import { createPlacement, type Placement } from '../../../src/backends/owned/placement.ts';
import { ownedNamespace } from '../../../src/backends/redis/keys.ts';
import { isRecord, parsedJson } from '../../../src/core/json.ts';
import type { Work } from '../log/events.ts';

/**
 * Work in progress. `by`: the node of the relay that owns the partition at that moment. `step`: for a handover, the
 * note that was just sent. There are three: before the next owner reads the partition, before the fence moves, and
 * after that.
 */
export type Moment = {
  readonly work: Work;
  readonly by: string;
  readonly step: 'follow' | 'ready' | 'yours' | null;
  /**
   * Resolves with whether the work was unfinished when this node was killed. It must be called right after the kill.
   */
  readonly wasCut: (victim: string) => Promise<boolean>;
};

/** The relays that take part in a call in progress, besides its owner. */
export type CallInProgress = { readonly user: string; readonly client: string; readonly relay: string };

/** A note about partitions from one process to another one, or to all. */
type Note = { readonly from: string; readonly to: string | null; readonly kind: string; readonly partition: number };

/** The interval at which fences are read, in milliseconds. */
const LOOK_MS = 100;
/** How long a note that was sent before a kill may take to arrive, in milliseconds. */
const UNDER_WAY_MS = 100;

export class OwnerWatch implements AsyncDisposable {
  /** The calls in progress, which the driver of the run adds and removes. */
  readonly calls = new Set<CallInProgress>();
  readonly #redis: Redis;
  readonly #notes: Redis;
  readonly #keys: Keys;
  readonly #placement: Placement;
  #fences: readonly (string | null)[] = [];
  /** When each partition was last announced by its owner, and the owner's node. */
  readonly #announced = new Map<number, { readonly at: number; readonly node: string }>();
  #onMoment: (moment: Moment) => void = () => {};
  #isClosed = false;
  readonly #looking: Promise<void>;

  private constructor({ redis, notes, keys }: { redis: Redis; notes: Redis; keys: Keys }) {
    this.#redis = redis;
    this.#notes = notes;
    this.#keys = keys;
    this.#placement = createPlacement(keys.division.partitions, (userId) => userId);
    // Errors are ignored: a question to Redis has no answer if Redis is away or the run ends.
    notes.on('pmessage', (_pattern, channel: string, text: string) => void this.#heard(channel, text).catch(() => {}));
    this.#looking = this.#look();
  }

  /**
   * Starts to watch the relays of a namespace over one Redis. Resolves after the relays have claimed their partitions.
   */
  static async start(url: string, namespace: string): Promise<OwnerWatch> {
    const redis = new Redis(url);
    const named = ownedNamespace(namespace);
    const [partitions, groups] = ((await redis.get(new Keys(named, ONE_GROUP).ofGroup(0).map)) ?? '').split(' ');
    if (groups !== '1') throw new Error('the partitions of the relays are not in one slot group');
    const keys = new Keys(named, { ...ONE_GROUP, partitions: Number(partitions) });
    // Makes Redis notify of data appended to lists, which are the pieces of snapshots.
    await redis.config('SET', 'notify-keyspace-events', 'Kl');
    const notes = redis.duplicate();
    await notes.psubscribe(`${keys.mailToAll}*`, `${LISTS}${keys.of(0).snapshot('').replace(/0:$/, '')}*`);
    return new OwnerWatch({ redis, notes, keys });
  }

  /**
   * Returns the node that owns a user, as of the last read. Null: no node does, or the owner has ended and no other
   * node has noticed it.
   */
  ownerOf(user: string): string | null {
    return this.#nodeIn(this.#placement.ofUser(user));
  }

  /** Resolves with the next moment that fits; null if there is none in this time. */
  async next(fits: (moment: Moment) => boolean, withinMs: number): Promise<Moment | null> {
    const { promise, resolve } = Promise.withResolvers<Moment | null>();
    const timer = setTimeout(() => resolve(null), withinMs);
    this.#onMoment = (moment) => {
      if (fits(moment)) resolve(moment);
    };
    const found = await promise;
    clearTimeout(timer);
    this.#onMoment = () => {};
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#looking;
    this.#notes.disconnect();
    this.#redis.disconnect();
  }

  async #look(): Promise<void> {
    while (!this.#isClosed) {
      await this.#readFences().catch(() => {});
      await sleep(LOOK_MS);
    }
  }

  async #readFences(): Promise<void> {
    const { partitions } = this.#keys.division;
    const all = Array.from({ length: partitions }, (_, partition) => this.#keys.of(partition).fence);
    this.#fences = await this.#redis.mget(all);
  }

  #nodeIn(partition: number): string | null {
    const process = readFence(this.#fences[partition] ?? null)?.process;
    return process === undefined || process === '-' ? null : nodeOf(process);
  }

  async #heard(channel: string, text: string): Promise<void> {
    if (channel.startsWith(LISTS)) return this.#pushed(channel.slice(LISTS.length), text);
    for (const note of this.#notesIn(channel, text)) await this.#noted(note);
  }

  #pushed(key: string, event: string): void {
    const partition = Number(/:snap:(\d+):/.exec(key)?.[1]);
    const by = this.#nodeIn(partition);
    if (event !== 'rpush' || by === null) return;
    // A completed snapshot has no expiry.
    const wasCut = async (): Promise<boolean> => (await this.#redis.pttl(key)) >= 0;
    this.#onMoment({ work: 'snapshot', by, step: null, wasCut });
  }

  #notesIn(channel: string, text: string): readonly Note[] {
    const [, sender = '', json = ''] = /^(\S+) (\{.*)$/.exec(text) ?? [];
    if (sender !== '') return noteIn(sender, null, json);
    const { from, messages } = readEnvelope(text) ?? { from: '', messages: [] };
    const to = channel.slice(this.#keys.mailToAll.length + 1);
    return messages.flatMap((message) => (message.kind === 'note' ? noteIn(from, to, message.text) : []));
  }

  async #noted({ from, to, kind, partition }: Note): Promise<void> {
    if (kind === 'owns') {
      this.#announced.set(partition, { at: performance.now(), node: nodeOf(from) });
      if ((await this.#orphans()) === 0) return;
      const wasCut = async (): Promise<boolean> => (await this.#orphans()) > 0;
      return this.#onMoment({ work: 'takeover', by: nodeOf(from), step: null, wasCut });
    }
    if (to === null || (kind !== 'follow' && kind !== 'ready' && kind !== 'yours')) return;
    const [giver, receiver] = kind === 'ready' ? [to, from] : [from, to];
    const began = performance.now();
    const wasCut = async (victim: string): Promise<boolean> => {
      const killed = performance.now();
      await sleep(UNDER_WAY_MS);
      const { at, node } = this.#announced.get(partition) ?? { at: -Infinity, node: '' };
      const isOver = at > began && node === nodeOf(receiver) && (at < killed || node === victim);
      return !isOver;
    };
    this.#onMoment({ work: 'handover', by: nodeOf(kind === 'yours' ? receiver : giver), step: kind, wasCut });
  }

  /** Returns the number of partitions whose owner is a process without a lease. */
  async #orphans(): Promise<number> {
    await this.#readFences();
    const { live } = this.#keys.ofGroup(0);
    const owners = this.#fences.map((text) => readFence(text)?.process ?? '-');
    const processes = [...new Set(owners)];
    const leases = await this.#redis.mget(processes.map(live));
    const dead = new Set(processes.filter((_, i) => leases[i] === null));
    return owners.filter((process) => dead.has(process)).length;
  }
}

const ONE_GROUP = { partitions: 1, groups: 1, digest: '' };
/** The prefix of the channels on which Redis notifies of changes to keys. */
const LISTS = '__keyspace@0__:';

function noteIn(from: string, to: string | null, json: string): readonly Note[] {
  const note = parsedJson(json);
  if (!isRecord(note) || typeof note['kind'] !== 'string' || typeof note['partition'] !== 'number') return [];
  return [{ from, to, kind: note['kind'], partition: note['partition'] }];
}
