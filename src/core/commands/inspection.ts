/** Answers operators' questions about delivery by reading the store. Changes nothing. */
import { isOwnScope, type AdmissionScope, type Policy } from '../auth/policy.ts';
import { requireAdmin, type Requester } from '../auth/principal.ts';
import { readSight } from '../auth/sight.ts';
import { completenessOf, observed, type Completeness } from '../completeness.ts';
import { listingOf, type PageArgs } from '../cursors.ts';
import type { Deps } from '../deps.ts';
import { canonicalUser, id, type CommandKey } from '../ids.ts';
import { LOOP_ALIVE_MS, NODE_LEASE_MS, SHOWN_SCOPES } from '../limits.ts';
import type { Page } from '../page.ts';
import { silentSources, withGaps } from '../silent-nodes.ts';
import { boundTo, filterOf, orderOf, type CommandPageArgs, type DeliveryQuery } from './command-filter.ts';
import type { Command } from './command.ts';
import type { CapacityScope, DeliverySummary, ReservedScope } from './delivery-inspector.ts';
import type { DispatcherNode } from './node-store.ts';

/**
 * Creates the read API of delivery for operators. It shows no payloads. All methods but `commands` are for
 * administrators only.
 */
export function createInspection(deps: Deps) {
  const { backend, clock, cursors } = deps;
  const { inspector, nodes, commands } = backend;
  const source = () => ['delivery', clock.now()] as const;
  return {
    async summary(requester: Requester): Promise<DeliverySummaryView> {
      requireAdmin(requester);
      const [summary, silent] = await Promise.all([inspector.summary(), silentSources(deps, 'delivery')]);
      const own = observed(...source(), summary.trackedCommands);
      return { ...summary, completeness: completenessOf([own, ...(summary.gaps ?? []), ...silent]) };
    },
    /** Lists the nodes that have reported, ordered by id. */
    async nodes(requester: Requester, args: PageArgs): Promise<Page<NodeView>> {
      const listing = listingOf('nodes', requireAdmin(requester), null);
      const request = cursors.request(listing, args);
      const scan = withGaps(...(await Promise.all([nodes.list(request), silentSources(deps, 'delivery')])));
      const now = clock.now();
      return cursors.page(listing, scan, ['delivery', now], (node) => nodeView(node, now));
    },
    /** Lists the admission scopes that hold reservations, ordered by scope. */
    async tenants(requester: Requester, args: PageArgs): Promise<Page<ScopeView>> {
      const listing = listingOf('tenants', requireAdmin(requester), null);
      const scan = await inspector.scopes(cursors.request(listing, args));
      return cursors.page(listing, scan, source(), (scope) => scopeView(deps, scope));
    },
    async reservations(requester: Requester): Promise<ReservationsView> {
      requireAdmin(requester);
      return reservationsView(deps.policy, await inspector.reservedScopes());
    },
    /** Returns the nodes with these ids, in order; null for a node that has not reported. */
    async nodesById(requester: Requester, nodeIds: readonly string[]): Promise<readonly (NodeView | null)[]> {
      requireAdmin(requester);
      const found = await Promise.all(nodeIds.map((nodeId) => nodes.get(nodeId)));
      const now = clock.now();
      return found.map((node) => node && nodeView(node, now));
    },
    /** Returns the scopes with these ids, in order; null for a scope without reservations. */
    async tenantsById(requester: Requester, scopeIds: readonly string[]): Promise<readonly (ScopeView | null)[]> {
      requireAdmin(requester);
      return (await inspector.getScopes(scopeIds)).map((scope) => scope && scopeView(deps, scope));
    },
    /**
     * Returns the record of one command; null if no record is retained. Throws `invalid_argument` or `invalid_user` if
     * the key is not valid.
     */
    async status(requester: Requester, { userId, clientId, commandId }: CommandKey): Promise<Command | null> {
      requireAdmin(requester);
      const client = { userId: canonicalUser(userId), clientId: id('client_id', clientId) };
      return (await commands.get([{ ...client, commandId: id('command_id', commandId) }]))[0] ?? null;
    },
    /**
     * Lists commands that have a record, in the requested order. An administrator sees those of all users, and a user
     * those of its own clients. Throws `invalid_argument` if a filter is not valid, and `not_found` if a user names
     * another user.
     */
    async commands(requester: Requester, query: DeliveryQuery, args: CommandPageArgs): Promise<Page<Command>> {
      const { userId, actions } = readSight(requester, query.userId);
      const filter = { ...filterOf(query), userId, ...(actions && { seen: actions }) };
      const order = orderOf(args.order);
      const listing = listingOf('delivery', requester, boundTo(filter, order));
      const request = { ...cursors.request(listing, args), order };
      const silent = silentSources(deps, 'delivery', filter.nodeId);
      const scan = withGaps(...(await Promise.all([inspector.list(filter, request), silent])));
      return cursors.page(listing, scan, source(), (command) => command);
    },
  };
}

