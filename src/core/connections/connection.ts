/**
 * Connections: the row of a client's link, its status and labels, the filters of listings, the ports of connections and
 * of reconnects, and the details of a row of a link history.
 */
import { matchesAny } from '../auth/patterns.ts';
import { readSight } from '../auth/sight.ts';
import type { ActionPatterns, Principal } from '../auth/principal.ts';
import { invalid } from '../errors.ts';
import { clientKeyText, filterText, hasAtMost, id, name, type ClientKey } from '../ids.ts';
import { isRecord, type JsonText } from '../json.ts';
import {
  DEAD_MS,
  FORGET_MS,
  LABELS_PER_CLIENT,
  LABELS_PER_FILTER,
  LABEL_MAX_CHARS,
  PING_MS,
  PREDECESSORS,
  RECENT_REPLACEMENT_MS,
  STALE_MS,
} from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Completeness, DocumentReading, GivenFilter, PageRequest, Scan, WithGaps } from '../page.ts';

export type ClientType = 'browser' | 'console' | 'mobile' | 'web';
export type ConnectionStatus = 'connected' | 'disconnected' | 'stale';
export type HeartbeatIndicator = 'ok' | 'late' | 'missed';
/**
 * Why a link ended, as far as it is proven: by the client (`client_closed`: it announced that it leaves, or sent a
 * close frame), by the network (`lost`: the socket ended without a close frame; `reset`: its peer reset it; `error`: it
 * failed with another error), or by the relay.
 */
export type DisconnectCause =
  | 'client_closed'
  | 'lost'
  | 'reset'
  | 'error'
  | 'replaced'
  | 'heartbeat_lost'
  | 'token_expired'
  | 'protocol_error'
  | 'back_pressure'
  | 'node_drained'
  | 'node_lost'
  | 'operator';

/** How a link ended. `closeCode`: the code of the client's close frame; null if it sent no frame or no code. */
export type LinkEnd = { readonly cause: DisconnectCause; readonly closeCode: number | null };

/**
 * What the client does between the arrival of a command and the start of the action's handler. A value is null if the
 * client does not report it.
 */
export type ActionGuards = {
  /** Whether a person at the client approves each command. */
  readonly approval: boolean | null;
  /** Whether only one command runs at a time; others are then refused. */
  readonly lease: boolean | null;
};

/**
 * The effects of the action, as its client describes them. They are hints and never a promise. A value is null if the
 * client does not report it.
 */
export type ActionEffects = {
  readonly readOnly: boolean | null;
  readonly destructive: boolean | null;
  readonly idempotent: boolean | null;
  readonly openWorld: boolean | null;
};

/** An action that a client advertises, as it was reported. It describes a capability and is never an authorization. */
export type ActionAdvertisement = {
  readonly name: string;
  readonly summary: string | null;
  readonly description: string | null;
  readonly version: string | null;
  readonly checksArguments: boolean | null;
  readonly schema: JsonText | null;
  readonly metadata: JsonText | null;
  /** The client's description of what happens before the handler runs. Absent: the client sent none. */
  readonly guards?: ActionGuards;
  readonly effects?: ActionEffects;
};

/**
 * An instance that a newer instance of its client replaced at `replacedAt` (epoch milliseconds). `cause`: why its link
 * had ended before the replacement; `replaced` if the link was still up.
 */
export type Predecessor = {
  readonly instanceId: string;
  readonly nodeId: string;
  readonly replacedAt: number;
  readonly cause: DisconnectCause;
};

/**
 * A client's link to one node, live or recently ended. Times are epoch milliseconds. Immutable: a change makes a new
 * object. Values that depend on the current time are derived by the functions below and never stored.
 */
export type Connection = ClientKey & {
  readonly instanceId: string;
  readonly nodeId: string;
  /**
   * The number of the link. It grows with every connection of this client and is never reused. With this number, the
   * store recognises and ignores the late close of an old socket.
   */
  readonly epoch: number;
  readonly clientType: ClientType;
  /**
   * Whether the link's token has the scope `host`. Only then can this link be the connector of the sites that name its
   * client.
   */
  readonly host: boolean;
  /** Whether calls may name a context of the client: it said in its hello that it knows places. Absent: no. */
  readonly places?: boolean;
  /** The number that the client gave its attempt to open this link. Undefined: it gave none. */
  readonly linkAttempt?: number | undefined;
  /** When a relay read the hello of this link, in epoch milliseconds. Undefined: it is not known. */
  readonly helloAt?: number | undefined;
  readonly metadata: JsonText | null;
  readonly actions: readonly ActionAdvertisement[];
  readonly connectedAt: number;
  readonly lastSeenAt: number;
  /** When the link was lost, in epoch milliseconds; null while it is up. */
  readonly disconnectedAt: number | null;
  readonly disconnectCause: DisconnectCause | null;
  /** The code of the client's close frame; null if it sent no frame or no code, and while the link is up. */
  readonly closeCode: number | null;
  /** The instance that this one replaced, and when (epoch milliseconds). Both are null if there was none. */
  readonly replacedInstanceId: string | null;
  readonly replacedAt: number | null;
  /** The previous instances, latest first, at most PREDECESSORS. They are forgotten with the row. */
  readonly predecessors: readonly Predecessor[];
};

