/** Defines the type, the listing and the subscription of connections. Core decides who may see them. */
import type { ConnectionChange, ConnectionEvent } from '../../core/backend.ts';
import {
  connectionStatus,
  derivedChangeAt,
  heartbeat,
  recentlyReplaced,
  type ActionAdvertisement,
  type ClientType,
  type Connection,
  type ConnectionStatus,
  type DisconnectCause,
  type HeartbeatIndicator,
  type Predecessor,
} from '../../core/connections/connection.ts';
import { clientKeyText, type ClientKey } from '../../core/ids.ts';
import { FILTER_TEXT_CHARS, LABELS_PER_FILTER, LABEL_MAX_CHARS, PREDECESSORS } from '../../core/limits.ts';
import type { LiveEvent } from '../../core/live.ts';
import { thenDo, type MaybePromise } from '../../core/maybe-promise.ts';
import { SCAN_BUDGET } from '../../core/page.ts';
import type { RowSize } from './answer-budget.ts';
import { builder, wireEnum } from './builder.ts';
import { DERIVED, ENTITY, PURE, timedEntity } from './cache-hints.ts';
import type { Context } from './context.ts';
import { fieldsOf, fieldsOfPart, id, int, list, nullable, time, typed } from './fields.ts';
import { loadBy } from './loaders.ts';
import { nodeIdOf } from './node-ids.ts';
import { NODE_ID, NodeInterface } from './node-interface.ts';
import { ROWS_OF_USER, connectionOf, pageArguments, pageOf, scannedBy, scannedPageCost } from './page.ts';
import { fresh } from './subscription-fields.ts';

/**
 * The size of a connection in an answer. Only fields whose size the client decides are counted, because the
 * advertisements of one client may fill a whole frame.
 */
export const CONNECTION_SIZE: RowSize<Connection> = {
  fields: ['metadata', 'actionNames', 'actions'],
  bytes({ metadata, actions }, asks) {
    const metadataBytes = asks('metadata') ? (metadata?.length ?? 0) : 0;
    if (!asks('actions')) return metadataBytes + (asks('actionNames') ? sumsOf(actions).names : 0);
    const { names, texts, schemas, metadatas } = sumsOf(actions);
    const textBytes = asks('summary') || asks('description') || asks('version') ? texts : 0;
    return metadataBytes + 2 * names + textBytes + (asks('schema') ? schemas : 0) + (asks('metadata') ? metadatas : 0);
  },
};

/** The bytes of all actions that a client advertises, by the fields that show them. */
type Sums = { names: number; texts: number; schemas: number; metadatas: number };
const known = new WeakMap<readonly ActionAdvertisement[], Sums>();

/** Returns the bytes of a list of actions. They are computed once per list, because a list is immutable. */
function sumsOf(actions: readonly ActionAdvertisement[]): Sums {
  const before = known.get(actions);
  if (before) return before;
  const sums: Sums = { names: 0, texts: 0, schemas: 0, metadatas: 0 };
  for (const { name, summary, description, version, schema, metadata } of actions) {
    sums.names += name.length + 16;
    sums.texts += (summary?.length ?? 0) + (description?.length ?? 0) + (version?.length ?? 0);
    sums.schemas += schema?.length ?? 0;
    sums.metadatas += metadata?.length ?? 0;
  }
  known.set(actions, sums);
  return sums;
}

export const ConnectionStatusEnum = wireEnum<ConnectionStatus>('ConnectionStatus', 'Whether a client is reachable.', {
  connected: 'Its link is up, and the client was heard from within the last 45 seconds.',
  disconnected: 'Its link is down, or the client has been silent for 60 seconds.',
  stale: 'Its link is up, but the client has been silent for 45 seconds.',
});

export const ClientTypeEnum = wireEnum<ClientType>('ClientType', 'What kind of program a client is.', {
  browser: 'A browser: an extension or a page.',
  console: 'A console program.',
  mobile: 'A mobile app.',
  web: 'A web app.',
});

/** The description of every filter by labels in the schema. */
export const LABELS_DESCRIPTION = `Only with all of these labels, each \`key=value\`: at most ${LABELS_PER_FILTER}, each at most ${LABEL_MAX_CHARS} characters. Labels are the texts, numbers and booleans at the top level of a client’s metadata and in its member \`labels\`.`;

