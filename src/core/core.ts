/**
 * The interfaces of core that the HTTP, GraphQL and WebSocket layers use. Methods take the requester, refuse what
 * the requester may not do, and bound their answers. Methods "for nested fields" rely on the authorization of the
 * parent.
 */
import type { Audits } from './audit/audit.ts';
import type { Capabilities, ConnectionEvent } from './backend.ts';
import type { Connections } from './connections/connections.ts';
import type { Clock } from './ports.ts';
import type { Contexts } from './contexts/contexts.ts';
import type { ExecutionEvidence, Outcome, Stage } from './commands/command.ts';
import type { Dedup } from './dedup/dedup.ts';
import type { Histories } from './history/history.ts';
import type { TerminalError } from './history/message.ts';
import type { Ingest } from './ingest/ingest.ts';
import type { Reveals } from './reveal/reveal.ts';
import type { MaybePromise } from './maybe-promise.ts';
import type { ServerInfo } from './deps.ts';
import type { SeriesApi } from './metrics/series.ts';
import type { ShareName, SharesInUse, Shares } from './shares/shares.ts';
import type { DocumentTurns } from './shares/turns.ts';
import type { Users } from './users/users.ts';
import type { Actions } from './actions/actions.ts';
import type { Rpc } from './calls/call.ts';
import type { Deliveries } from './commands/operator.ts';
import type { Sites } from './sites/site-policy.ts';
import type { Links } from './commands/link-queues.ts';

export type { Requester } from './auth/principal.ts';
export type { Summary } from './page.ts';
export type { Users, UserView } from './users/users.ts';

export interface Core {
  readonly nodeId: string;
  readonly mode: 'direct' | 'shared';
  readonly capabilities: Capabilities;
  readonly clock: Clock;
  readonly server: ServerInfo;
  /**
   * The idempotency window, in milliseconds: how long after its end a command's id is remembered, so that it does not
   * run again.
   */
  readonly idempotencyWindowMs: number;
  /** Reads the audit of administrators' acts. */
  readonly audit: Audits;
  /** Lets administrators read payloads, as far as the deployment allows it. */
  readonly reveals: Reveals;
  readonly users: Users;
  readonly connections: Connections;
  readonly actions: Actions;
  readonly contexts: Contexts;
  readonly rpc: Rpc;
  readonly history: Histories;
  readonly dedup: Dedup;
  readonly ingest: Ingest;
  readonly delivery: Deliveries;
  /** What the nodes counted and measured over time. */
  readonly series: SeriesApi;
  readonly links: Links;
  readonly sites: Sites;
  /** Runs the documents that read, with turns between users. */
  readonly documents: DocumentTurns;
  /** The resources that each user holds in this process. */
  readonly shares: Shares;
  /** How much of each share is in use, where the store counts in all nodes. */
  sharesInUse(): MaybePromise<SharesInUse>;
  /** Attaches to this node's mailbox and starts the background loops. */
  start(): Promise<void>;
  /** Stops admitting (`draining`), waits at most `withinMs` for the commands in flight, then closes the links. */
  drain(withinMs: number): Promise<void>;
  readonly draining: boolean;
  close(): Promise<void>;
  /** Throws `draining`, `store_full` or `store_unavailable` if this node should get no new traffic. */
  ready(): MaybePromise<void>;
  /** The shares whose total is used up. They refuse users who hold much; the node still takes new traffic. */
  fullShares(): MaybePromise<readonly ShareName[]>;
}

// --- connections and actions -----------------------------------------------------------------------------------------
export type * from './connections/connections.ts';
// --- commands --------------------------------------------------------------------------------------------------------
export type * from './calls/call.ts';
// --- history ---------------------------------------------------------------------------------------------------------
export type * from './history/history.ts';

// --- sites -----------------------------------------------------------------------------------------------------------
// --- links -----------------------------------------------------------------------------------------------------------
export type { ConnectionEvent, ExecutionEvidence, Outcome, Stage, TerminalError };
export type * from './actions/actions.ts';
export type * from './commands/operator.ts';
export type * from './sites/site-policy.ts';
export type * from './commands/link-queues.ts';