const NO_PREDECESSORS: readonly Predecessor[] = [];

/**
 * Returns what a new link of `instanceId` records about earlier instances. `previous`: the client's present row; null
 * if the client has none.
 */
export function succession(
  previous: Connection | null,
  instanceId: string,
  now: number,
): Pick<Connection, 'replacedInstanceId' | 'replacedAt' | 'predecessors'> {
  if (previous === null) return { replacedInstanceId: null, replacedAt: null, predecessors: NO_PREDECESSORS };
  const { replacedInstanceId, replacedAt, predecessors } = previous;
  if (previous.instanceId === instanceId) return { replacedInstanceId, replacedAt, predecessors };
  const cause = endCauseAt(previous, now);
  const latest = { instanceId: previous.instanceId, nodeId: previous.nodeId, replacedAt: now, cause };
  return {
    replacedInstanceId: previous.instanceId,
    replacedAt: now,
    predecessors: [latest, ...predecessors.slice(0, PREDECESSORS - 1)],
  };
}

/** Returns why a client's previous link ended, given that a newer one is bound now: `replaced` if it was still up. */
export function endCauseAt({ disconnectCause, lastSeenAt }: Connection, now: number): DisconnectCause {
  return disconnectCause ?? (now - lastSeenAt >= DEAD_MS ? 'heartbeat_lost' : 'replaced');
}

export function connectionStatus(
  connection: Pick<Connection, 'disconnectedAt' | 'lastSeenAt'>,
  now: number,
): ConnectionStatus {
  if (connection.disconnectedAt !== null) return 'disconnected';
  const silent = now - connection.lastSeenAt;
  if (silent >= DEAD_MS) return 'disconnected';
  return silent >= STALE_MS ? 'stale' : 'connected';
}

export function isLive(connection: Connection | null, now: number): connection is Connection {
  return connection !== null && connectionStatus(connection, now) !== 'disconnected';
}

/**
 * Returns `late` after 1.25 ping intervals without a sign of life, and `missed` while the status is not `connected`.
 */
export function heartbeat(connection: Connection, now: number): HeartbeatIndicator {
  if (connectionStatus(connection, now) !== 'connected') return 'missed';
  return now - connection.lastSeenAt > PING_MS * 1.25 ? 'late' : 'ok';
}

export function recentlyReplaced(connection: Connection, now: number): boolean {
  return connection.replacedAt !== null && now - connection.replacedAt < RECENT_REPLACEMENT_MS;
}

/**
 * Returns the earliest time after `now` (epoch milliseconds) at which the status, the heartbeat or another derived
 * value may change; Infinity if none will.
 */
export function derivedChangeAt({ lastSeenAt, replacedAt }: Connection, now: number): number {
  const moments = [lastSeenAt + PING_MS * 1.25 + 1, lastSeenAt + STALE_MS, lastSeenAt + DEAD_MS];
  if (replacedAt !== null) moments.push(replacedAt + RECENT_REPLACEMENT_MS);
  return Math.min(...moments.filter((moment) => moment > now));
}

/**
 * Returns the approximate size of an advertisement as JSON, in bytes: the lengths of its texts, and 128 for the member
 * names.
 */
export function advertisedBytes(action: ActionAdvertisement): number {
  const { name, summary, description, version, schema, metadata } = action;
  const texts = [name, summary, description, version, schema, metadata];
  return texts.reduce((sum, text) => sum + (text?.length ?? 0), 128);
}

// The port of connections: which link of each client is bound, and what the client advertises.

export type ConnectRequest = ClientKey & {
  readonly instanceId: string;
  readonly nodeId: string;
  readonly clientType: ClientType;
  /** Whether the link's token has the scope `host`. */
  readonly host: boolean;
  /** As in Connection. */
  readonly places?: boolean;
  readonly linkAttempt?: number | undefined;
  readonly helloAt?: number | undefined;
  readonly metadata: JsonText | null;
  readonly actions: readonly ActionAdvertisement[];
};

