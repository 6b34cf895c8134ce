/** Answers the operator's questions about delivery from the store. Changes nothing. */
import type { AdmissionScope } from '../auth/policy.ts';
import { requireAdmin, subjectOf } from '../auth/principal.ts';
import { checkLabels } from '../connections/labels.ts';
import { completenessOf, type Listing } from '../cursor.ts';
import type { Deps } from '../deps.ts';
import { invalid } from '../errors.ts';
import { canonicalUser, hasAtMost, id, name } from '../ids.ts';
import { ERROR_CODE_CHARS, LOOP_ALIVE_MS, NODE_LEASE_MS } from '../limits.ts';
import type { ObservedSource } from '../page.ts';
import { silentSources, withGaps } from '../silence.ts';
import { COMMAND_ORDERS, type CapacityScope, type CommandOrder, type DeliveryFilter } from './inspector.ts';
import type { DispatcherNode } from './nodes.ts';
import type { DeliveryObservation, DeliveryQuery, NodeView, ScopeView } from './observation.ts';
import { reservationsView } from './reservations.ts';

/** Creates the operator's view of delivery. */
export function createInspection(deps: Deps): DeliveryObservation {
  const { backend, clock, cursors } = deps;
  const { inspector, nodes, commands } = backend;
  return {
    async summary(requester) {
      requireAdmin(requester);
      const [summary, silent] = await Promise.all([inspector.summary(), silentSources(deps, 'delivery')]);
      const { trackedCommands: observed } = summary;
      const own = { ...source(clock.now()), complete: true, observed, limit: null, reason: null };
      return { ...summary, completeness: completenessOf([own, ...silent]) };
    },
    async nodes(requester, args) {
      const listing: Listing = { name: 'nodes', filter: null, requester: subjectOf(requireAdmin(requester)) };
      const request = cursors.request(listing, args);
      const scan = withGaps(...(await Promise.all([nodes.list(request), silentSources(deps, 'delivery')])));
      const now = clock.now();
      return cursors.page(listing, scan, source(now), (node) => nodeView(node, now));
    },
    async tenants(requester, args) {
      const listing: Listing = { name: 'tenants', filter: null, requester: subjectOf(requireAdmin(requester)) };
      const scan = await inspector.scopes(cursors.request(listing, args));
      return cursors.page(listing, scan, source(clock.now()), (scope) => scopeView(deps, scope));
    },
    async reservations(requester) {
      requireAdmin(requester);
      return reservationsView(deps.policy, await inspector.reservedScopes());
    },
    async nodesById(requester, nodeIds) {
      requireAdmin(requester);
      const found = await Promise.all(nodeIds.map((nodeId) => nodes.get(nodeId)));
      const now = clock.now();
      return found.map((node) => node && nodeView(node, now));
    },
    async tenantsById(requester, scopeIds) {
      requireAdmin(requester);
      return (await inspector.getScopes(scopeIds)).map((scope) => scope && scopeView(deps, scope));
    },
    async status(requester, { userId, clientId, commandId }) {
      requireAdmin(requester);
      const key = {
        userId: canonicalUser(userId),
        clientId: id('client_id', clientId),
        commandId: id('command_id', commandId),
      };
      return (await commands.get([key]))[0] ?? null;
    },
    async commands(requester, query, args) {
      const subject = subjectOf(requireAdmin(requester));
      const filter = filterOf(query);
      const order = orderOf(args.order);
      const listing: Listing = { name: 'delivery', filter: boundTo(filter, order), requester: subject };
      const request = { ...cursors.request(listing, args), order };
      const silent = silentSources(deps, 'delivery', filter.nodeId);
      const scan = withGaps(...(await Promise.all([inspector.list(filter, request), silent])));
      return cursors.page(listing, scan, source(clock.now()), (command) => command);
    },
  };
}

/**
 * Builds the operator's view of a node. What the node reported of its loops counts for LOOP_ALIVE_MS, because an older
 * report does not prove that they still run.
 */
export function nodeView(node: DispatcherNode, now: number): NodeView {
  const age = now - node.updatedAt;
  const alive = age < LOOP_ALIVE_MS;
  return {
    ...node,
    listenerAlive: node.listenerAlive && alive,
    reconciliationAlive: node.reconciliationAlive && alive,
    stale: age >= NODE_LEASE_MS,
  };
}

/**
 * Adds the limit of a scope. The policy finds a scope only by user, so the users who hold reservations in the scope are
 * looked up.
 */
function scopeView({ policy }: Deps, scope: CapacityScope): ScopeView {
  const own = ({ id: scopeId }: AdmissionScope): boolean => scopeId === scope.scopeId;
  const limit = scope.holders.map(({ userId }) => policy.scopeOf(userId)).find(own)?.limit ?? null;
  return { ...scope, limit };
}

function filterOf(query: DeliveryQuery): DeliveryFilter {
  const { userId, clientId, nodeId, action, stage = null, outcome = null, code = null, clientType = null } = query;
  const { admittedAfter = null, admittedBefore = null } = query;
  if (code === '' || !hasAtMost(code ?? '', ERROR_CODE_CHARS))
    invalid('code', `expected 1 to ${ERROR_CODE_CHARS} characters`);
  return {
    userId: userId == null ? null : canonicalUser(userId),
    clientId: clientId == null ? null : id('client_id', clientId),
    nodeId: nodeId == null ? null : id('node_id', nodeId),
    stage,
    outcome,
    action: action == null ? null : name('action', action),
    code,
    clientType,
    labels: checkLabels('labels', query.labels),
    admittedAfter,
    admittedBefore,
  };
}

function orderOf(given: CommandOrder | null | undefined): CommandOrder {
  const order = given ?? 'key';
  return COMMAND_ORDERS.includes(order) ? order : invalid('order', `expected one of ${COMMAND_ORDERS.join(', ')}`);
}

/**
 * Returns the part of a filter that cursors are bound to. Members that are not given add nothing, so that cursors from
 * older versions, which did not have these members, stay valid.
 */
function boundTo(filter: DeliveryFilter, order: CommandOrder): object {
  const { action, code, clientType, labels, admittedBefore, ...always } = filter;
  const later = { action, code, clientType, labels, admittedBefore, order: order === 'key' ? null : order };
  return { ...always, ...Object.fromEntries(Object.entries(later).filter(([, value]) => value !== null)) };
}

function source(asOf: number): Pick<ObservedSource, 'source' | 'nodeId' | 'asOf'> {
  return { source: 'delivery', nodeId: null, asOf };
}
