/** The interfaces of operators: what they see of delivery, and what they can do to nodes and links. Types only. */
import type { Principal } from '../auth/principal.ts';
import type { Connection } from '../connections/connection.ts';
import type { PageArgs } from '../cursor.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import type { Completeness, Page } from '../page.ts';
import type { Command } from './command.ts';
import type { CapacityScope, CommandOrder, DeliveryFilter, DeliverySummary } from './inspector.ts';
import type { DispatcherNode } from './nodes.ts';

export type DeliverySummaryView = DeliverySummary & { readonly completeness: Completeness };

/**
 * A node's last report; its loops count as alive only while that report is recent enough. `stale`: its lease has run
 * out.
 */
export type NodeView = DispatcherNode & { readonly stale: boolean };

/**
 * A capacity scope with its limit. `limit`: how many commands the scope may hold at once under this node's policy; null
 * if that policy has no such scope.
 */
export type ScopeView = CapacityScope & { readonly limit: number | null };

/**
 * The reservations of the deployment, without the id of any user. `named`: the scopes of the policy with the most
 * reservations, most first; at most SHOWN_SCOPES. `others`: the reservations of all other scopes, such as those of
 * single users. `fullest`: the highest fraction of its limit that any scope has used; 0 without reservations.
 */
export type ReservationsView = {
  readonly named: readonly Pick<ScopeView, 'scopeId' | 'reservedCommands' | 'limit'>[];
  readonly others: number;
  readonly fullest: number;
};

/** The filters of a list of tracked commands. An omitted filter matches every command. */
export type DeliveryQuery = {
  readonly [Name in Exclude<keyof DeliveryFilter, 'labels'>]?: DeliveryFilter[Name] | undefined;
} & {
  /** The labels that the target's connection must have, each as `key=value`. */
  readonly labels?: readonly string[] | null | undefined;
};

/** The requested page of commands. The default order is `key`. */
export type CommandPageArgs = PageArgs & { readonly order?: CommandOrder | null | undefined };

/**
 * The result of closing a link as an operator. `closed`: the link is gone. `requested`: its node was asked and has not
 * confirmed yet. `connection` is the state afterwards; it may already be another link of the client.
 */
export type Disconnection = { readonly state: 'closed' | 'requested'; readonly connection: Connection };

/** Shows the state of delivery, to administrators only. It changes nothing and shows no payload. */
export interface DeliveryObservation {
  summary(requester: Principal | null): Promise<DeliverySummaryView>;
  /** Lists the nodes that have reported, ordered by id. */
  nodes(requester: Principal | null, page: PageArgs): Promise<Page<NodeView>>;
  /** Lists the admission scopes that hold reservations, ordered by scope. */
  tenants(requester: Principal | null, page: PageArgs): Promise<Page<ScopeView>>;
  reservations(requester: Principal | null): Promise<ReservationsView>;
  /** Returns nodes by their ids, in order; null for one that has not reported. */
  nodesById(requester: Principal | null, nodeIds: readonly string[]): Promise<readonly (NodeView | null)[]>;
  /** Returns scopes by their ids, in order; null for one without reservations. */
  tenantsById(requester: Principal | null, scopeIds: readonly string[]): Promise<readonly (ScopeView | null)[]>;
  /**
   * Returns the record of one command; null if none is kept. Throws `invalid_argument` or `invalid_user` if the key is
   * not valid.
   */
  status(requester: Principal | null, key: CommandKey): Promise<Command | null>;
  /** Lists tracked commands in the requested order. Throws `invalid_argument` if a filter is not valid. */
  commands(requester: Principal | null, query: DeliveryQuery, page: CommandPageArgs): Promise<Page<Command>>;
}

/**
 * Operator actions, for administrators only. Each action is first written to the audit. If that fails,
 * `audit_unavailable` is thrown and nothing is done. `requestId`: the id of the request, for the audit row.
 */
export interface OperatorActions {
  /**
   * Closes a client's link with the cause `operator`. Null: there is no such connection. Throws `not_connected` if its
   * link is down.
   */
  disconnectClient(
    requester: Principal | null,
    key: ClientKey,
    reason: string | null,
    requestId?: string | null,
  ): Promise<Disconnection | null>;
  /**
   * Asks a node to drain for at most `withinMs` milliseconds, and answers with its report afterwards. Null: there is no
   * such live node.
   */
  drainNode(
    requester: Principal | null,
    nodeId: string,
    withinMs: number | null,
    requestId?: string | null,
  ): Promise<NodeView | null>;
}
