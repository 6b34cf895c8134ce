import type { ActionAdvertisement, Connection } from '../core/connections/connection.ts';
import type { ActionSample, AdvertisedAction } from '../core/core.ts';
import { fromJson } from '../core/json.ts';
import { ACTION_SAMPLE, ACTION_SAMPLE_CONNECTIONS, CLIENT_ACTIONS } from '../core/limits.ts';
import { builder } from './builder.ts';
import { ConnectionSnapshot } from './connections.ts';
import { ENTITY, PURE } from './nature.ts';
import { CompletenessType } from './page.ts';

const ActionAdvertisementType = builder.objectRef<ActionAdvertisement>('ActionAdvertisement').implement({
  description:
    'An action as a client advertised it, kept as sent. It is evidence that the client can, never that anybody may: central policy, the client’s own policy, approval, argument checks, targeting, leases and the handler can each still refuse it.',
  extensions: ENTITY,
  fields: (t) => ({
    name: t.exposeString('name', { description: 'The name to invoke it by.' }),
    summary: t.exposeString('summary', { nullable: true, description: 'One line for a reader.' }),
    description: t.exposeString('description', { nullable: true, description: 'More for a reader.' }),
    version: t.exposeString('version', { nullable: true, description: 'The client’s own version of it.' }),
    checksArguments: t.exposeBoolean('checksArguments', {
      nullable: true,
      description: 'Whether the client says that it checks arguments before running.',
    }),
    schema: t.field({
      type: 'JSON',
      nullable: true,
      description: 'The JSON Schema of its arguments.',
      extensions: PURE,
      resolve: ({ schema }) => fromJson(schema),
    }),
    metadata: t.field({
      type: 'JSON',
      nullable: true,
      description: 'Whatever else the client said of it.',
      extensions: PURE,
      resolve: ({ metadata }) => fromJson(metadata),
    }),
  }),
});

const ActionList = builder.objectRef<Connection>('ActionList').implement({
  description: `All that one client advertises now: at most ${CLIENT_ACTIONS}, not paged.`,
  extensions: ENTITY,
  fields: (t) => ({
    items: t.expose('actions', {
      type: [ActionAdvertisementType],
      description: 'The advertisements, in the client’s order.',
    }),
    completeness: t.field({
      type: CompletenessType,
      description: 'What was observed.',
      resolve: (connection, _, { core }) => core.actions.completeness(connection),
    }),
  }),
});

builder.objectField(ConnectionSnapshot, 'actions', (t) =>
  t.field({
    type: ActionList,
    description: 'What the client says it can do; never what anybody may ask of it.',
    extensions: PURE,
    resolve: (connection) => connection,
  }),
);

const AdvertisedActionType = builder.objectRef<AdvertisedAction>('AdvertisedAction').implement({
  description: 'An advertisement with the client that made it.',
  fields: (t) => ({
    userId: t.exposeID('userId', { description: 'The user of the client.' }),
    clientId: t.exposeID('clientId', { description: 'The client.' }),
    instanceId: t.exposeID('instanceId', { description: 'The instance that advertised it.' }),
    action: t.expose('action', { type: ActionAdvertisementType, description: 'The advertisement.' }),
  }),
});

const ActionSampleType = builder.objectRef<ActionSample>('ActionSample').implement({
  description: `A bounded sample over live connections: at most ${ACTION_SAMPLE} advertisements of at most ${ACTION_SAMPLE_CONNECTIONS} connections.`,
  fields: (t) => ({
    items: t.expose('items', {
      type: [AdvertisedActionType],
      complexity: { field: 1, multiplier: ACTION_SAMPLE },
      description: 'The advertisements.',
    }),
    complete: t.exposeBoolean('complete', {
      description: 'Whether the sample holds every advertisement that there is.',
    }),
    completeness: t.expose('completeness', { type: CompletenessType, description: 'What was and was not observed.' }),
  }),
});

builder.queryField('actions', (t) =>
  t.field({
    type: ActionSampleType,
    description: 'A bounded sample of what connected clients advertise. Administrators only.',
    args: { name: t.arg.string({ description: 'Only the action of this name.' }) },
    resolve: (_, { name }, { core, who }) => core.actions.sample(who, name ?? null),
  }),
);
