/** Defines the schema of capacity scopes: how many commands each may have, and which commands hold its reservations. */
import type { ScopeView } from '../../core/commands/inspection.ts';
import { SCOPE_HOLDERS } from '../../core/limits.ts';
import { builder } from './builder.ts';
import { fieldsOf, id, int, list, nullable, time } from './fields.ts';
import { nodeIdOf } from './node-ids.ts';
import { NODE_ID, NodeInterface } from './node-interface.ts';
import { connectionOf } from './page.ts';

const CommandRef = builder.objectRef<ScopeView['holders'][number]>('CommandRef').implement({
  description: 'The ids of a command that holds a reservation; `delivery.status` shows its record.',
  fields: fieldsOf(() => ({
    userId: id('The id of the user that the target client belongs to.'),
    clientId: id('The id of the target client.'),
    commandId: id('The command’s id.'),
    deadline: time('When the command ends at the latest.'),
  })),
});

const CapacityScope = builder.objectRef<ScopeView>('CapacityScope').implement({
  description:
    'An admission scope that holds reservations now. It need not be a commercial tenant. A reservation is of admission, not of execution: it says that a command was admitted and has not ended, never that anything runs.',
  interfaces: [NodeInterface],
  fields: fieldsOf((t) => ({
    id: t.id({ ...NODE_ID, resolve: (row) => nodeIdOf('CapacityScope', row) }),
    scopeId: id('The scope’s id: by default a user’s id, or the name of a group in the policy file.'),
    reservedCommands: int('How many commands were admitted in the scope and have not ended.'),
    limit: nullable.int(
      'How many commands the scope may hold at once, by the policy of the node that answers; null if that policy has no such scope.',
    ),
    oldestDeadline: nullable.time('The earliest deadline of the commands in the scope; null if there is none.'),
    holders: list(
      CommandRef,
      `The commands that hold the reservations, earliest deadline first: at most ${SCOPE_HOLDERS}.`,
      { complexity: { field: 1, multiplier: SCOPE_HOLDERS } },
    ),
  })),
});

export const CapacityScopeConnection = connectionOf('CapacityScope', CapacityScope, { rows: 'capacity scopes' });
