import type { AdmissionScope } from '../auth/policy.ts';
import { requireAdmin, subjectOf } from '../auth/principal.ts';
import type { Listing } from '../cursor.ts';
import type { Deps } from '../deps.ts';
import { invalid } from '../errors.ts';
import { canonicalUser, id } from '../ids.ts';
import { NODE_LEASE_MS } from '../limits.ts';
import type { ObservedSource } from '../page.ts';
import type { CapacityScope, DeliveryFilter } from './inspector.ts';
import type { DispatcherNode } from './nodes.ts';
import type { DeliveryObservation, DeliveryQuery, NodeView, ScopeView } from './observation.ts';

/** Delivery as an operator may look at it. */
export function createInspection(deps: Deps): DeliveryObservation {
  const { backend, clock, cursors } = deps;
  const { inspector, nodes, commands } = backend;
  return {
    async summary(who) {
      requireAdmin(who);
      return inspector.summary();
    },
    async nodes(who, args) {
      const listing: Listing = { name: 'nodes', filter: null, asker: subjectOf(requireAdmin(who)) };
      const scan = await nodes.list(cursors.request(listing, args));
      const now = clock.now();
      return cursors.page(listing, scan, source(now), (node) => nodeView(node, now));
    },
    async tenants(who, args) {
      const listing: Listing = { name: 'tenants', filter: null, asker: subjectOf(requireAdmin(who)) };
      const scan = await inspector.scopes(cursors.request(listing, args));
      return cursors.page(listing, scan, source(clock.now()), (scope) => scopeView(deps, scope));
    },
    async status(who, { userId, clientId, commandId }) {
      requireAdmin(who);
      const key = {
        userId: canonicalUser(userId),
        clientId: id('client_id', clientId),
        commandId: id('command_id', commandId),
      };
      return (await commands.get([key]))[0] ?? null;
    },
    async commands(who, query, args) {
      const asker = subjectOf(requireAdmin(who));
      const filter = filterOf(query);
      const listing: Listing = { name: 'delivery', filter, asker };
      const scan = await inspector.list(filter, cursors.request(listing, args));
      return cursors.page(listing, scan, source(clock.now()), (command) => command);
    },
  };
}

export function nodeView(node: DispatcherNode, now: number): NodeView {
  return { ...node, stale: now - node.updatedAt >= NODE_LEASE_MS };
}

/** A scope's limit is known by its users: whoever holds something in it belongs to it. */
function scopeView({ policy }: Deps, scope: CapacityScope): ScopeView {
  const own = ({ id: scopeId }: AdmissionScope): boolean => scopeId === scope.scopeId;
  const limit = scope.holders.map(({ userId }) => policy.scopeOf(userId)).find(own)?.limit ?? null;
  return { ...scope, limit };
}

function filterOf(query: DeliveryQuery): DeliveryFilter {
  const { userId, clientId, nodeId, stage = null, outcome = null, admittedAfter = null } = query;
  if (outcome !== null && stage !== null && stage !== 'terminal') {
    invalid('outcome', 'only a command whose stage is terminal has one');
  }
  return {
    userId: userId == null ? null : canonicalUser(userId),
    clientId: clientId == null ? null : id('client_id', clientId),
    nodeId: nodeId == null ? null : id('node_id', nodeId),
    stage,
    outcome,
    admittedAfter,
  };
}

function source(asOf: number): Pick<ObservedSource, 'source' | 'nodeId' | 'asOf'> {
  return { source: 'delivery', nodeId: null, asOf };
}
