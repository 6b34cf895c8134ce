/** The GraphQL types and fields that show how often clients reconnect, and which reconnect most. */
import type { FlappingSample, Reconnects } from '../../core/connections/reconnects.ts';
import { FLAPPING_MAX, RECONNECT_CLIENTS } from '../../core/limits.ts';
import { builder } from './builder.ts';
import { ConnectionSnapshot } from './connections.ts';
import { CompletenessType, forAdmins, pageCost } from './page.ts';

builder.objectField(ConnectionSnapshot, 'reconnectsLastHour', (t) =>
  t.int({
    description:
      'How often the client’s link was opened again in the last hour, counted in steps of five minutes. Also counts links of earlier instances, and reconnects after the connection had been forgotten.',
    resolve: (connection, _, { loaders }) => loaders.reconnects(connection),
  }),
);

const FlappingClient = builder.objectRef<Reconnects>('FlappingClient').implement({
  description: 'A client that reconnected in the last hour.',
  fields: (t) => ({
    userId: t.exposeID('userId', { description: 'The id of the user that the client belongs to.' }),
    clientId: t.exposeID('clientId', { description: 'The client’s id.' }),
    reconnects: t.exposeInt('reconnects', {
      description: 'How often its link was opened again in the last hour, counted in steps of five minutes.',
    }),
    connection: t.field({
      type: ConnectionSnapshot,
      nullable: true,
      description: 'The client’s connection now; null if it is forgotten.',
      resolve: (client, _, { loaders }) => loaders.connection(client),
    }),
  }),
});

const FlappingSampleType = builder.objectRef<FlappingSample>('FlappingSample').implement({
  description: `A bounded sample of the clients that reconnect most. At most ${RECONNECT_CLIENTS} clients are counted in five minutes.`,
  fields: (t) => ({
    items: t.expose('items', {
      type: [FlappingClient],
      description: 'The clients, most reconnects first.',
    }),
    complete: t.exposeBoolean('complete', { description: 'Whether every client that reconnected was looked at.' }),
    completeness: t.expose('completeness', {
      type: CompletenessType,
      description: 'Whether anything is missing, from which source, and why.',
    }),
  }),
});

builder.queryField('flapping', (t) =>
  t.field({
    type: FlappingSampleType,
    complexity: forAdmins(pageCost),
    description: 'The clients that reconnected most in the last hour. Administrators only.',
    args: {
      first: t.arg.int({
        required: true,
        defaultValue: FLAPPING_MAX,
        description: `The most clients in the sample: 1 to ${FLAPPING_MAX}.`,
        extensions: { minimum: 1, maximum: FLAPPING_MAX },
      }),
    },
    resolve: (_, { first }, { core, requester }) => core.connections.flapping(requester, first),
  }),
);
