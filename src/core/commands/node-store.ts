/** The storage port of nodes: leases, heartbeats, mailboxes, and the commands that are due. */
import type { PolicyReport } from '../auth/policy.ts';
import type { Connection } from '../connections/connection.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { PageRequest, Scan } from '../page.ts';
import type { Cancel, ProcessFigures } from '../ports.ts';
import type { Reply } from './waiter.ts';

/** A row of a node's mailbox. Rows are delivered in the order posted, each at most once per boot. */
export type MailboxRow =
  | { readonly kind: 'command'; readonly key: CommandKey }
  /** Asks the node to send a cancel of this command to the client. */
  | { readonly kind: 'cancel'; readonly key: CommandKey; readonly reason: string | null }
  /** The command ended without a report of its client, so it no longer counts in the window of its link. */
  | { readonly kind: 'ended'; readonly key: CommandKey }
  /** Asks to close this link; ignored if another epoch is bound. `instanceId`: the successor of a replaced instance. */
  | {
      readonly kind: 'kick';
      readonly client: ClientKey;
      readonly epoch: number;
      readonly cause: 'replaced' | 'operator';
      readonly instanceId: string | null;
    }
  | { readonly kind: 'drain'; readonly withinMs: number }
  /** A node posts this to itself. Its arrival proves that the mailbox is read. */
  | { readonly kind: 'pulse' }
  | { readonly kind: 'reply'; readonly reply: Reply }
  /** A question of another node. `text`: the question, in the form of its topic. */
  | {
      readonly kind: 'question';
      readonly questionId: string;
      readonly from: string;
      readonly topic: 'series' | 'leaving' | 'waits' | 'answers' | 'pause' | 'revoked';
      readonly text: string;
    }
  /** The answer to a question that this node has asked. */
  | { readonly kind: 'answer'; readonly questionId: string; readonly text: string };
/** A row that nodes post to each other. */
export type NodeRow = Exclude<MailboxRow, { readonly key: CommandKey } | { readonly kind: 'reply' }>;

/** What a node reports of its process. `startedAt`: when it started, in epoch milliseconds. */
type ProcessReport = ProcessFigures & { readonly version: string; readonly startedAt: number };

/** What a node reports with each heartbeat. */
export type NodeReport = {
  /** Whether a `pulse` row that the node posted to its own mailbox arrived within LOOP_ALIVE_MS. */
  readonly listenerAlive: boolean;
  /** Whether a reconciliation pass finished within LOOP_ALIVE_MS. */
  readonly reconciliationAlive: boolean;
  /** The number of links with queued commands. */
  readonly activeDrainers: number;
  /** The number of callers that wait on this node. */
  readonly connectionWaiters: number;
  /** The number of client links of this node. */
  readonly links: number;
  /** The number of commands that are queued or in flight on its links. */
  readonly unfinishedCommands: number;
  readonly draining: boolean;
  readonly counters: ReadonlyMap<string, number>;
  /** Null, or absent: the node does not report it. */
  readonly process: ProcessReport | null;
  readonly policy?: PolicyReport | undefined;
};

export type DispatcherNode = NodeReport & { readonly nodeId: string; readonly updatedAt: number };

/** Receives the events of a node and its mailbox. */
export interface NodeListener {
  deliver(row: MailboxRow): void;
  /**
   * Called when this node lost its id. `fenced`: the other nodes counted this node as dead and took over what it held.
   * `store_lost`: the store forgot something that it had confirmed, of these users. No row is delivered until this
   * resolves; the node then holds its id again. A store that cannot lose a node never calls it.
   */
  lost(cause: 'fenced' | 'store_lost', concerns?: (userId: string) => boolean): Promise<void>;
  /**
   * Called when this node has cleaned up after a dead node and marked these links of that node as lost. The dead node
   * may be this node itself, before it was fenced. Each link is reported to one node of the deployment, once.
   */
  linksLost(connections: readonly Connection[]): void;
  /**
   * Called when this node's lease is valid again, after it may have run out. In between its links may have been marked
   * as lost, which close now, and the commands for their clients were parked.
   */
  revived(): void;
  /**
   * Called when another process decides about the clients of these users from now on. It does not know yet who waits
   * here, and what is queued on the links of this node. Only stores in which several processes decide call it.
   */
  moved?(concerns: (userId: string) => boolean): void;
}

/** The nodes of a deployment: their mailboxes, their leases, and the commands that are due. */
export interface NodeStore {
  /** Registers this process under the id and delivers its mailbox. Throws if another live process holds the id. */
  attach(nodeId: string, listener: NodeListener): MaybePromise<Cancel>;
  /** Renews the lease and replaces the report. */
  beat(nodeId: string, report: NodeReport): MaybePromise<void>;
  /** Posts a row to a node. False: there is no such live node. */
  post(nodeId: string, row: NodeRow): MaybePromise<boolean>;
  /** Returns commands that are past their connect deadline or their deadline, oldest first. Reads only. */
  due(limit: number): MaybePromise<readonly CommandKey[]>;
  /**
   * Lists the nodes that have reported, ordered by id. A node that died without releasing its id stays listed, as it
   * last reported, for NODE_GONE_MS after it was cleaned up.
   */
  list(page: PageRequest): MaybePromise<Scan<DispatcherNode>>;
  /**
   * Returns the ids, in order, of the nodes whose last heartbeat is at least NODE_SILENT_MS old. Since that heartbeat
   * nothing is known of their links and waits. A node that died is included for as long as `list` shows it; a node that
   * released its id is not.
   */
  silent(): MaybePromise<readonly string[]>;
  /** Returns when each node that `list` shows has reported last. Absent: `list` is as cheap. */
  reportTimes?(): MaybePromise<readonly Pick<DispatcherNode, 'nodeId' | 'updatedAt'>[]>;
  /**
   * Returns the ids of all nodes that live, this one and those included that have started and not reported yet: they may
   * have links. Absent: each node is listed before it has any.
   */
  living?(): readonly string[];
  /** Returns the last report of a node. Null if no such node has reported. */
  get(nodeId: string): MaybePromise<DispatcherNode | null>;
}