/**
 * How a client connected. `resumed`: the same instance reconnected (or opened a second socket). `replaced`: another
 * instance was live or remembered.
 */
export type ConnectResult = {
  readonly kind: 'connected' | 'resumed' | 'replaced';
  readonly connection: Connection;
  readonly previous: Connection | null;
};

/** A user and the number of its connections. */
export type UserRow = { readonly userId: string; readonly count: number };

/**
 * Stores connections. The backend sets the times. A row is forgotten FORGET_MS after its link was lost. A row counts as
 * disconnected (`node_lost`) once its node's lease has run out. In every listing the position of a connection is its
 * user, then its client.
 */
export interface ConnectionStore {
  /**
   * Atomic. Binds the client to this instance and node under a new epoch, and replaces any earlier binding. Throws
   * `stale_instance`, and changes nothing, if the client's row is of a later hello (`isOlderHello`), whether
   * that link is up or not.
   */
  connect(request: ConnectRequest): MaybePromise<ConnectResult>;
  /** Atomic. Records a sign of life. Null if the epoch is not the current one or the link is down. */
  touch(key: ClientKey, epoch: number): MaybePromise<Connection | null>;
  /** Atomic. Replaces the advertisements. Null if the epoch is not the current one or the link is down. */
  advertise(key: ClientKey, epoch: number, actions: readonly ActionAdvertisement[]): MaybePromise<Connection | null>;
  /**
   * Atomic. Marks the link as down if the epoch is still the current one, so the close of an old socket never affects a
   * newer link. Idempotent. Returns null if the epoch is not current. Also returns null if the link's node had died and
   * the node that cleaned up after it has already marked the link as down; `NodeListener.linksLost` reports such a
   * link. `closeCode`: see `Connection`; default null.
   */
  disconnect(
    key: ClientKey,
    epoch: number,
    cause: DisconnectCause,
    closeCode?: number | null,
  ): MaybePromise<Connection | null>;
  /** Returns one connection per key, in the order of the keys; null where there is no row. Reads all keys together. */
  get(keys: readonly ClientKey[]): MaybePromise<readonly (Connection | null)[]>;
  /**
   * Returns a live connection as this process last saw it, without asking the store; null if it knows none. It may be
   * out of date, so an admission that relies on it passes it as `AdmitRequest.seen` and the store checks it. A store
   * whose `get` answers in the same tick does not have this method.
   */
  lastSeen?(key: ClientKey): Connection | null;
  /**
   * Lists connections in order of user and client. A page is cut after SCAN_BUDGET rows that do not match. With a
   * `reading`, rows are read once for a whole document.
   */
  list(filter: ConnectionFilter, page: PageRequest, reading?: DocumentReading): MaybePromise<Scan<Connection>>;
  /**
   * Returns for each user, in the order given, the first connections in order and the total number. Reads all users
   * together.
   */
  ofUsers(
    userIds: readonly string[],
    first: number,
  ): MaybePromise<readonly { readonly total: number; readonly rows: readonly Connection[] }[]>;
  /** Lists the users that have a row, with the number of their rows, in order of user. */
  users(page: PageRequest): MaybePromise<Scan<UserRow>>;
  /**
   * Returns the connections that are forgotten next, at most `first`: lost links, the one lost longest ago first, then
   * those that are up, the one that was silent for longest first. The links of a node that died may come later until
   * they are marked as lost.
   */
  quietest(first: number): MaybePromise<Leading<Connection>>;
}

/** The rows that lead by a measure. `complete`: whether every row was looked at. */
export type Leading<Row> = WithGaps & { readonly rows: readonly Row[]; readonly complete: boolean };

/** Compares connections for `ConnectionStore.quietest`. Equal ones are in order of user and client. */
export function compareQuiet(a: Connection, b: Connection): number {
  return forgottenAt(a) - forgottenAt(b) || compareClients(a, b);
}

/** Returns when a connection is forgotten unless its client is heard from again, in epoch milliseconds. */
function forgottenAt({ disconnectedAt, lastSeenAt }: Connection): number {
  return (disconnectedAt ?? lastSeenAt + DEAD_MS) + FORGET_MS;
}

/** Compares clients in order of user and client. */
export function compareClients(a: ClientKey, b: ClientKey): number {
  const [left, right] = a.userId === b.userId ? [a.clientId, b.clientId] : [a.userId, b.userId];
  return left < right ? -1 : left > right ? 1 : 0;
}