const HeartbeatEnum = wireEnum<HeartbeatIndicator>(
  'HeartbeatIndicator',
  'How a client answers pings; derived when it is read.',
  {
    ok: 'The last ping was answered in time.',
    late: 'The client did not answer its last ping.',
    missed: 'The client’s status is not `connected`.',
  },
);

export const DisconnectCauseEnum = wireEnum<DisconnectCause>('DisconnectCause', 'Why a link went down.', {
  client_closed: 'The client closed it: it announced that it leaves, or it sent a close frame.',
  lost: 'Its socket ended without a close frame.',
  reset: 'Its socket was reset by the client’s side.',
  error: 'Its socket failed with another error.',
  replaced: 'A newer link of the same client replaced it.',
  heartbeat_lost: 'The client was silent for 60 seconds.',
  token_expired: 'The link’s token expired and was not renewed.',
  protocol_error: 'The client sent too many invalid frames.',
  back_pressure: 'The client did not read what the relay sent.',
  node_drained: 'Its node drained or shut down.',
  node_lost: 'Its node stopped reporting and lost its lease.',
  operator: 'An operator closed it.',
});

const ConnectionChangeEnum = wireEnum<ConnectionChange>('ConnectionChange', 'What happened to a connection.', {
  connected: 'A client connected.',
  resumed: 'The same instance of the client connected again.',
  replaced: 'A new instance of the client replaced the previous one.',
  stale: 'The client has been silent for 45 seconds.',
  disconnected: 'The link went down.',
  actions_changed: 'The client changed the actions that it advertises.',
});

const ConnectionPredecessor = builder.objectRef<Predecessor>('ConnectionPredecessor').implement({
  description: 'An earlier instance of a client, replaced by a later one.',
  extensions: ENTITY,
  fields: fieldsOf(() => ({
    instanceId: id('The id of the earlier instance.'),
    nodeId: id('The id of the node that held the instance’s last link.'),
    replacedAt: time('When the later instance connected.'),
    cause: typed(DisconnectCauseEnum, 'Why the earlier instance’s link had gone down; REPLACED if it was still up.'),
  })),
});

export const ConnectionSnapshot = builder.objectRef<Connection>('ConnectionSnapshot').implement({
  description: 'A client’s link to one node, as the node last recorded it: live, or down for less than a minute.',
  extensions: timedEntity(derivedChangeAt),
  interfaces: [NodeInterface],
  fields: fieldsOf((t) => ({
    id: t.id({ ...NODE_ID, resolve: (row) => nodeIdOf('ConnectionSnapshot', row) }),
    userId: id('The id of the user that the client belongs to.'),
    clientId: id('The client’s id, stable across its restarts.'),
    instanceId: id('The id of the client’s current run; a restart changes it.'),
    nodeId: id('The id of the node that owns the link.'),
    status: t.field({
      type: ConnectionStatusEnum,
      description: 'Derived: whether the client is reachable, from the state of the link and `lastSeenAt`.',
      extensions: DERIVED,
      resolve: (connection, _, { core }) => connectionStatus(connection, core.clock.now()),
    }),
    clientType: typed(ClientTypeEnum, 'What kind of program the client says it is.'),
    knowsPlaces: t.boolean({
      description: 'Whether a call may name a context of the client.',
      resolve: ({ places }) => places === true,
    }),
    metadata: nullable.json('What the client said about itself, stored unchanged; null if it said nothing.'),
    connectedAt: time('When the relay bound this link to the client.'),
    lastSeenAt: time('When the client was last heard from.'),
    disconnectedAt: nullable.time('When the link went down; null while it is up.'),
    disconnectCause: nullable.typed(
      DisconnectCauseEnum,
      'Why the link went down, as far as it is proven; null while it is up.',
    ),
    closeCode: nullable.int(
      'The code of the client’s close frame; null if it sent no close frame or none with a code, and while the link is up.',
    ),
    heartbeat: t.field({
      type: HeartbeatEnum,
      description: 'Derived: how the client answers pings. The relay sends one every 20 seconds by default.',
      extensions: DERIVED,
      resolve: (connection, _, { core }) => heartbeat(connection, core.clock.now()),
    }),
    recentlyReplaced: t.boolean({
      description: 'Derived: whether this instance replaced another one within the last 60 seconds.',
      extensions: DERIVED,
      resolve: (connection, _, { core }) => recentlyReplaced(connection, core.clock.now()),
    }),
    replacedInstanceId: nullable.id('The id of the instance that this one replaced; null if it replaced none.'),
    predecessors: list(
      ConnectionPredecessor,
      `Earlier instances of the client, latest first, at most ${PREDECESSORS}. They are forgotten with the connection.`,
    ),
    actionNames: t.stringList({
      description: 'Names of the actions that the client says it can run. They do not say what a caller may invoke.',
      extensions: PURE,
      resolve: ({ actions }) => actions.map(({ name }) => name),
    }),
  })),
});

