/** Checks the filters of connection listings, and decides which connections match. */
import { matchesAny } from '../auth/patterns.ts';
import type { ActionPatterns, Principal } from '../auth/principal.ts';
import { readSight } from '../auth/sight.ts';
import { filterText, id, name } from '../ids.ts';
import type { GivenFilter } from '../cursors.ts';
import { type ConnectionStatus, type ClientType, connectionStatus, type Connection } from './connection.ts';
import { type Label, hasLabels, hasLabelWith, checkLabels } from './labels.ts';

/** A filter for connections. A connection must match every member that is not null. */
export type ConnectionFilter = {
  readonly userId: string | null;
  readonly nodeId: string | null;
  /** The nodes of which one must have the link. */
  readonly nodeIds: readonly string[] | null;
  readonly status: ConnectionStatus | null;
  readonly clientType: ClientType | null;
  /** The name of an action that the client advertises. */
  readonly action: string | null;
  /** A text in lower case that must occur in the user id, in the client id, or in the value of a label. */
  readonly text: string | null;
  readonly labels: readonly Label[] | null;
  /**
   * The patterns of the actions that the requester may see. The client must advertise an action that matches one of
   * them. Absent: every client matches.
   */
  readonly seen?: ActionPatterns;
};

/** Matches every connection. */
export const ANY_CONNECTION: ConnectionFilter = {
  userId: null,
  nodeId: null,
  nodeIds: null,
  status: null,
  clientType: null,
  action: null,
  text: null,
  labels: null,
};

/** Whether a connection matches the filter now. Does not compare `userId`: pass only connections of that user. */
export function matchesConnection(filter: ConnectionFilter, connection: Connection, now: number): boolean {
  const { nodeId, nodeIds, status, clientType, action, text, labels, seen } = filter;
  return (
    (nodeId === null || connection.nodeId === nodeId) &&
    (nodeIds === null || nodeIds.includes(connection.nodeId)) &&
    (status === null || connectionStatus(connection, now) === status) &&
    (clientType === null || connection.clientType === clientType) &&
    (seen === undefined || connection.actions.some((advertised) => matchesAny(seen, advertised.name))) &&
    (action === null || connection.actions.some((advertised) => advertised.name === action)) &&
    (action === null || seen === undefined || matchesAny(seen, action)) &&
    (text === null || mentions(connection, text)) &&
    (labels === null || hasLabels(connection, labels))
  );
}

function mentions(connection: Connection, text: string): boolean {
  const { userId, clientId } = connection;
  return userId.toLowerCase().includes(text) || clientId.toLowerCase().includes(text) || hasLabelWith(connection, text);
}

/** `labels`: each as `key=value`. `onSilentNodes`: if true, only connections on silent nodes are listed. */
export type ConnectionQuery = GivenFilter<Omit<ConnectionFilter, 'labels' | 'nodeIds' | 'seen'>> & {
  readonly labels?: readonly string[] | null | undefined;
  readonly onSilentNodes?: boolean | null | undefined;
};

/**
 * Returns the filter for a query, limited to what the requester may see. Throws `invalid_argument` if a member is not
 * valid, and the errors of `readSight`.
 */
export function checkFilter(requester: Principal | null, query: ConnectionQuery): ConnectionFilter {
  const { nodeId, status, clientType, action, text, labels } = query;
  const { userId, actions } = readSight(requester, query.userId);
  return {
    userId,
    ...(actions && { seen: actions }),
    nodeId: nodeId == null ? null : id('node_id', nodeId),
    nodeIds: null,
    status: status ?? null,
    clientType: clientType ?? null,
    action: action == null ? null : name('action', action),
    text: text == null ? null : filterText(text),
    labels: checkLabels('labels', labels),
  };
}

/**
 * Returns the part of a filter to which cursors are bound. A member that is not set adds nothing, so cursors stay valid
 * that older versions made without this member.
 */
export function cursorFilter({ userId, nodeId, status, ...later }: ConnectionFilter): object {
  return { userId, nodeId, status, ...Object.fromEntries(Object.entries(later).filter(([, value]) => value !== null)) };
}

/** Returns the result of `cursorFilter` for a filter that names only a user. */
export function cursorFilterOfUser(userId: string): object {
  return { userId, nodeId: null, status: null };
}
