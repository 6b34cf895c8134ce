import type { Backend } from '../../core/backend.ts';
import { createRedisBus } from './bus/bus.ts';
import { createRedisSites } from './sites/store.ts';
import { createRedisSessions } from './sites/sessions.ts';
import { createRedisDedup } from './dedup/store.ts';
import { createRedisHistory } from './history/store.ts';
import { createHeldCommands } from './commands/held.ts';
import { createRedisCommands } from './commands/store.ts';
import { createRedisInspector } from './inspector/store.ts';
import { createRedisNodes } from './nodes/store.ts';
import { createRedisWaiters } from './waiters/store.ts';
import { createRedisConnections } from './connections/store.ts';
import { createRedisContexts } from './contexts/store.ts';
import type { RedisParts } from './parts.ts';

/** The rooms that stand over Redis. */
export function createRedisRooms(parts: RedisParts): Partial<Backend> {
  const { held = createHeldCommands() } = parts;
  const nodes = createRedisNodes({ ...parts, held });
  const bus = createRedisBus(parts);
  return {
    nodes,
    waiters: createRedisWaiters(parts),
    capabilities: { shared: true, exactDedupCounters: true, cheapStreamSummaries: true },
    connections: createRedisConnections(parts),
    contexts: createRedisContexts(parts),
    commands: createRedisCommands({ ...parts, held }),
    inspector: createRedisInspector(parts),
    history: createRedisHistory(parts),
    dedup: createRedisDedup(parts),
    sites: createRedisSites(parts),
    sessions: createRedisSessions(parts),
    bus,
    /** Events of other nodes are heard. Waits while Redis is away. */
    ready: () => bus.ready(),
    async close() {
      // What a node finds when it leaves is still told.
      await nodes.close();
      bus.close();
    },
  };
}
