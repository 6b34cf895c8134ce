/** The mutation by which an operator disconnects a client. Core checks the rights and acts. */
import type { Disconnection } from '../../core/delivery/observation.ts';
import { notFound } from '../../core/errors.ts';
import { MAX_REASON } from '../../core/limits.ts';
import { builder } from './builder.ts';
import { ConnectionSnapshot } from './connections.ts';
import { wireEnum } from './enums.ts';
import { Refusal, refusalOf } from './refusal.ts';

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
  fields: (t) => ({
    state: t.expose('state', { type: DisconnectStateEnum, description: 'Whether the link is closed already.' }),
    connection: t.expose('connection', {
      type: ConnectionSnapshot,
      description: 'The connection after the request; the client may have connected again already.',
    }),
  }),
});

const DisconnectResult = builder.unionType('DisconnectResult', {
  description: 'The receipt of a disconnection, or a refusal.',
  types: [DisconnectReceipt, Refusal],
  resolveType: (answer) => ('kind' in answer ? 'Refusal' : 'DisconnectReceipt'),
});

builder.mutationField('disconnectClient', (t) =>
  t.field({
    type: DisconnectResult,
    description:
      'Closes a client’s link with close code 4451. Administrators only. The client may connect again at once: to keep it away, its token must no longer be accepted. Answers `not_found` if the client has no recent connection; refuses if its link is down. The audit log records the request.',
    args: {
      userId: t.arg.id({ required: true, description: 'The user’s id.' }),
      clientId: t.arg.id({ required: true, description: 'The client’s id.' }),
      reason: t.arg.string({
        description: `The reason for the audit log, at most ${MAX_REASON} characters. Omitted: none.`,
      }),
    },
    resolve: async (_, { reason, ...key }, { core, requester, notes }) =>
      (await core.delivery.disconnectClient(requester, key, reason ?? null, notes?.requestId).catch(refusalOf)) ??
      notFound(),
  }),
);
