import type { Backend } from '../../core/backend.ts';
import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { createRedisBus } from './bus.ts';
import { createRedisSites } from './sites.ts';
import { createRedisSessions } from './sites-sessions.ts';
import { createRedisDedup } from './dedup.ts';
import { createRedisHistory } from './history.ts';
import { createRedisCommands } from './commands.ts';
import { createRedisInspector } from './inspector.ts';
import { createRedisNodes } from './nodes.ts';
import { createRedisWaiters } from './waiters.ts';
import { createRedisConnections } from './connections.ts';
import { createRedisContexts } from './contexts.ts';
import type { Client } from './wire.ts';
import type { Store } from './store.ts';

/** What every room over Redis is made of. */
export type RedisParts = {
  readonly store: Store;
  readonly log: Log;
  readonly sha256: (text: string) => string;
  /** Timers of this machine. */
  readonly system: Clock;
  /** A connection of its own, of the same kind as the store's: for blocking reads and for subscriptions. Whoever takes it closes it. */
  readonly connect: (purpose: 'mailbox' | 'bus') => Client;
  /** How long history keeps a message, milliseconds, and how many of a stream. */
  readonly retentionMs: number;
  readonly streamMessages: number;
  /** Streams of one user at most; STREAMS_PER_USER where absent. */
  readonly streamsPerUser?: number | undefined;
  /** How long a node counts as alive after a beat, milliseconds. */
  readonly leaseMs: number;
};

/** The rooms that stand over Redis. */
export function createRedisRooms(parts: RedisParts): Partial<Backend> {
  const nodes = createRedisNodes(parts);
  const bus = createRedisBus(parts);
  return {
    nodes,
    waiters: createRedisWaiters(parts),
    capabilities: { shared: true, exactDedupCounters: true, cheapStreamSummaries: true },
    connections: createRedisConnections(parts),
    contexts: createRedisContexts(parts),
    commands: createRedisCommands(parts),
    inspector: createRedisInspector(parts),
    history: createRedisHistory(parts),
    dedup: createRedisDedup(parts),
    sites: createRedisSites(parts),
    sessions: createRedisSessions(parts),
    bus,
    /** Events of other nodes are heard. Waits while Redis is away. */
    ready: () => bus.ready(),
    async close() {
      bus.close();
      await nodes.close();
    },
  };
}
