/**
 * Connections: the type, the listing, the subscription, how often clients reconnect, and the actions that connected
 * clients advertise. Core decides access. An advertised action is never a permission to invoke it.
 */
import type { ConnectionChange, ConnectionEvent } from '../../core/backend.ts';
import type { ClientMeasure, ClientSample, FlappingSample, Reconnects } from '../../core/connections/reconnects.ts';
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
  type ActionEffects,
  type ActionGuards,
} from '../../core/connections/connection.ts';
import type { ActionSample, AdvertisedAction } from '../../core/core.ts';
import { clientKeyText, type ClientKey } from '../../core/ids.ts';
import {
  FILTER_TEXT_CHARS,
  LABELS_PER_FILTER,
  LABEL_MAX_CHARS,
  PREDECESSORS,
  RECONNECT_CLIENTS,
  TOP_CLIENTS_MAX,
  ACTION_SAMPLE,
  ACTION_SAMPLE_CONNECTIONS,
  CLIENT_ACTIONS,
} from '../../core/limits.ts';
import type { LiveEvent } from '../../core/live.ts';
import { thenDo, type MaybePromise } from '../../core/maybe-promise.ts';
import { SCAN_BUDGET } from '../../core/page.ts';
import {
  DERIVED,
  ENTITY,
  PURE,
  timedEntity,
  builder,
  fresh,
  ranged,
  wireEnum,
  fieldsOf,
  fieldsOfPart,
  flag,
  id,
  int,
  list,
  nullable,
  time,
  typed,
  NODE_ID,
  NodeInterface,
  nodeIdOf,
  text,
} from './builder.ts';
import { loadBy, type Context, type RowSize } from './context.ts';
import {
  CompletenessType,
  ROWS_OF_USER,
  connectionOf,
  forAdmins,
  pageArguments,
  pageCost,
  pageOf,
  scannedBy,
  scannedPageCost,
  scanCost,
} from './page.ts';

// Estimates the size of a connection in an answer, for the answer's budget of bytes.

/**
 * The size of a connection in an answer. Counts only the fields whose size the client decides, because a client's
 * advertisements alone may fill a frame.
 */
export const CONNECTION_SIZE: RowSize<Connection> = {
  fields: ['metadata', 'actionNames', 'actions'],
  bytes({ metadata, actions }, asks) {
    const said = asks('metadata') ? (metadata?.length ?? 0) : 0;
    if (!asks('actions')) return said + (asks('actionNames') ? sumsOf(actions).names : 0);
    const { names, texts, schemas, metadatas } = sumsOf(actions);
    const words = asks('summary') || asks('description') || asks('version') ? texts : 0;
    return said + 2 * names + words + (asks('schema') ? schemas : 0) + (asks('metadata') ? metadatas : 0);
  },
};

/** The bytes of all advertisements of a client, by the fields that show them. */
type Sums = { names: number; texts: number; schemas: number; metadatas: number };
const known = new WeakMap<readonly ActionAdvertisement[], Sums>();

/** Sums up the bytes of a list of actions, once for each list, because a list is immutable. */
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

const loadConnection = loadBy(clientKeyText, ({ core, requester }, keys) => core.connections.many(requester, keys));

/** Loads the connection of a client as a single row, which counts against the size of the answer. */
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

// The GraphQL types and fields that show how often clients reconnect, and which reconnect most.

const loadReconnects = loadBy(clientKeyText, ({ core }, keys) => core.connections.reconnects(keys));

builder.objectField(ConnectionSnapshot, 'reconnectsLastHour', (t) =>
  t.int({
    description:
      'How often the client’s link was opened again in the last hour, counted in steps of five minutes. Also counts links of earlier instances, and reconnects after the connection had been forgotten.',
    resolve: (connection, _, context) => loadReconnects(context, connection),
  }),
);

const FlappingClient = builder.objectRef<Reconnects>('FlappingClient').implement({
  description: 'A client that reconnected in the last hour.',
  fields: fieldsOf((t) => ({
    userId: id('The id of the user that the client belongs to.'),
    clientId: id('The client’s id.'),
    reconnects: int('How often its link was opened again in the last hour, counted in steps of five minutes.'),
    connection: t.field({
      type: ConnectionSnapshot,
      nullable: true,
      description: 'The client’s connection now; null if it is forgotten.',
      resolve: (client, _, context) => loadConnection(context, client),
    }),
  })),
});

