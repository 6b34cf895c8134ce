/**
 * Defines two samples of clients for administrators: clients that reconnect often, and clients that rank first by a
 * measure.
 */
import type { ClientMeasure, ClientSample, FlappingSample, Reconnects } from '../../core/connections/reconnects.ts';
import { clientKeyText, type ClientKey } from '../../core/ids.ts';
import { RECONNECT_CLIENTS, TOP_CLIENTS_MAX } from '../../core/limits.ts';
import { SCAN_BUDGET } from '../../core/page.ts';
import { builder, ranged, wireEnum } from './builder.ts';
import { ConnectionSnapshot, loadConnection } from './connections.ts';
import { fieldsOf, flag, id, int, list, typed } from './fields.ts';
import { loadBy } from './loaders.ts';
import { CompletenessType, forAdmins, pageCost } from './page.ts';

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

// The types and the field of the clients that rank first by a measure.

const ClientMeasureEnum = wireEnum<ClientMeasure>('ClientMeasure', 'What clients are chosen and ordered by.', {
  backlog: 'Those with the most commands that have not ended, most first. Such a client need not be connected.',
  reconnects: 'Those that reconnected most in the last hour, most first.',
  silence:
    'Those whose connection is forgotten next: lost ones, the one lost longest ago first, then those whose link is up, the one that was silent for longest first.',
});

/** A client in a sample. The files of commands and of calls add fields with its figures. */
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
