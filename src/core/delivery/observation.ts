import type { Principal } from '../auth/principal.ts';
import type { Connection } from '../connections/connection.ts';
import type { PageArgs } from '../cursor.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import type { Completeness, Page } from '../page.ts';
import type { Command } from './command.ts';
import type { CapacityScope, DeliveryFilter, DeliverySummary } from './inspector.ts';
import type { DispatcherNode } from './nodes.ts';

export type DeliverySummaryView = DeliverySummary & { readonly completeness: Completeness };

/** A node as it last reported, its loops as they can still be known to be alive. `stale`: its lease has run out since. */
export type NodeView = DispatcherNode & { readonly stale: boolean };

/** `limit`: what the scope may hold at once by this node's policy; null where that policy knows no such scope. */
export type ScopeView = CapacityScope & { readonly limit: number | null };

/** Which tracked commands to list; what is left out does not narrow. */
export type DeliveryQuery = { readonly [Name in keyof DeliveryFilter]?: DeliveryFilter[Name] | undefined };

/**
 * A link that an operator closed. `closed`: it is gone; `requested`: its node was asked and has not said so yet. The connection is as it
 * stood afterwards: another link of the client may be up already.
 */
export type Disconnection = { readonly state: 'closed' | 'requested'; readonly connection: Connection };

/** How delivery goes. Administrators only. Reads only, and no payload anywhere. */
export interface DeliveryObservation {
  summary(who: Principal | null): Promise<DeliverySummaryView>;
  /** Nodes that reported lately, in order of node. */
  nodes(who: Principal | null, page: PageArgs): Promise<Page<NodeView>>;
  /** Admission scopes that hold something, in order of scope. */
  tenants(who: Principal | null, page: PageArgs): Promise<Page<ScopeView>>;
  /** The record of one command; null where none is kept. Throws `invalid_argument` or `invalid_user` where there can be no such command. */
  status(who: Principal | null, key: CommandKey): Promise<Command | null>;
  /** Tracked commands in order of (user, client, command). */
  commands(who: Principal | null, query: DeliveryQuery, page: PageArgs): Promise<Page<Command>>;
}

/** The operator's deeds. Administrators only; each is written to the audit log. */
export interface DeliveryDeeds {
  /** Closes a client's link with the cause `operator`. Null: there is no such connection. Throws `not_connected` where its link is down. */
  disconnectClient(who: Principal | null, key: ClientKey, reason: string | null): Promise<Disconnection | null>;
  /** Tells a node to drain for at most `withinMs`, and answers with what is left on it. Null: there is no such live node. */
  drainNode(who: Principal | null, nodeId: string, withinMs: number | null): Promise<NodeView | null>;
}
