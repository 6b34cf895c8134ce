import type { JsonText } from '../json.ts';
import type { ClientKey } from '../ids.ts';
import { DEAD_MS, PING_MS, PREDECESSORS, RECENT_REPLACEMENT_MS, STALE_MS } from '../limits.ts';

export type ClientType = 'browser' | 'console' | 'mobile' | 'web';
export type ConnectionStatus = 'connected' | 'disconnected' | 'stale';
export type HeartbeatIndicator = 'ok' | 'late' | 'missed';
export type DisconnectCause =
  | 'client_closed'
  | 'replaced'
  | 'heartbeat_lost'
  | 'token_expired'
  | 'protocol_error'
  | 'back_pressure'
  | 'node_drained'
  | 'node_lost'
  | 'operator';

/** What a client says it can do, member for member as it said it. Evidence of capability, never authorization. */
export type ActionAdvertisement = {
  readonly name: string;
  readonly summary: string | null;
  readonly description: string | null;
  readonly version: string | null;
  readonly checksArguments: boolean | null;
  readonly schema: JsonText | null;
  readonly metadata: JsonText | null;
};

/**
 * An instance that another one of its client took over from. `replacedAt`: when, epoch milliseconds. `cause`: why its link had gone down by
 * then; `replaced` where it was still up.
 */
export type Predecessor = {
  readonly instanceId: string;
  readonly nodeId: string;
  readonly replacedAt: number;
  readonly cause: DisconnectCause;
};

/**
 * A client's link to one node, live or recently so. Immutable: a change makes a new object. What time alone changes is derived by the
 * functions below and never stored.
 */
export type Connection = ClientKey & {
  readonly instanceId: string;
  readonly nodeId: string;
  /** Grows with every connection of this client and is never given twice; fences an old socket's late close. */
  readonly epoch: number;
  readonly clientType: ClientType;
  /** Whether its link's token held the scope `host`: only then is it the connector of the sites that name its client. */
  readonly host: boolean;
  readonly metadata: JsonText | null;
  readonly actions: readonly ActionAdvertisement[];
  readonly connectedAt: number;
  readonly lastSeenAt: number;
  /** Null while the link is up. */
  readonly disconnectedAt: number | null;
  readonly disconnectCause: DisconnectCause | null;
  /** The instance that this one took over from, and when. */
  readonly replacedInstanceId: string | null;
  readonly replacedAt: number | null;
  /** The instances before this one, the latest first, at most PREDECESSORS. They are forgotten with the row. */
  readonly predecessors: readonly Predecessor[];
};

const NO_PREDECESSORS: readonly Predecessor[] = [];

/** What a new link of `instanceId` takes over from the client's row as it is now; null: there is none. */
export function succession(
  previous: Connection | null,
  instanceId: string,
  now: number,
): Pick<Connection, 'replacedInstanceId' | 'replacedAt' | 'predecessors'> {
  if (previous === null) return { replacedInstanceId: null, replacedAt: null, predecessors: NO_PREDECESSORS };
  const { replacedInstanceId, replacedAt, predecessors } = previous;
  if (previous.instanceId === instanceId) return { replacedInstanceId, replacedAt, predecessors };
  const silent = now - previous.lastSeenAt >= DEAD_MS;
  const cause = previous.disconnectCause ?? (silent ? 'heartbeat_lost' : 'replaced');
  const latest = { instanceId: previous.instanceId, nodeId: previous.nodeId, replacedAt: now, cause };
  return {
    replacedInstanceId: previous.instanceId,
    replacedAt: now,
    predecessors: [latest, ...predecessors.slice(0, PREDECESSORS - 1)],
  };
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

/** `late` once a whole ping went unanswered, `missed` from the moment that the status is not `connected`. */
export function heartbeat(connection: Connection, now: number): HeartbeatIndicator {
  if (connectionStatus(connection, now) !== 'connected') return 'missed';
  return now - connection.lastSeenAt > PING_MS * 1.25 ? 'late' : 'ok';
}

export function recentlyReplaced(connection: Connection, now: number): boolean {
  return connection.replacedAt !== null && now - connection.replacedAt < RECENT_REPLACEMENT_MS;
}

/** When, after `now`, any of the above may next be another for the same connection; Infinity when never. Epoch milliseconds. */
export function derivedChangeAt({ lastSeenAt, replacedAt }: Connection, now: number): number {
  const moments = [lastSeenAt + PING_MS * 1.25 + 1, lastSeenAt + STALE_MS, lastSeenAt + DEAD_MS];
  if (replacedAt !== null) moments.push(replacedAt + RECENT_REPLACEMENT_MS);
  return Math.min(...moments.filter((moment) => moment > now));
}