const FlappingSampleType = builder.objectRef<FlappingSample>('FlappingSample').implement({
  description: `A bounded sample of the clients that reconnect most. At most ${RECONNECT_CLIENTS} clients are counted in five minutes.`,
  fields: fieldsOf(() => ({
    items: list(FlappingClient, 'The clients, most reconnects first.'),
    complete: flag('Whether every client that reconnected was looked at.'),
    completeness: typed(CompletenessType, 'Whether anything is missing, from which source, and why.'),
  })),
});

builder.queryField('flapping', (t) =>
  t.field({
    type: FlappingSampleType,
    complexity: forAdmins(pageCost),
    description: 'The clients that reconnected most in the last hour. Administrators only.',
    args: {
      first: t.arg.int({
        ...ranged({ min: 1, max: TOP_CLIENTS_MAX, default: TOP_CLIENTS_MAX }),
        description: `The most clients in the sample: 1 to ${TOP_CLIENTS_MAX}.`,
      }),
    },
    resolve: (_, { first }, { core, requester }) => core.connections.flapping(requester, first),
  }),
);

// The GraphQL types and the field that show which clients lead by a measure.

const ClientMeasureEnum = wireEnum<ClientMeasure>('ClientMeasure', 'What clients are chosen and ordered by.', {
  backlog: 'Those with the most commands that have not ended, most first. Such a client need not be connected.',
  reconnects: 'Those that reconnected most in the last hour, most first.',
  silence:
    'Those whose connection is forgotten next: lost ones, the one lost longest ago first, then those whose link is up, the one that was silent for longest first.',
});

/** A client in a sample. The rooms of commands and of calls add its figures. */
export const SampledClient = builder.objectRef<ClientKey>('SampledClient').implement({
  description: 'A client that leads by a measure, with its figures now.',
  fields: fieldsOf((t) => ({
    userId: id('The id of the user that the client belongs to.'),
    clientId: id('The client’s id.'),
    reconnectsLastHour: t.int({
      description: 'How often its link was opened again in the last hour, counted in steps of five minutes.',
      resolve: (client, _, context) => loadReconnects(context, client),
    }),
    connection: t.field({
      type: ConnectionSnapshot,
      nullable: true,
      description: 'The client’s connection now; null if it has none, or it is forgotten.',
      resolve: (client, _, context) => loadConnection(context, client),
    }),
  })),
});

const ClientSampleType = builder.objectRef<ClientSample>('ClientSample').implement({
  description: `A bounded sample of the clients that lead by a measure. At most ${SCAN_BUDGET} commands are counted for the measure BACKLOG.`,
  fields: fieldsOf(() => ({
    items: list(SampledClient, 'The clients, in the order of the measure.'),
    complete: flag('Whether every client that the measure concerns was looked at.'),
    completeness: typed(CompletenessType, 'Whether anything is missing, from which source, and why.'),
  })),
});

builder.queryField('topClients', (t) =>
  t.field({
    type: ClientSampleType,
    complexity: forAdmins(pageCost),
    description: 'The clients that lead by a measure, such as those with the largest backlog. Administrators only.',
    args: {
      by: t.arg({ type: ClientMeasureEnum, required: true, description: 'The measure.' }),
      first: t.arg.int({
        ...ranged({ min: 1, max: TOP_CLIENTS_MAX, default: TOP_CLIENTS_MAX }),
        description: `The most clients in the sample: 1 to ${TOP_CLIENTS_MAX}.`,
      }),
    },
    resolve: (_, { by, first }, { core, requester }) => core.connections.top(requester, by, first),
  }),
);

// The cost of the flags is part of the cost of their object.
const ActionGuardsType = builder.objectRef<ActionGuards>('ActionGuards').implement({
  description:
    'What stands between a command and an action’s handler, as the client says. The relay does not check it.',
  extensions: ENTITY,
  fields: fieldsOf(() => ({
    approval: nullable.flag('Whether somebody at the client approves each command; null if the client does not say.', {
      complexity: 0,
    }),
    lease: nullable.flag(
      'Whether one command runs at a time, and others are refused as long as it runs; null if the client does not say.',
      { complexity: 0 },
    ),
  })),
});