export const loadConnection = loadBy(clientKeyText, ({ core, requester }, keys) =>
  core.connections.many(requester, keys),
);

/** Loads the connection of a client as a single row, whose size counts against the budget of the answer. */
export function loadSized(context: Context, client: ClientKey): MaybePromise<Connection | null> {
  return thenDo(loadConnection(context, client), (row) => row && context.budget.row(row, CONNECTION_SIZE));
}

export const ConnectionSnapshotConnection = connectionOf('ConnectionSnapshot', ConnectionSnapshot, {
  rows: 'connection snapshots',
  size: CONNECTION_SIZE,
});

builder.queryFields((t) => ({
  connections: t.field({
    type: ConnectionSnapshotConnection,
    description: `Live and recently lost connections, in order of user and client. A user sees its own. A page reads at most ${SCAN_BUDGET} connections; if it ends there, \`completeness\` has the reason LIMIT_REACHED, and the listing continues with the next page.`,
    complexity: ({ first, after: _, ...filter }) => scannedPageCost({ first }, scannedBy(filter)),
    args: {
      userId: t.arg.id(ROWS_OF_USER),
      nodeId: t.arg.id({ description: 'Only connections on this node.' }),
      status: t.arg({ type: ConnectionStatusEnum, description: 'Only connections with this status.' }),
      clientType: t.arg({ type: ClientTypeEnum, description: 'Only clients of this kind.' }),
      action: t.arg.string({ description: 'Only clients that advertise an action of this name.' }),
      text: t.arg.string({
        description: `Only connections whose user id, client id, or value of a label contains this text, in any letter case: 1 to ${FILTER_TEXT_CHARS} characters.`,
      }),
      labels: t.arg.stringList({ description: LABELS_DESCRIPTION }),
      onSilentNodes: t.arg.boolean({
        description:
          'True: only connections on nodes that are silent, as they were last recorded. False or omitted: all.',
      }),
      ...pageArguments,
    },
    resolve: (_, { first, after, ...filter }, { core, requester, reading }) =>
      core.connections.list(requester, filter, pageOf({ first, after }), reading),
  }),
  connection: t.field({
    type: ConnectionSnapshot,
    nullable: true,
    description: 'The connection of one client; null if there is none or it belongs to another user.',
    args: {
      userId: t.arg.id({ required: true, description: 'The user’s id.' }),
      clientId: t.arg.id({ required: true, description: 'The client’s id.' }),
    },
    resolve: (_, key, { core, requester }) => core.connections.get(requester, key),
  }),
}));

const ConnectionEventType = builder.objectRef<LiveEvent<ConnectionEvent>>('ConnectionEvent').implement({
  description: 'One change of a connection.',
  fields: fieldsOf((t) => ({
    ...fieldsOfPart(t, 'event', {
      change: typed(ConnectionChangeEnum, 'What happened.'),
      connection: typed(ConnectionSnapshot, 'The connection after the change.'),
      cause: nullable.typed(
        DisconnectCauseEnum,
        'Why the link went down; null for a change in which no link went down. For the change REPLACED: why the earlier instance’s link had gone down, or REPLACED if it was still up.',
      ),
      at: time('When the change happened.'),
    }),
    missed: int(
      'At least how many events were lost since the previous one: those that the subscriber read too slowly, and one for each interruption between the relay and other relays.',
    ),
  })),
});

builder.subscriptionField('connectionEvents', (t) =>
  t.field({
    type: ConnectionEventType,
    description:
      'Changes of connections from now on: clients that connect, resume, are replaced, fall silent, disconnect or change their actions.',
    args: {
      userId: t.arg.id(ROWS_OF_USER),
    },
    subscribe: (_, { userId }, { core, requester }) => core.connections.events(requester, userId ?? null),
    resolve: fresh,
  }),
);
