/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
import type { DocumentTypeDecoration } from '@graphql-typed-document-node/core';
/** What kind of program a client is. */
export type ClientType =
  /** A browser: an extension or a page. */
  | 'BROWSER'
  /** A console program. */
  | 'CONSOLE'
  /** A mobile app. */
  | 'MOBILE'
  /** A web app. */
  | 'WEB';

/** Whether a client is reachable. */
export type ConnectionStatus =
  /** Its link is up, and the client was heard from within the last 45 seconds. */
  | 'CONNECTED'
  /** Its link is down, or the client has been silent for 60 seconds. */
  | 'DISCONNECTED'
  /** Its link is up, but the client has been silent for 45 seconds. */
  | 'STALE';

/** How a command ended. No outcome proves anything about effects outside the client. */
export type Outcome =
  /** The command was cancelled before dispatch, or the client reported that it stopped. */
  | 'CANCELLED'
  /** The client reported a result. */
  | 'COMPLETED'
  /** The command’s time ran out before dispatch: no socket write began. */
  | 'EXPIRED'
  /** The client reported an error or refused the command. */
  | 'FAILED'
  /** The command was dispatched and may have run; nothing more is known. `lastProvenStage` says how far it certainly came. */
  | 'OUTCOME_UNKNOWN';

/** How far a command has come. */
export type Stage =
  /** The client confirmed that it received the command. That does not prove that it ran. */
  | 'ACKNOWLEDGED'
  /** The command is on record and waits for its client to connect. */
  | 'ADMITTED'
  /** The node began to write the command to the client’s socket. That proves neither receipt nor execution. */
  | 'DISPATCHED'
  /** The command is queued for its client’s link. */
  | 'QUEUED'
  /** The command ended; `outcome` says how. */
  | 'TERMINAL';

export type LiveConnectionsQueryVariables = Exact<{
  userId?: string | null | undefined;
  status?: ConnectionStatus | null | undefined;
  after?: string | null | undefined;
  first: number;
}>;


export type LiveConnectionsQuery = { connections: { nextCursor: string | null, nodes: Array<{ id: string, userId: string, clientId: string, instanceId: string, nodeId: string, status: ConnectionStatus, clientType: ClientType, metadata: unknown, connectedAt: string, lastSeenAt: string, disconnectedAt: string | null, actionNames: Array<string> }>, completeness: { complete: boolean } } };

export type LiveConnectionEventsSubscriptionVariables = Exact<{
  userId?: string | null | undefined;
}>;


export type LiveConnectionEventsSubscription = { connectionEvents: { missed: number, connection: { id: string, userId: string, clientId: string, instanceId: string, nodeId: string, status: ConnectionStatus, clientType: ClientType, metadata: unknown, connectedAt: string, lastSeenAt: string, disconnectedAt: string | null, actionNames: Array<string> } } };

export type LiveCommandUpdatesSubscriptionVariables = Exact<{
  userId: string;
  clientId: string;
  commandId: string;
  admittedWithinMs?: number | null | undefined;
}>;


export type LiveCommandUpdatesSubscription = { commandUpdates: { stage: Stage, outcome: Outcome | null, progress: unknown, progressNumber: number | null, missed: number } };

export type LiveConnectionRowFragment = { id: string, userId: string, clientId: string, instanceId: string, nodeId: string, status: ConnectionStatus, clientType: ClientType, metadata: unknown, connectedAt: string, lastSeenAt: string, disconnectedAt: string | null, actionNames: Array<string> };

export class TypedDocumentString<TResult, TVariables>
  extends String
  implements DocumentTypeDecoration<TResult, TVariables>
{
  __apiType?: NonNullable<DocumentTypeDecoration<TResult, TVariables>['__apiType']>;
  private value: string;
  public __meta__?: Record<string, any> | undefined;

  constructor(value: string, __meta__?: Record<string, any> | undefined) {
    super(value);
    this.value = value;
    this.__meta__ = __meta__;
  }

  override toString(): string & DocumentTypeDecoration<TResult, TVariables> {
    return this.value;
  }
}
export const LiveConnectionRowFragmentDoc = new TypedDocumentString(`
    fragment LiveConnectionRow on ConnectionSnapshot {
  id
  userId
  clientId
  instanceId
  nodeId
  status
  clientType
  metadata
  connectedAt
  lastSeenAt
  disconnectedAt
  actionNames
}
    `, {"fragmentName":"LiveConnectionRow"}) as unknown as TypedDocumentString<LiveConnectionRowFragment, unknown>;
export const LiveConnectionsDocument = new TypedDocumentString(`
    query LiveConnections($userId: ID, $status: ConnectionStatus, $after: String, $first: Int!) {
  connections(userId: $userId, status: $status, after: $after, first: $first) {
    nodes {
      ...LiveConnectionRow
    }
    nextCursor
    completeness {
      complete
    }
  }
}
    fragment LiveConnectionRow on ConnectionSnapshot {
  id
  userId
  clientId
  instanceId
  nodeId
  status
  clientType
  metadata
  connectedAt
  lastSeenAt
  disconnectedAt
  actionNames
}`) as unknown as TypedDocumentString<LiveConnectionsQuery, LiveConnectionsQueryVariables>;
export const LiveConnectionEventsDocument = new TypedDocumentString(`
    subscription LiveConnectionEvents($userId: ID) {
  connectionEvents(userId: $userId) {
    missed
    connection {
      ...LiveConnectionRow
    }
  }
}
    fragment LiveConnectionRow on ConnectionSnapshot {
  id
  userId
  clientId
  instanceId
  nodeId
  status
  clientType
  metadata
  connectedAt
  lastSeenAt
  disconnectedAt
  actionNames
}`) as unknown as TypedDocumentString<LiveConnectionEventsSubscription, LiveConnectionEventsSubscriptionVariables>;
export const LiveCommandUpdatesDocument = new TypedDocumentString(`
    subscription LiveCommandUpdates($userId: ID!, $clientId: ID!, $commandId: ID!, $admittedWithinMs: Int) {
  commandUpdates(
    userId: $userId
    clientId: $clientId
    commandId: $commandId
    admittedWithinMs: $admittedWithinMs
  ) {
    stage
    outcome
    progress
    progressNumber
    missed
  }
}
    `) as unknown as TypedDocumentString<LiveCommandUpdatesSubscription, LiveCommandUpdatesSubscriptionVariables>;