const ActionEffectsType = builder.objectRef<ActionEffects>('ActionEffects').implement({
  description: 'What an action does, as its client says. These are hints for people and tools, never a promise.',
  extensions: ENTITY,
  fields: fieldsOf(() => ({
    readOnly: nullable.flag('Whether the action changes nothing; null if the client does not say.', { complexity: 0 }),
    destructive: nullable.flag(
      'Whether the action may delete or overwrite something; null if the client does not say.',
      { complexity: 0 },
    ),
    idempotent: nullable.flag(
      'Whether running the action again with the same arguments changes nothing more; null if the client does not say.',
      { complexity: 0 },
    ),
    openWorld: nullable.flag(
      'Whether the action acts on something outside the client; null if the client does not say.',
      { complexity: 0 },
    ),
  })),
});

const ActionAdvertisementType = builder.objectRef<ActionAdvertisement>('ActionAdvertisement').implement({
  description:
    'An action as a client advertised it, stored unchanged. It is evidence that the client can run it, never that a caller may invoke it: central policy, the client’s own policy, approval, argument checks, targeting, leases and the handler can each still refuse it.',
  extensions: ENTITY,
  fields: fieldsOf(() => ({
    name: text('The name with which callers invoke the action.'),
    summary: nullable.text('One line for people; null if the client sent none.'),
    description: nullable.text('A longer text for people; null if the client sent none.'),
    version: nullable.text('The client’s own version of the action; null if it sent none.'),
    checksArguments: nullable.flag(
      'Whether the client says that it checks arguments before it runs the action; null if it does not say.',
    ),
    schema: nullable.json('The JSON Schema of the action’s arguments; null if the client sent none.'),
    metadata: nullable.json('Other data that the client sent with the action; null if it sent none.'),
    guards: nullable.typed(
      ActionGuardsType,
      'What stands between a command and the action’s handler; null if the client sent nothing about it.',
    ),
    effects: nullable.typed(ActionEffectsType, 'What the action does; null if the client sent nothing about it.'),
  })),
});

const ActionList = builder.objectRef<Connection>('ActionList').implement({
  description: `All actions that one client advertises now: at most ${CLIENT_ACTIONS}, not paged.`,
  extensions: ENTITY,
  fields: (t) => ({
    items: t.expose('actions', {
      type: [ActionAdvertisementType],
      description: 'The advertisements, in the client’s order.',
    }),
    completeness: t.field({
      type: CompletenessType,
      description: 'Whether anything is missing, from which source, and why.',
      resolve: (connection, _, { core }) => core.actions.completeness(connection),
    }),
  }),
});

builder.objectField(ConnectionSnapshot, 'actions', (t) =>
  t.field({
    type: ActionList,
    description: 'The actions that the client says it can run. They do not say what a caller may invoke.',
    extensions: PURE,
    resolve: (connection) => connection,
  }),
);

const AdvertisedActionType = builder.objectRef<AdvertisedAction>('AdvertisedAction').implement({
  description: 'One advertised action, with the client that advertises it.',
  fields: fieldsOf(() => ({
    userId: id('The id of the user that the client belongs to.'),
    clientId: id('The id of the client that advertises the action.'),
    instanceId: id('The id of the client instance that advertised the action.'),
    action: typed(ActionAdvertisementType, 'The advertised action.'),
  })),
});

const ActionSampleType = builder.objectRef<ActionSample>('ActionSample').implement({
  description: `A bounded sample over live connections: at most ${ACTION_SAMPLE} advertisements of at most ${ACTION_SAMPLE_CONNECTIONS} connections, and about 2 MiB.`,
  fields: fieldsOf(() => ({
    items: list(AdvertisedActionType, 'The sampled advertisements.', {
      complexity: { field: 1, multiplier: ACTION_SAMPLE },
    }),
    complete: flag('Whether the sample holds every advertisement of every live connection.'),
    completeness: typed(CompletenessType, 'Whether anything is missing, from which source, and why.'),
  })),
});

builder.queryField('actions', (t) =>
  t.field({
    type: ActionSampleType,
    description: 'A bounded sample of the actions that connected clients advertise. Administrators only.',
    complexity: forAdmins(() => scanCost(0)),
    args: {
      name: t.arg.string({ description: 'Only advertisements of the action with this name.' }),
      text: t.arg.string({
        description: `Only advertisements of actions whose name contains this text, upper or lower case, at most ${FILTER_TEXT_CHARS} characters.`,
      }),
    },
    resolve: (_, { name, text }, { core, requester, reading }) =>
      core.actions.sample(requester, name ?? null, reading, text ?? null),
  }),
);
