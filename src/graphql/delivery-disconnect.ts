import type { Disconnection } from '../core/delivery/observation.ts';
import { notFound } from '../core/errors.ts';
import { MAX_REASON } from '../core/limits.ts';
import { builder } from './builder.ts';
import { ConnectionSnapshot } from './connections.ts';
import { wireEnum } from './enums.ts';
import { Refusal, refusalOf } from './refusal.ts';

const DisconnectStateEnum = wireEnum<Disconnection['state']>('DisconnectState', 'What became of a disconnection.', {
  closed: 'The link is closed.',
  requested: 'The node of the link was asked to close it and has not said so yet.',
});

const DisconnectReceipt = builder.objectRef<Disconnection>('DisconnectReceipt').implement({
  description:
    'What became of a disconnection. It ends a link, no command: what was dispatched may have run, and its client may come back and report it.',
  fields: (t) => ({
    state: t.expose('state', { type: DisconnectStateEnum, description: 'What became of it.' }),
    connection: t.expose('connection', {
      type: ConnectionSnapshot,
      description: 'The connection as it stands after; the client may have connected again already.',
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
      'Closes a client’s link, for administrators, with close code 4451. The client may connect again at once: keeping it away is for its token. A client that was not seen lately is `not_found`, one whose link is down is refused. Written to the audit log.',
    args: {
      userId: t.arg.id({ required: true, description: 'The user.' }),
      clientId: t.arg.id({ required: true, description: 'The client.' }),
      reason: t.arg.string({ description: `Why, for the audit log: at most ${MAX_REASON} characters.` }),
    },
    resolve: async (_, { reason, ...key }, { core, who }) =>
      (await core.delivery.disconnectClient(who, key, reason ?? null).catch(refusalOf)) ?? notFound(),
  }),
);
