/**
 * Creates the Redis store of each room of core (history, delivery, …), all over the same connection and settings. Opens
 * no connection; open.ts does.
 */
import type { Backend } from '../../core/backend.ts';
import { createRedisAudit } from './audit/store.ts';
import { createRedisTickets } from './auth/store.ts';
import { createRedisBus } from './bus/bus.ts';
import { createRedisSites } from './sites/store.ts';
import { createRedisSessions } from './sites/sessions.ts';
import { createRedisDedup } from './dedup/store.ts';
import { createRedisHistory } from './history/store.ts';
import { createHeldCommands } from './commands/held.ts';
import { createOwnEnds } from './commands/own-ends.ts';
import { createRedisCommands } from './commands/store.ts';
import { createRedisInspector } from './inspector/store.ts';
import { createRedisNodes } from './nodes/store.ts';
import { createLocalWaits } from './waiters/local.ts';
import { createRedisWaiters } from './waiters/store.ts';
import { createRedisConnections } from './connections/store.ts';
import { createRedisReconnects } from './reconnects/store.ts';
import { createRedisContexts } from './contexts/store.ts';
import type { RedisParts } from './parts.ts';
import { sharesInUse } from './shares/store.ts';

/** Creates the Redis store of each room of core. */
export function createRedisRooms(parts: RedisParts): Partial<Backend> {
  const { held = createHeldCommands(), ownEnds = createOwnEnds(), waits = createLocalWaits() } = parts;
  const nodes = createRedisNodes({ ...parts, held, ownEnds, waits });
  const connections = createRedisConnections(parts);
  const bus = createRedisBus({ ...parts, read: async (key) => (await connections.get([key]))[0] ?? null });
  return {
    nodes,
    waiters: createRedisWaiters({ ...parts, waits }),
    capabilities: { shared: true, exactDedupCounters: true, cheapStreamSummaries: true },
    connections,
    reconnects: createRedisReconnects(parts),
    contexts: createRedisContexts(parts),
    commands: createRedisCommands({ ...parts, held, ownEnds, waits }),
    inspector: createRedisInspector(parts, connections.get),
    history: createRedisHistory(parts),
    dedup: createRedisDedup(parts),
    sites: createRedisSites(parts),
    audit: createRedisAudit(parts),
    sessions: createRedisSessions(parts),
    tickets: createRedisTickets(parts),
    bus,
    sharesInUse: () => sharesInUse(parts.store),
    /** Resolves once this node receives the events of other nodes. Waits while Redis is away. */
    ready: () => bus.ready(),
    async close() {
      // The bus closes last, because nodes publish events while they leave.
      await nodes.close();
      bus.close();
    },
  };
}