/**
 * Returns the operator's view of a node. The node's loops count as alive only if its last report is younger than
 * LOOP_ALIVE_MS, because an older report does not prove that they still run.
 */
export function nodeView(node: DispatcherNode, now: number): NodeView {
  const age = now - node.updatedAt;
  const alive = age < LOOP_ALIVE_MS;
  return {
    ...node,
    listenerAlive: node.listenerAlive && alive,
    reconciliationAlive: node.reconciliationAlive && alive,
    stale: age >= NODE_LEASE_MS,
    policyDigest: node.policy?.digest ?? null,
    policyFault: node.policy?.fault ?? null,
  };
}

/**
 * Adds the limit of a scope. The policy knows the scope of a user but not the scope of an id, so the limit is found
 * through the users who hold reservations.
 */
function scopeView({ policy }: Deps, scope: CapacityScope): ScopeView {
  const own = ({ id: scopeId }: AdmissionScope): boolean => scopeId === scope.scopeId;
  const limit = scope.holders.map(({ userId }) => policy.scopeOf(userId)).find(own)?.limit ?? null;
  return { ...scope, limit };
}

// The types of what operators see of delivery.

export type DeliverySummaryView = DeliverySummary & { readonly completeness: Completeness };

/**
 * A node's last report. Its loops count as alive only while this report is recent enough. `stale`: whether the node's
 * lease has run out.
 */
export type NodeView = DispatcherNode & { readonly stale: boolean } & Record<
    'policyDigest' | 'policyFault',
    string | null
  >;

/**
 * An admission scope with its limit. `limit`: how many commands the scope may hold at once under this node's policy;
 * null if this policy has no such scope.
 */
export type ScopeView = CapacityScope & { readonly limit: number | null };

/**
 * The reservations of the whole deployment, without user ids. `named`: the scopes that the policy file names, those
 * with the most reservations first, at most SHOWN_SCOPES. `others`: the reservations of all other scopes, such as those
 * of single users. `fullest`: the highest fraction of its limit that any scope has in use; 0 if there are no
 * reservations.
 */
type ReservationsView = {
  readonly named: readonly Pick<ScopeView, 'scopeId' | 'reservedCommands' | 'limit'>[];
  readonly others: number;
  readonly fullest: number;
};

// Sums up the reservations of all scopes, without naming users.

function reservationsView(policy: Policy, scopes: readonly ReservedScope[]): ReservationsView {
  const all = scopes.map((scope) => ({ ...scope, limit: limitOf(policy, scope) }));
  const named = all
    .filter(({ scopeId, userId }) => !isOwnScope(scopeId, userId))
    .sort((a, b) => b.reservedCommands - a.reservedCommands)
    .slice(0, SHOWN_SCOPES);
  const sum = (rows: readonly ReservedScope[]): number =>
    rows.reduce((total, { reservedCommands }) => total + reservedCommands, 0);
  const usedOf = ({ reservedCommands, limit }: (typeof all)[number]): number => (limit ? reservedCommands / limit : 0);
  return {
    named: named.map(({ scopeId, reservedCommands, limit }) => ({ scopeId, reservedCommands, limit })),
    others: sum(all) - sum(named),
    fullest: all.reduce((most, scope) => Math.max(most, usedOf(scope)), 0),
  };
}

/**
 * Returns the limit of a scope under this node's policy. Null if this policy puts the user into another scope, because
 * a node with another policy made the reservation.
 */
function limitOf(policy: Policy, { scopeId, userId }: ReservedScope): number | null {
  const scope = policy.scopeOf(userId);
  return scope.id === scopeId ? scope.limit : null;
}
