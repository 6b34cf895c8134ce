/** Defines the mutation by which an operator disconnects a client. Core checks the permission and disconnects. */
import type { Disconnection } from '../../core/commands/operator-actions.ts';
import { MAX_REASON } from '../../core/limits.ts';
import { builder, wireEnum } from './builder.ts';
import { ConnectionSnapshot } from './connections.ts';
import { fieldsOf, typed } from './fields.ts';
import { answered, orRefusal } from './refusal.ts';

const DisconnectStateEnum = wireEnum<Disconnection['state']>(
  'DisconnectState',
  'The state of a requested disconnection.',
  {
    closed: 'The link is closed.',
    requested: 'The link’s node was asked to close it and has not confirmed that yet.',
  },
);

const DisconnectReceipt = builder.objectRef<Disconnection>('DisconnectReceipt').implement({
  description:
    'The state of a requested disconnection. It ends a link, not a command: dispatched commands may have run, and the client may connect again and report their ends.',
  fields: fieldsOf(() => ({
    state: typed(DisconnectStateEnum, 'Whether the link is closed already.'),
    connection: typed(
      ConnectionSnapshot,
      'The connection after the request; the client may have connected again already.',
    ),
  })),
});

const DisconnectResult = orRefusal(
  'DisconnectResult',
  DisconnectReceipt,
  'The receipt of a disconnection, or a refusal.',
);

builder.mutationField('disconnectClient', (t) =>
  t.field({
    type: DisconnectResult,
    description:
      'Closes a client’s link with close code 4451. Administrators only. The client may connect again at once: to keep it away, its token must no longer be accepted. Refuses with `not_found` if the client has no recent connection, and with `not_connected` if its link is down. The audit log records the request.',
    args: {
      userId: t.arg.id({ required: true, description: 'The user’s id.' }),
      clientId: t.arg.id({ required: true, description: 'The client’s id.' }),
      reason: t.arg.string({
        description: `The reason for the audit log, at most ${MAX_REASON} characters. Omitted: none.`,
      }),
    },
    resolve: (_, { reason, ...key }, { core, requester, notes }) =>
      answered(() => core.delivery.disconnectClient(requester, key, reason ?? null, notes?.requestId)),
  }),
);
