/** Checks the filters of connection listings, and decides which connections match. */
import { readScope, type Principal } from '../auth/principal.ts';
import { invalid } from '../errors.ts';
import { hasAtMost, id, name } from '../ids.ts';
import { FILTER_TEXT_CHARS } from '../limits.ts';
import { connectionStatus, type ClientType, type Connection, type ConnectionStatus } from './connection.ts';
import { checkLabels, hasLabels, hasLabelWith, type Label } from './labels.ts';

/** Selects connections. A connection must match every member that is not null. */
export type ConnectionFilter = {
  readonly userId: string | null;
  readonly nodeId: string | null;
  readonly status: ConnectionStatus | null;
  readonly clientType: ClientType | null;
  /** The name of an action that the client advertises. */
  readonly action: string | null;
  /** A text in lower case that must be part of the user's id, the client's id, or the value of a label. */
  readonly text: string | null;
  readonly labels: readonly Label[] | null;
};

/** Matches every connection. */
export const ANY_CONNECTION: ConnectionFilter = {
  userId: null,
  nodeId: null,
  status: null,
  clientType: null,
  action: null,
  text: null,
  labels: null,
};

/**
 * Whether a connection matches the filter now. Does not compare the user: the caller passes only connections of the
 * filter's user.
 */
export function matchesConnection(filter: ConnectionFilter, connection: Connection, now: number): boolean {
  const { nodeId, status, clientType, action, text, labels } = filter;
  return (
    (nodeId === null || connection.nodeId === nodeId) &&
    (status === null || connectionStatus(connection, now) === status) &&
    (clientType === null || connection.clientType === clientType) &&
    (action === null || connection.actions.some((advertised) => advertised.name === action)) &&
    (text === null || mentions(connection, text)) &&
    (labels === null || hasLabels(connection, labels))
  );
}

function mentions(connection: Connection, text: string): boolean {
  const { userId, clientId } = connection;
  return userId.toLowerCase().includes(text) || clientId.toLowerCase().includes(text) || hasLabelWith(connection, text);
}

/**
 * A filter of connections as a request gives it. Members that are absent or null match every connection. `labels`: each
 * as `key=value`.
 */
export type ConnectionQuery = {
  readonly [Name in Exclude<keyof ConnectionFilter, 'labels'>]?: ConnectionFilter[Name] | undefined;
} & { readonly labels?: readonly string[] | null | undefined };

/**
 * Returns the filter of a query, limited to what the requester may see. Throws `invalid_argument` if a member is not
 * valid, and the errors of `readScope`.
 */
export function checkFilter(requester: Principal | null, query: ConnectionQuery): ConnectionFilter {
  const { nodeId, status, clientType, action, text, labels } = query;
  return {
    userId: readScope(requester, query.userId),
    nodeId: nodeId == null ? null : id('node_id', nodeId),
    status: status ?? null,
    clientType: clientType ?? null,
    action: action == null ? null : name('action', action),
    text: text == null ? null : checkText(text),
    labels: checkLabels('labels', labels),
  };
}

function checkText(text: string): string {
  const fits = text.length >= 1 && hasAtMost(text, FILTER_TEXT_CHARS);
  return fits ? text.toLowerCase() : invalid('text', `expected 1 to ${FILTER_TEXT_CHARS} characters`);
}

/**
 * Returns the part of a filter that cursors are bound to. Members that are not given add nothing, so that cursors from
 * older versions, which did not have these members, stay valid.
 */
export function cursorFilter({ userId, nodeId, status, ...later }: ConnectionFilter): object {
  return { userId, nodeId, status, ...Object.fromEntries(Object.entries(later).filter(([, value]) => value !== null)) };
}

/** Returns `cursorFilter` for a filter that names only a user. */
export function cursorFilterOfUser(userId: string): object {
  return { userId, nodeId: null, status: null };
}
