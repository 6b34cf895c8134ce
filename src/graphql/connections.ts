import {
  connectionStatus,
  derivedChangeAt,
  heartbeat,
  recentlyReplaced,
  type ClientType,
  type Connection,
  type ConnectionStatus,
  type DisconnectCause,
  type HeartbeatIndicator,
  type Predecessor,
} from '../core/connections/connection.ts';
import type { ConnectionChange, ConnectionEvent } from '../core/bus.ts';
import { PREDECESSORS } from '../core/limits.ts';
import { fromJson } from '../core/json.ts';
import type { Live } from '../core/live.ts';
import { builder } from './builder.ts';
import { wireEnum } from './enums.ts';
import { DERIVED, ENTITY, PURE, timedEntity } from './nature.ts';
import { fresh } from './live.ts';
import { connectionOf, pageArguments, pageCost, pageOf } from './page.ts';

export const ConnectionStatusEnum = wireEnum<ConnectionStatus>('ConnectionStatus', 'Whether a client is reachable.', {
  connected: 'Its link is up and it answers in time.',
  disconnected: 'Its link is down, or it has been silent for 60 seconds.',
  stale: 'Its link is up, but it has been silent for 45 seconds.',
});

export const ClientTypeEnum = wireEnum<ClientType>('ClientType', 'What kind of program a client is.', {
  browser: 'A browser, by an extension or a page.',
  console: 'A program on a console.',
  mobile: 'A mobile app.',
  web: 'A web app.',
});

const HeartbeatEnum = wireEnum<HeartbeatIndicator>(
  'HeartbeatIndicator',
  'How a client answers pings, derived on reading.',
  {
    ok: 'The last ping was answered in time.',
    late: 'A whole ping went unanswered.',
    missed: 'The client no longer counts as connected.',
  },
);

const DisconnectCauseEnum = wireEnum<DisconnectCause>('DisconnectCause', 'Why a link went down.', {
  client_closed: 'The client closed it.',
  replaced: 'Another link of the same client took its place.',
  heartbeat_lost: 'The client was silent for 60 seconds.',
  token_expired: 'Its token expired and was not renewed.',
  protocol_error: 'Too many frames were not understood.',
  back_pressure: 'The client did not take what was sent.',
  node_drained: 'Its node was stopped in order.',
  node_lost: 'Its node went silent.',
  operator: 'An operator closed it.',
});

const ConnectionChangeEnum = wireEnum<ConnectionChange>('ConnectionChange', 'What happened to a connection.', {
  connected: 'A client connected.',
  resumed: 'The same instance came back.',
  replaced: 'A new instance took over from another.',
  stale: 'The client fell silent.',
  disconnected: 'The link went down.',
  actions_changed: 'The client advertised other actions.',
});

const ConnectionPredecessor = builder.objectRef<Predecessor>('ConnectionPredecessor').implement({
  description: 'An instance of a client that a later one took over from.',
  extensions: ENTITY,
  fields: (t) => ({
    instanceId: t.exposeID('instanceId', { description: 'The instance.' }),
    nodeId: t.exposeID('nodeId', { description: 'The node of its last link.' }),
    replacedAt: t.expose('replacedAt', { type: 'DateTime', description: 'When the later instance connected.' }),
    cause: t.expose('cause', {
      type: DisconnectCauseEnum,
      description: 'Why its link had gone down by then; REPLACED where it was still up.',
    }),
  }),
});