// The port of reconnects: how often clients reconnected in the last hour.

/** A client, and how often its link was opened again in the last hour. */
export type Reconnects = ClientKey & { readonly reconnects: number };

/**
 * Counts reconnects over the last hour, in slots of RECONNECT_SLOT_MS: a count covers between 55 and 60 minutes. Counts
 * outlive the connection's row. Each slot counts at most RECONNECT_CLIENTS clients of a partition.
 */
export interface ReconnectStore {
  /**
   * Notes that a client's link opened. It counts as a reconnect if `again` is true, or if the client's link is known to
   * have opened within the last hour.
   */
  note(client: ClientKey, again: boolean): MaybePromise<void>;
  /** Returns one count per client, in the order of the clients. */
  counts(clients: readonly ClientKey[]): MaybePromise<readonly number[]>;
  /**
   * Returns the clients with the most reconnects, most first, then in order of user and client; at most `first`.
   * `complete`: whether every client that reconnected was looked at.
   */
  top(first: number): MaybePromise<Leading<Reconnects>>;
}

/** A bounded sample of the clients that reconnect most. */
export type FlappingSample = ClientSample & { readonly items: readonly Reconnects[] };

/** Compares clients for sorting: most reconnects first, then in order of user and client. */
export function compareReconnects(a: Reconnects, b: Reconnects): number {
  return b.reconnects - a.reconnects || compareClients(a, b);
}

/**
 * What the clients of a `ClientSample` are chosen and ordered by. `backlog`: most live commands first. `reconnects`:
 * most reconnects in the last hour first. `silence`: in the order of `ConnectionStore.quietest`.
 */
export type ClientMeasure = 'backlog' | 'reconnects' | 'silence';

/** A bounded sample of the clients that lead by a measure. */
export type ClientSample = {
  readonly items: readonly ClientKey[];
  readonly complete: boolean;
  readonly completeness: Completeness;
};

/** A client and the number of its live commands. */
export type Busy = ClientKey & { readonly commands: number };

/** Counts the clients of live commands, and returns those with the most in the order of `DeliveryInspector.busiest`. */
export function busiestOf(clients: Iterable<ClientKey>, first: number): readonly Busy[] {
  const counts = new Map<string, { readonly client: ClientKey; commands: number }>();
  for (const client of clients) {
    const text = clientKeyText(client);
    const known = counts.get(text);
    if (known) known.commands++;
    else counts.set(text, { client, commands: 1 });
  }
  return [...counts.values()]
    .sort((a, b) => b.commands - a.commands || compareClients(a.client, b.client))
    .slice(0, first)
    .map(({ client: { userId, clientId }, commands }) => ({ userId, clientId, commands }));
}

// Checks the filters of connection listings, and decides which connections match.

