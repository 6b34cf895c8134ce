import type { ScopeView } from '../core/delivery/observation.ts';
import { SCOPE_HOLDERS } from '../core/limits.ts';
import { builder } from './builder.ts';
import { connectionOf } from './page.ts';

const CommandRef = builder.objectRef<ScopeView['holders'][number]>('CommandRef').implement({
  description: 'A command that holds a reservation, by its ids: look its record up by them.',
  fields: (t) => ({
    userId: t.exposeID('userId', { description: 'The user of the target.' }),
    clientId: t.exposeID('clientId', { description: 'The target.' }),
    commandId: t.exposeID('commandId', { description: 'The command.' }),
    deadline: t.expose('deadline', { type: 'DateTime', description: 'When it ends at the latest.' }),
  }),
});

const CapacityScope = builder.objectRef<ScopeView>('CapacityScope').implement({
  description:
    'An admission scope that holds something now. It need not be a commercial tenant. A reservation is of admission, not of execution: it says that a command was admitted and has not ended, never that anything runs.',
  fields: (t) => ({
    scopeId: t.exposeID('scopeId', {
      description: 'The scope: by default a user, or a group that the policy file names.',
    }),
    reservedCommands: t.exposeInt('reservedCommands', { description: 'Commands admitted in it and not ended.' }),
    limit: t.exposeInt('limit', {
      nullable: true,
      description:
        'How many it may hold at once by the policy of the node that answers; null where that knows no such scope.',
    }),
    oldestDeadline: t.expose('oldestDeadline', {
      type: 'DateTime',
      nullable: true,
      description: 'The earliest deadline among them.',
    }),
    holders: t.expose('holders', {
      type: [CommandRef],
      complexity: { field: 1, multiplier: SCOPE_HOLDERS },
      description: `Who holds the reservations, the earliest deadline first: at most ${SCOPE_HOLDERS}.`,
    }),
  }),
});

export const CapacityScopeConnection = connectionOf('CapacityScope', CapacityScope, { rows: 'capacity scopes' });
