/**
 * The live feed of command events over all nodes. A node publishes only events that have listeners on some node, and at
 * most COMMAND_EVENTS_PER_SECOND for each filter.
 */
import { matchesAny } from '../auth/patterns.ts';
import type { Backend } from '../backend.ts';
import { canonicalJson } from '../json.ts';
import { COMMAND_EVENTS_PER_SECOND, LISTENING_ANNOUNCE_MS, LISTENING_MS } from '../limits.ts';
import type { Cancel, Clock, Crypto } from '../ports.ts';
import type { Holdings } from '../shares/shares.ts';
import type { Command, Outcome } from './command.ts';
import type { CommandEvent, CommandEventFilter, CommandEventStage, Listening } from './command-event.ts';

/**
 * A filter that has listeners on this node, on other nodes, or both. `others`: for each other node that has listeners,
 * the time at which its announcement expires.
 */
type Feed = {
  readonly key: string;
  readonly filter: CommandEventFilter;
  readonly sampler: EventSampler;
  readonly others: Map<string, number>;
  /** The number of listeners of this node. */
  listeners: number;
  /** The number of this node's listeners of each user. */
  readonly holders: Map<string, number>;
};

type FeedDeps = {
  readonly nodeId: string;
  readonly backend: Pick<Backend, 'bus' | 'capabilities'>;
  readonly clock: Clock;
  readonly crypto: Pick<Crypto, 'sha256'>;
};

/**
 * Publishes the events of this node's commands to the feeds that have listeners, and serves the listeners of this node.
 */
export class CommandEvents {
  readonly #parts: FeedDeps;
  readonly #feeds = new Map<string, Feed>();
  #announcing: Cancel | null = null;
  /**
   * Until this time (epoch milliseconds), a new announcement of another node may not be the first one: an earlier one
   * may have been lost, and with it events that this node did not publish.
   */
  #lapsedUntil = -Infinity;

  constructor(parts: FeedDeps) {
    this.#parts = parts;
    const { backend, nodeId } = parts;
    if (backend.capabilities.shared)
      backend.bus.subscribe(
        'listening',
        (listening) => {
          if (listening.nodeId !== nodeId) this.#note(listening);
        },
        () => (this.#lapsedUntil = parts.clock.now() + LISTENING_ANNOUNCE_MS),
      );
  }

  /**
   * Publishes an event to all feeds whose filter matches it. `command`: the record after the event. Costs one
   * comparison if there are no feeds.
   */
  emit(stage: CommandEventStage, command: Command): void {
    if (this.#feeds.size === 0) return;
    const at = this.#parts.clock.now();
    for (const feed of this.#feeds.values()) {
      if (!matches(feed.filter, stage, command) || !this.#isWanted(feed, at)) continue;
      const missed = feed.sampler.take(at);
      if (missed === null) continue;
      this.#parts.backend.bus.publish(`events:${feed.key}`, { stage, command, at, missed });
    }
  }

  /** Returns the key of a filter. Listeners with the same key receive the same events. */
  keyOf(filter: CommandEventFilter): string {
    return this.#parts.crypto.sha256(canonicalJson(filter));
  }

  /**
   * Calls `push` with each matching event from now on, at most COMMAND_EVENTS_PER_SECOND over all nodes. Each filter
   * counts once in the share `feeds` of the user who listens: throws `share_exceeded` or `store_full` if the share has
   * no room.
   */
  listen(filter: CommandEventFilter, push: (event: CommandEvent) => void, holdings: Holdings): Cancel {
    const key = this.keyOf(filter);
    const feed = this.#feeds.get(key) ?? newFeed(key, filter);
    const { userId: holder } = holdings;
    const before = feed.holders.get(holder) ?? 0;
    if (before === 0) holdings.claim('feeds', 1);
    feed.holders.set(holder, before + 1);
    this.#feeds.set(key, feed);
    if (feed.listeners++ === 0) this.#announce();
    const sampler = new EventSampler();
    const cancel = this.#parts.backend.bus.subscribe(
      `events:${key}`,
      (event) => {
        const missed = sampler.take(this.#parts.clock.now(), event.missed);
        if (missed !== null) push({ ...event, missed });
      },
      () => sampler.lost(),
    );
    let open = true;
    return () => {
      if (!open) return;
      open = false;
      cancel();
      const left = (feed.holders.get(holder) ?? 1) - 1;
      if (left > 0) feed.holders.set(holder, left);
      else {
        feed.holders.delete(holder);
        holdings.release('feeds', 1);
      }
      if (--feed.listeners > 0) return;
      if (feed.others.size === 0) this.#feeds.delete(key);
      this.#announce();
    };
  }

  /** Stops announcing the filters of this node's listeners. */
  close(): void {
    this.#announcing?.();
    this.#announcing = null;
  }

  #own(): readonly Feed[] {
    return [...this.#feeds.values()].filter(({ listeners }) => listeners > 0);
  }

  /**
   * Whether the feed has listeners on this node or on others. Announcements that have expired do not count. A feed
   * without listeners is removed.
   */
  #isWanted(feed: Feed, now: number): boolean {
    if (feed.listeners > 0) return true;
    for (const [nodeId, until] of feed.others) if (until <= now) feed.others.delete(nodeId);
    if (feed.others.size === 0) this.#feeds.delete(feed.key);
    return feed.others.size > 0;
  }

  /**
   * Announces to the other nodes which filters have listeners here. Announces them again at each change, and every
   * LISTENING_ANNOUNCE_MS as long as there are listeners.
   */
  #announce(): void {
    const { backend, clock } = this.#parts;
    if (!backend.capabilities.shared) return;
    const own = this.#publishOwn();
    if (own > 0) this.#announcing ??= clock.every(LISTENING_ANNOUNCE_MS, () => this.#publishOwn());
    else this.close();
  }

  #publishOwn(): number {
    const feeds = this.#own().map(({ key, filter }) => ({ key, filter }));
    this.#parts.backend.bus.publish('listening', { nodeId: this.#parts.nodeId, feeds });
    return feeds.length;
  }