/** Selects connections. A connection must match every member that is not null. */
export type ConnectionFilter = {
  readonly userId: string | null;
  readonly nodeId: string | null;
  /** The nodes of which one must hold the link. */
  readonly nodeIds: readonly string[] | null;
  readonly status: ConnectionStatus | null;
  readonly clientType: ClientType | null;
  /** The name of an action that the client advertises. */
  readonly action: string | null;
  /** A text in lower case that must be part of the user's id, the client's id, or the value of a label. */
  readonly text: string | null;
  readonly labels: readonly Label[] | null;
  /** The only actions that the requester may see: the client must advertise one of them. Absent: all. */
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

/**
 * Whether a connection matches the filter now. Does not compare the user: the caller passes only connections of the
 * filter's user.
 */
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

/** `labels`: each as `key=value`. `onSilentNodes`: whether only connections on silent nodes are listed. */
export type ConnectionQuery = GivenFilter<Omit<ConnectionFilter, 'labels' | 'nodeIds' | 'seen'>> & {
  readonly labels?: readonly string[] | null | undefined;
  readonly onSilentNodes?: boolean | null | undefined;
};

/**
 * Returns the filter of a query, limited to what the requester may see. Throws `invalid_argument` if a member is not
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

// Labels of connections: the short values of a client's metadata, by which listings can be filtered.

/** A value of a client's metadata, as text. */
export type Label = { readonly key: string; readonly value: string };

const FORM = `expected at most ${LABELS_PER_FILTER} texts of the form key=value, each of at most ${LABEL_MAX_CHARS} characters`;

/**
 * Parses labels given as `key=value`. Each is returned once, in a fixed order. The key ends at the first `=`. Returns
 * null if `texts` is null or undefined. Throws `invalid_argument` naming the parameter.
 */
export function checkLabels(parameter: string, texts: readonly string[] | null | undefined): readonly Label[] | null {
  if (texts === null || texts === undefined) return null;
  if (texts.length === 0 || texts.length > LABELS_PER_FILTER) invalid(parameter, FORM);
  return [...new Set(texts)].sort().map((text) => {
    const cut = text.indexOf('=');
    if (cut < 1 || !hasAtMost(text, LABEL_MAX_CHARS)) invalid(parameter, FORM);
    return { key: text.slice(0, cut), value: text.slice(cut + 1) };
  });
}

/** The labels of connections, computed when a filter first needs them. */
const LABEL_CACHE = new WeakMap<Labelled, ReadonlyMap<string, string>>();

type Labelled = Pick<Connection, 'metadata'>;

/**
 * Returns the labels of a connection: the top-level members of its metadata that are texts, numbers or booleans, and
 * those of its member `labels`, if that is an object. A member of `labels` takes precedence over one of the same name.
 * At most LABELS_PER_CLIENT labels are returned. A label of more than LABEL_MAX_CHARS characters as `key=value` is left
 * out.
 */
export function labelsOf(connection: Labelled): ReadonlyMap<string, string> {
  const known = LABEL_CACHE.get(connection);
  if (known) return known;
  const found = new Map<string, string>();
  const metadata: unknown = connection.metadata === null ? null : JSON.parse(connection.metadata);
  if (isRecord(metadata)) {
    const { labels, ...members } = metadata;
    if (isRecord(labels)) addLabels(found, labels);
    addLabels(found, members);
  }
  LABEL_CACHE.set(connection, found);
  return found;
}

/**
 * Matches metadata that may spell a value otherwise than labels do: with an escape, or as a number such as `1e3`. Other
 * metadata need not be parsed to know that they lack a value which their text does not contain.
 */
const OTHER_SPELLING = /\\|\d[.eE]|\d{16}/;

/** Whether a connection has every one of these labels. A client without a connection has no labels. */
export function hasLabels(connection: Labelled | null, wanted: readonly Label[]): boolean {
  if (!connection?.metadata) return wanted.length === 0;
  const { metadata } = connection;
  if (wanted.some(({ value }) => !metadata.includes(value)) && !OTHER_SPELLING.test(metadata)) return false;
  const labels = labelsOf(connection);
  return wanted.every(({ key, value }) => labels.get(key) === value);
}

/** Whether the value of a label of the connection contains this text, which is in lower case. */
function hasLabelWith(connection: Labelled, text: string): boolean {
  const { metadata } = connection;
  if (metadata === null || (!metadata.toLowerCase().includes(text) && !OTHER_SPELLING.test(metadata))) return false;
  return labelsOf(connection)
    .values()
    .some((value) => value.toLowerCase().includes(text));
}

function addLabels(found: Map<string, string>, members: Readonly<Record<string, unknown>>): void {
  for (const [key, value] of Object.entries(members)) {
    if (found.size === LABELS_PER_CLIENT) return;
    const text = textOf(value);
    if (text !== null && !found.has(key) && key.length + text.length < LABEL_MAX_CHARS) found.set(key, text);
  }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : null;
}

// The details of a link in a row of its user's link history, and the id of such a row.

/** The details of a client link that opened or ended. */
export type LinkDetails = {
  readonly clientType: ClientType;
  readonly nodeId: string;
  /** The epoch of the link: the row of its opening and the row of its end have the same one. */
  readonly epoch: number;
  /**
   * In the row of an end: why the link ended. In the row of an opening: why the client's previous link ended. That is
   * `replaced` if the previous link was still up, and null if the relay remembers none.
   */
  readonly cause: DisconnectCause | null;
  /**
   * In the row of an end: the code of the client's close frame; null if it sent no frame or no code. Always null in the
   * row of an opening.
   */
  readonly closeCode: number | null;
  /**
   * How long the link was open, in milliseconds; null in the row of an opening. If the link was lost with its node, the
   * time counts until the node's lease ended or until the client's last sign of life.
   */
  readonly openMs: number | null;
  /**
   * In the row of an opening: the instance of the client's previous link; null if the relay remembers none. Always null
   * in the row of an end.
   */
  readonly previousInstanceId: string | null;
};

/** Returns the id of a row of a link history. It is unique among the rows of one client. */
export function linkRowId(kind: string, epoch: number): string {
  return `${kind}:${epoch}`;
}