export const ConnectionSnapshot = builder.objectRef<Connection>('ConnectionSnapshot').implement({
  description: 'A client’s link to one node, live or lost less than a minute ago, as its node last recorded it.',
  extensions: timedEntity(derivedChangeAt),
  fields: (t) => ({
    userId: t.exposeID('userId', { description: 'The user that the client belongs to.' }),
    clientId: t.exposeID('clientId', { description: 'The client’s stable identity.' }),
    instanceId: t.exposeID('instanceId', { description: 'The present run of the client; a restart changes it.' }),
    nodeId: t.exposeID('nodeId', { description: 'The node that owns the link.' }),
    status: t.field({
      type: ConnectionStatusEnum,
      description: 'Derived from the link and its last sign of life.',
      extensions: DERIVED,
      resolve: (connection, _, { core }) => connectionStatus(connection, core.clock.now()),
    }),
    clientType: t.expose('clientType', {
      type: ClientTypeEnum,
      description: 'What kind of program it is, as it said.',
    }),
    metadata: t.field({
      type: 'JSON',
      nullable: true,
      description: 'What the client said of itself, kept as sent.',
      extensions: PURE,
      resolve: ({ metadata }) => fromJson(metadata),
    }),
    connectedAt: t.expose('connectedAt', { type: 'DateTime', description: 'When this link was bound.' }),
    lastSeenAt: t.expose('lastSeenAt', { type: 'DateTime', description: 'The last sign of life.' }),
    disconnectedAt: t.expose('disconnectedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the link went down; null while it is up.',
    }),
    disconnectCause: t.expose('disconnectCause', {
      type: DisconnectCauseEnum,
      nullable: true,
      description: 'Why the link went down; null while it is up.',
    }),
    heartbeat: t.field({
      type: HeartbeatEnum,
      description: 'Derived: how the client answers pings, one every 20 seconds.',
      extensions: DERIVED,
      resolve: (connection, _, { core }) => heartbeat(connection, core.clock.now()),
    }),
    recentlyReplaced: t.boolean({
      description: 'Derived: whether this instance took over from another within the last 60 seconds.',
      extensions: DERIVED,
      resolve: (connection, _, { core }) => recentlyReplaced(connection, core.clock.now()),
    }),
    replacedInstanceId: t.exposeID('replacedInstanceId', {
      nullable: true,
      description: 'The instance that this one took over from, if one did.',
    }),
    predecessors: t.expose('predecessors', {
      type: [ConnectionPredecessor],
      description: `The instances before this one, the latest first, at most ${PREDECESSORS}. They are forgotten with the connection.`,
    }),
    actionNames: t.stringList({
      description: 'Names of the advertised actions: what the client says it can do, not what anybody may ask of it.',
      extensions: PURE,
      resolve: ({ actions }) => actions.map(({ name }) => name),
    }),
  }),
});

export const ConnectionSnapshotConnection = connectionOf(
  'ConnectionSnapshot',
  ConnectionSnapshot,
  'connection snapshots',
);

builder.queryFields((t) => ({
  connections: t.field({
    type: ConnectionSnapshotConnection,
    description: 'Live and recently lost connections in order of user and client. A user sees its own.',
    complexity: pageCost,
    args: {
      userId: t.arg.id({ description: 'Only this user’s; omitted, a user’s own and an administrator’s all.' }),
      nodeId: t.arg.id({ description: 'Only those on this node.' }),
      status: t.arg({ type: ConnectionStatusEnum, description: 'Only those with this status.' }),
      ...pageArguments,
    },
    resolve: (_, { userId, nodeId, status, ...page }, { core, who }) =>
      core.connections.list(who, { userId, nodeId, status }, pageOf(page)),
  }),
  connection: t.field({
    type: ConnectionSnapshot,
    nullable: true,
    description: 'One client’s connection; null when there is none, or it is another user’s.',
    args: {
      userId: t.arg.id({ required: true, description: 'The user.' }),
      clientId: t.arg.id({ required: true, description: 'The client.' }),
    },
    resolve: (_, key, { core, who }) => core.connections.get(who, key),
  }),
}));

const ConnectionEventType = builder.objectRef<Live<ConnectionEvent>>('ConnectionEvent').implement({
  description: 'One change of a connection, as it happened.',
  fields: (t) => ({
    change: t.field({
      type: ConnectionChangeEnum,
      description: 'What happened.',
      resolve: ({ event }) => event.change,
    }),
    connection: t.field({
      type: ConnectionSnapshot,
      description: 'The connection after the change.',
      resolve: ({ event }) => event.connection,
    }),
    cause: t.field({
      type: DisconnectCauseEnum,
      nullable: true,
      description:
        'Why the link went down, when it did. Of REPLACED: why the link of the earlier instance had gone down, REPLACED where it was still up.',
      resolve: ({ event }) => event.cause,
    }),
    at: t.field({ type: 'DateTime', description: 'When it happened.', resolve: ({ event }) => event.at }),
    missed: t.exposeInt('missed', {
      description: 'Events dropped since the one before, because they were not taken in time.',
    }),
  }),
});

builder.subscriptionField('connectionEvents', (t) =>
  t.field({
    type: ConnectionEventType,
    description:
      'Clients connecting, resuming, being replaced, falling silent, disconnecting and changing their actions, from now on.',
    args: { userId: t.arg.id({ description: 'Only this user’s; omitted, a user’s own and an administrator’s all.' }) },
    subscribe: (_, { userId }, { core, who }) => core.connections.events(who, userId ?? null),
    resolve: fresh,
  }),
);
