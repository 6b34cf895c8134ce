/** Core's DeliveryInspector over Redis. Changes no command. */
import type { DeliveryInspector } from '../../core/commands/delivery-inspector.ts';
import { SCAN_BUDGET } from '../../core/page.ts';
import { createInspectorList, type InspectorListParts } from './inspector-list.ts';
import { busiest, getScopes, reservedScopes, scopes } from './inspector-scopes.ts';
import { readSummary } from './inspector-summary.ts';
import type { RedisParts } from './parts.ts';

/** Creates core's DeliveryInspector. Its listings are merged over all partitions, in byte order of the names. */
export function createRedisInspector(
  parts: RedisParts,
  connections: InspectorListParts['connections'],
): DeliveryInspector {
  const { store } = parts;
  return {
    summary: () => readSummary(store),
    scopes: (page) => scopes(store, page),
    getScopes: (scopeIds) => getScopes(store, scopeIds),
    async reservedScopes() {
      const scopes = (await reservedScopes(store)).slice(0, SCAN_BUDGET);
      return scopes.map(({ scopeId, reservedCommands, userId }) => ({ scopeId, reservedCommands, userId }));
    },
    busiest: (first) => busiest(store, first),
    list: createInspectorList({ ...parts, connections }),
  };
}
