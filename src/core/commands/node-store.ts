/** The storage port of nodes: their leases, heartbeats and mailboxes, and the list of due commands. */
import type { PolicyReport } from '../auth/policy.ts';
import type { Connection } from '../connections/connection.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { PageRequest, Scan } from '../page.ts';
import type { Cancel, ProcessFigures } from '../ports.ts';
import type { Reply } from './waiter.ts';

/**
 * A row in a node's mailbox. Rows are delivered in the order in which they were posted, each at most once per start of
 * the process.
 */
export type MailboxRow =
  | { readonly kind: 'command'; readonly key: CommandKey }
  /** Asks the node to send the client a cancel of this command. */
  | { readonly kind: 'cancel'; readonly key: CommandKey; readonly reason: string | null }
  /** Says that the command ended without its client's report, so it no longer takes up the window of its link. */
  | { readonly kind: 'ended'; readonly key: CommandKey }
  /**
   * Asks the node to close this link. Ignored if the client is bound to another epoch. `instanceId`: the instance that
   * replaces the client's; null if none does.
   */
  | {
      readonly kind: 'kick';
      readonly client: ClientKey;
      readonly epoch: number;
      readonly cause: 'replaced' | 'operator';
      readonly instanceId: string | null;
    }
  | { readonly kind: 'drain'; readonly withinMs: number }
  /** A row that a node posts to itself. Its arrival proves that the mailbox works. */
  | { readonly kind: 'pulse' }
  | { readonly kind: 'reply'; readonly reply: Reply }
  /** A question of another node. `text`: the question, in the format of its topic. */
  | {
      readonly kind: 'question';
      readonly questionId: string;
      readonly from: string;
      readonly topic: 'series' | 'leaving' | 'waits' | 'answers' | 'pause' | 'revoked';
      readonly text: string;
    }
  /** The answer to a question of this node. */
  | { readonly kind: 'answer'; readonly questionId: string; readonly text: string };
/** A row that a node posts to a node. */
export type NodeRow = Exclude<MailboxRow, { readonly key: CommandKey } | { readonly kind: 'reply' }>;

/** What a node reports about its process. `startedAt`: the start of the process, in epoch milliseconds. */
type ProcessReport = ProcessFigures & { readonly version: string; readonly startedAt: number };

/** The report that a node sends with each heartbeat. */
export type NodeReport = {
  /** Whether a `pulse` row, which the node posts to its own mailbox, arrived within the last LOOP_ALIVE_MS. */
  readonly listenerAlive: boolean;
  /** Whether a reconciliation pass finished within the last LOOP_ALIVE_MS. */
  readonly reconciliationAlive: boolean;
  /** The number of links with queued commands. */
  readonly activeDrainers: number;
  /** The number of callers that wait on this node. */
  readonly connectionWaiters: number;
  /** The number of client links of this node. */
  readonly links: number;
  /** The number of commands that are queued or in flight on these links. */
  readonly unfinishedCommands: number;
  readonly draining: boolean;
  readonly counters: ReadonlyMap<string, number>;
  /** Null if the node does not report this. */
  readonly process: ProcessReport | null;
  readonly policy?: PolicyReport | undefined;
};

export type DispatcherNode = NodeReport & { readonly nodeId: string; readonly updatedAt: number };

/** Receives the events of a node and its mailbox. */
export interface NodeListener {
  deliver(row: MailboxRow): void;
  /**
   * Called when this node lost its id. `fenced`: the other nodes counted this node as dead and took over its links and
   * commands. `store_lost`: the store forgot something that it had confirmed. It may have forgotten data of the users
   * that `concerns` accepts; without `concerns`, of all users. Until the returned promise resolves, no row is delivered; after that, this node holds its
   * id again. A store that cannot lose a node never calls this.
   */
  lost(cause: 'fenced' | 'store_lost', concerns?: (userId: string) => boolean): Promise<void>;
  /**
   * Called when this node has cleaned up after a dead node, and marked these links of the dead node as lost. The dead
   * node may be an earlier life of this node, before it was fenced. Each link is reported once, to one node of the
   * deployment.
   */
  linksLost(connections: readonly Connection[]): void;
  /**
   * Called when this node's lease is valid again after it may have run out. In the meantime, other nodes may have
   * marked this node's links as lost and parked the commands for their clients. Links that were marked as lost must be
   * closed. Nor did they tell this node of what was decided in the meantime.
   */
  revived(): void;
  /**
   * Called when another process becomes the one that decides about the clients of these users. The new process does not
   * know yet which callers wait here, and which commands are queued on this node's links. Only stores in which several
   * processes decide call this.
   */
  moved?(concerns: (userId: string) => boolean): void;
}

/** The nodes of a deployment: their mailboxes and leases, and the commands that are due. */
export interface NodeStore {
  /**
   * Registers this process under the id, and starts delivering its mailbox. Throws if another live process holds the
   * id.
   */
  attach(nodeId: string, listener: NodeListener): MaybePromise<Cancel>;
  /** Renews the lease and replaces the report. */
  beat(nodeId: string, report: NodeReport): MaybePromise<void>;
  /** Posts a row to a node. False if there is no such live node. */
  post(nodeId: string, row: NodeRow): MaybePromise<boolean>;
  /** Returns the commands that are past their connect deadline or their deadline, oldest first. Changes nothing. */
  due(limit: number): MaybePromise<readonly CommandKey[]>;
  /**
   * Lists the nodes that have reported, ordered by id. A node that died without releasing its id stays listed with its
   * last report until NODE_GONE_MS after its cleanup.
   */
  list(page: PageRequest): MaybePromise<Scan<DispatcherNode>>;
  /**
   * Returns the ids, in order, of the nodes whose last heartbeat is at least NODE_SILENT_MS old: nothing is known about
   * their links and waits since then. A dead node is included as long as `list` shows it. A node that released its id
   * is not included.
   */
  silent(): MaybePromise<readonly string[]>;
  /** Returns the time of the last report of each node that `list` shows. Absent if `list` is just as cheap. */
  reportTimes?(): MaybePromise<readonly Pick<DispatcherNode, 'nodeId' | 'updatedAt'>[]>;
  /**
   * Returns the ids of all nodes that live when it is called, including this one and nodes that have started but not
   * reported yet, because those may have links. A node that is not among them calls `revived` before it serves again.
   * Rejects with `store_unavailable`.
   * Absent if the store lists each node before it has a link.
   */
  living?(): MaybePromise<readonly string[]>;
  /** Returns the last report of a node; null if no such node has reported. */
  get(nodeId: string): MaybePromise<DispatcherNode | null>;
}
