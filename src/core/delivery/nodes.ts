import type { Cancel } from '../clock.ts';
import type { Connection } from '../connections/connection.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import type { Maybe } from '../maybe.ts';
import type { PageRequest, Scan } from '../page.ts';
import type { Reply } from './waiter.ts';

/** What reaches a node through its mailbox, in the order posted, each at most once per boot. */
export type MailboxRow =
  | { readonly kind: 'command'; readonly key: CommandKey }
  /** Tell the client to stop this command. */
  | { readonly kind: 'cancel'; readonly key: CommandKey; readonly reason: string | null }
  /** The command ended without its client's report: its place in the window is free. */
  | { readonly kind: 'ended'; readonly key: CommandKey }
  /** Close this link, unless a newer epoch is bound. `instanceId` is the successor of a replaced one. */
  | {
      readonly kind: 'kick';
      readonly client: ClientKey;
      readonly epoch: number;
      readonly cause: 'replaced' | 'operator';
      readonly instanceId: string | null;
    }
  | { readonly kind: 'drain'; readonly withinMs: number }
  /** What a node posts to itself: that it comes proves that its mailbox is read. */
  | { readonly kind: 'pulse' }
  | { readonly kind: 'reply'; readonly reply: Reply };

/** What a node says of itself with each beat. */
export type NodeReport = {
  /** What it last posted to its own mailbox came lately. */
  readonly listenerAlive: boolean;
  /** Reconciliation came to its end lately. */
  readonly reconciliationAlive: boolean;
  /** Links with commands queued. */
  readonly activeDrainers: number;
  /** Callers that wait on this node. */
  readonly connectionWaiters: number;
  /** Links of clients. */
  readonly links: number;
  /** Commands queued or in flight on its links. */
  readonly unfinishedCommands: number;
  readonly draining: boolean;
  readonly counters: ReadonlyMap<string, number>;
};

export type DispatcherNode = NodeReport & { readonly nodeId: string; readonly updatedAt: number };

/** Whoever holds a node's mailbox. */
export interface NodeListener {
  deliver(row: MailboxRow): void;
  /**
   * `fenced`: the others counted this node as dead and took over what it held. `store_lost`: the store forgot something that it had confirmed.
   * No row is delivered until this resolves; the node then holds its id anew. Never called by a store that cannot lose a node.
   */
  lost(cause: 'fenced' | 'store_lost'): Promise<void>;
  /**
   * This node cleared away after one that is gone, itself before it was fenced included, and marked these of its links as lost. Of all nodes
   * one is told of each, once.
   */
  linksLost(connections: readonly Connection[]): void;
  /** This node's lease had run out, or may have, and holds again. Its links counted as gone meanwhile: what came for their clients was parked. */
  revived(): void;
}

/** The processes of a deployment: their mailboxes, their leases, and what is due. */
export interface NodeStore {
  /** Registers this process under the id and begins to deliver its mailbox. Throws when another live process holds the id. */
  attach(nodeId: string, listener: NodeListener): Maybe<Cancel>;
  /** Renews the lease and replaces the report. */
  beat(nodeId: string, report: NodeReport): Maybe<void>;
  /** Posts a row to a node; false when there is no such live node. */
  post(nodeId: string, row: MailboxRow): Maybe<boolean>;
  /** Commands past their connect deadline or deadline, oldest first. Reads only. */
  due(limit: number): Maybe<readonly CommandKey[]>;
  /**
   * Nodes that reported, in order of node. A node that died without giving its id back stays listed, as it last reported, for NODE_GONE_MS
   * after it was cleared away.
   */
  list(page: PageRequest): Maybe<Scan<DispatcherNode>>;
  /**
   * Ids of the nodes whose last beat is NODE_SILENT_MS old or older, in order: nothing is known of their links and waits since. A node that died is among them for
   * as long as `list` shows it; a node that gave its id back is not.
   */
  silent(): Maybe<readonly string[]>;
  /** Null where no such node reported. */
  get(nodeId: string): Maybe<DispatcherNode | null>;
}
