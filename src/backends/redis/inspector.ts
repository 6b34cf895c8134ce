/** Core's DeliveryInspector over Redis, combined from its listings, scopes and summary. */
import type { DeliveryInspector } from '../../core/commands/delivery-inspector.ts';
import { SCAN_BUDGET } from '../../core/page.ts';
import { createInspectorList, type InspectorListDeps } from './inspector-list.ts';
import { busiest, getScopes, reservedScopes, scopes } from './inspector-scopes.ts';
import { readSummary } from './inspector-summary.ts';
import type { RedisDeps } from './deps.ts';

/** Creates core's DeliveryInspector. Its listings are merged over all partitions, in byte order of the names. */
export function createRedisInspector(
  deps: RedisDeps,
  connections: InspectorListDeps['connections'],
): DeliveryInspector {
  const { store } = deps;
  return {
    summary: () => readSummary(store),
    scopes: (page) => scopes(store, page),
    getScopes: (scopeIds) => getScopes(store, scopeIds),
    async reservedScopes() {
      const scopes = (await reservedScopes(store)).slice(0, SCAN_BUDGET);
      return scopes.map(({ scopeId, reservedCommands, userId }) => ({ scopeId, reservedCommands, userId }));
    },
    busiest: (first) => busiest(store, first),
    list: createInspectorList({ ...deps, connections }),
  };
}