  #note({ nodeId, feeds }: Listening): void {
    const wanted = new Set(feeds.map(({ key }) => key));
    for (const feed of this.#feeds.values()) {
      if (wanted.has(feed.key)) continue;
      feed.others.delete(nodeId);
      if (feed.listeners === 0 && feed.others.size === 0) this.#feeds.delete(feed.key);
    }
    const now = this.#parts.clock.now();
    const until = now + LISTENING_MS;
    for (const { key, filter } of feeds) {
      const feed = this.#feeds.get(key) ?? newFeed(key, filter);
      if (now <= this.#lapsedUntil && !feed.others.has(nodeId)) feed.sampler.lost();
      feed.others.set(nodeId, until);
      this.#feeds.set(key, feed);
    }
  }
}

function newFeed(key: string, filter: CommandEventFilter): Feed {
  return { key, filter, sampler: new EventSampler(), others: new Map(), listeners: 0, holders: new Map() };
}

function matches(filter: CommandEventFilter, stage: CommandEventStage, command: Command): boolean {
  const { userId, clientId, action, clientType, outcomes, seen } = filter;
  return (
    (userId === null || command.userId === userId) &&
    (clientId === null || command.clientId === clientId) &&
    (action === null || command.action === action) &&
    (clientType === null || command.clientType === clientType) &&
    (seen === undefined || matchesAny(seen, command.action)) &&
    (outcomes === null || hasEnded(stage, command, outcomes))
  );
}

function hasEnded(stage: CommandEventStage, { outcome }: Command, outcomes: readonly Outcome[]): boolean {
  return (stage === 'ended' || stage === 'late') && outcome !== null && outcomes.includes(outcome);
}

// Drops the events beyond a rate, and counts the dropped ones.

const SECOND_MS = 1000;

/** Lets the first COMMAND_EVENTS_PER_SECOND events of each second pass, and counts the others. */
class EventSampler {
  #since = -Infinity;
  #passed = 0;
  #missed = 0;

  /**
   * Counts one event as dropped, if none is counted yet. Called when events may have been lost and their number is
   * unknown.
   */
  lost(): void {
    this.#missed = Math.max(1, this.#missed);
  }

  /**
   * Decides whether an event passes. Returns null if the event is dropped. Otherwise returns how many events were
   * dropped since the last one that passed. `missed`: how many were dropped before they reached this sampler, which
   * count too.
   */
  take(now: number, missed = 0): number | null {
    if (now >= this.#since + SECOND_MS || now < this.#since) {
      this.#since = now;
      this.#passed = 0;
    }
    if (this.#passed === COMMAND_EVENTS_PER_SECOND) {
      this.#missed += missed + 1;
      return null;
    }
    this.#passed++;
    const before = this.#missed + missed;
    this.#missed = 0;
    return before;
  }
}
