/** The GraphQL type of capacity scopes: how many commands each may have, and which commands hold its reservations. */
import type { ScopeView } from '../../core/delivery/observation.ts';
import { SCOPE_HOLDERS } from '../../core/limits.ts';
import { builder } from './builder.ts';
import { nodeIdOf } from './node-ids.ts';
import { NODE_ID, NodeInterface } from './node-interface.ts';
import { connectionOf } from './page.ts';

const CommandRef = builder.objectRef<ScopeView['holders'][number]>('CommandRef').implement({
  description: 'The ids of a command that holds a reservation; `delivery.status` shows its record.',
  fields: (t) => ({
    userId: t.exposeID('userId', { description: 'The id of the user that the target client belongs to.' }),
    clientId: t.exposeID('clientId', { description: 'The id of the target client.' }),
    commandId: t.exposeID('commandId', { description: 'The command’s id.' }),
    deadline: t.expose('deadline', { type: 'DateTime', description: 'When the command ends at the latest.' }),
  }),
});

const CapacityScope = builder.objectRef<ScopeView>('CapacityScope').implement({
  description:
    'An admission scope that holds reservations now. It need not be a commercial tenant. A reservation is of admission, not of execution: it says that a command was admitted and has not ended, never that anything runs.',
  interfaces: [NodeInterface],
  fields: (t) => ({
    id: t.id({ ...NODE_ID, resolve: (row) => nodeIdOf('CapacityScope', row) }),
    scopeId: t.exposeID('scopeId', {
      description: 'The scope’s id: by default a user’s id, or the name of a group in the policy file.',
    }),
    reservedCommands: t.exposeInt('reservedCommands', {
      description: 'How many commands were admitted in the scope and have not ended.',
    }),
    limit: t.exposeInt('limit', {
      nullable: true,
      description:
        'How many commands the scope may hold at once, by the policy of the node that answers; null if that policy has no such scope.',
    }),
    oldestDeadline: t.expose('oldestDeadline', {
      type: 'DateTime',
      nullable: true,
      description: 'The earliest deadline of the commands in the scope; null if there is none.',
    }),
    holders: t.expose('holders', {
      type: [CommandRef],
      complexity: { field: 1, multiplier: SCOPE_HOLDERS },
      description: `The commands that hold the reservations, earliest deadline first: at most ${SCOPE_HOLDERS}.`,
    }),
  }),
});

export const CapacityScopeConnection = connectionOf('CapacityScope', CapacityScope, { rows: 'capacity scopes' });
