/** Connections: the row of a client's link to a node, and what is derived from it, such as its status. */
import type { ClientKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import { DEAD_MS, PING_MS, PREDECESSORS, RECENT_REPLACEMENT_MS, STALE_MS } from '../limits.ts';

export type ClientType = 'browser' | 'console' | 'mobile' | 'web';
export type ConnectionStatus = 'connected' | 'disconnected' | 'stale';
export type HeartbeatIndicator = 'ok' | 'late' | 'missed';
/**
 * Why a link ended, as far as this is proven. By the client: `client_closed` (it announced that it leaves, or sent a
 * close frame). By the network: `lost` (the socket ended without a close frame), `reset` (the peer reset the socket),
 * `error` (the socket failed with another error). The other causes are the relay's.
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

/**
 * How a link ended. `closeCode`: the code of the client's close frame; null if the client sent no frame, or a frame
 * without a code.
 */
export type LinkEnd = { readonly cause: DisconnectCause; readonly closeCode: number | null };

/**
 * The steps between the arrival of a command at the client and the start of the action's handler. A member is null if
 * the client does not report it.
 */
export type ActionGuards = {
  /** Whether a person at the client approves each command. */
  readonly approval: boolean | null;
  /** Whether only one command runs at a time, so that others are refused meanwhile. */
  readonly lease: boolean | null;
};

/**
 * The effects of the action, as its client describes them. They are hints, not promises. A member is null if the client
 * does not report it.
 */
export type ActionEffects = {
  readonly readOnly: boolean | null;
  readonly destructive: boolean | null;
  readonly idempotent: boolean | null;
  readonly openWorld: boolean | null;
};

/**
 * An action that a client advertises, as the client reported it. It describes what the client can do and authorizes
 * nothing.
 */
export type ActionAdvertisement = {
  readonly name: string;
  readonly summary: string | null;
  readonly description: string | null;
  readonly version: string | null;
  readonly checksArguments: boolean | null;
  readonly schema: JsonText | null;
  readonly metadata: JsonText | null;
  /** What happens in the client before the handler runs. Absent if the client does not report this. */
  readonly guards?: ActionGuards;
  readonly effects?: ActionEffects;
};

/**
 * An earlier instance of the client, which a newer one replaced at `replacedAt` (epoch milliseconds). `cause`: why its
 * link had ended before; `replaced` if the link was still open.
 */
export type Predecessor = {
  readonly instanceId: string;
  readonly nodeId: string;
  readonly replacedAt: number;
  readonly cause: DisconnectCause;
};

/**
 * The link of a client to a node, open or recently ended. Times are epoch milliseconds. Immutable: each change makes a
 * new object. Values that depend on the current time are computed by the functions below and never stored.
 */
export type Connection = ClientKey & {
  readonly instanceId: string;
  readonly nodeId: string;
  /**
   * The number of the link. It grows with every connection of this client and is never reused. By this number, the
   * store recognises the late close of an old socket and ignores it.
   */
  readonly epoch: number;
  readonly clientType: ClientType;
  /** Whether the link's token has the scope `host`. Only such a link can serve the sites that name its client. */
  readonly host: boolean;
  /** Whether the client supports commands that name a context, as its hello said. Absent: it does not. */
  readonly places?: boolean;
  /** The number that the client gave to its attempt to open this link. Undefined if it gave none. */
  readonly linkAttempt?: number | undefined;
  /** When a relay read the hello of this link, in epoch milliseconds. Undefined if this is not known. */
  readonly helloAt?: number | undefined;
  readonly metadata: JsonText | null;
  readonly actions: readonly ActionAdvertisement[];
  readonly connectedAt: number;
  readonly lastSeenAt: number;
  /** When the link was lost, in epoch milliseconds; null while it is open. */
  readonly disconnectedAt: number | null;
  readonly disconnectCause: DisconnectCause | null;
  /**
   * The code of the client's close frame. Null while the link is open, if the client sent no frame, or if the frame had
   * no code.
   */
  readonly closeCode: number | null;
  /** The instance that this one replaced, and when, in epoch milliseconds. Both are null if it replaced none. */
  readonly replacedInstanceId: string | null;
  readonly replacedAt: number | null;
  /** The earlier instances, latest first, at most PREDECESSORS. They are deleted with the row. */
  readonly predecessors: readonly Predecessor[];
};

const NO_PREDECESSORS: readonly Predecessor[] = [];

/**
 * Returns the members of a new link's row that are about earlier instances. `previous`: the client's row before; null
 * if there was none.
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

/**
 * Returns why a client's previous link ended, now that a newer one is bound. `replaced` if the previous link was still
 * open.
 */
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
 * Returns `missed` if the status is not `connected`, `late` after 1.25 ping intervals without a sign of life, and `ok`
 * otherwise.
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
 * value may change; Infinity if none will change.
 */
export function derivedChangeAt({ lastSeenAt, replacedAt }: Connection, now: number): number {
  const moments = [lastSeenAt + PING_MS * 1.25 + 1, lastSeenAt + STALE_MS, lastSeenAt + DEAD_MS];
  if (replacedAt !== null) moments.push(replacedAt + RECENT_REPLACEMENT_MS);
  return Math.min(...moments.filter((moment) => moment > now));
}

/**
 * Returns the approximate size of an advertised action as JSON, in bytes: the lengths of its texts, plus 128 for the
 * member names.
 */
export function advertisedBytes(action: ActionAdvertisement): number {
  const { name, summary, description, version, schema, metadata } = action;
  const texts = [name, summary, description, version, schema, metadata];
  return texts.reduce((sum, text) => sum + (text?.length ?? 0), 128);
}
