/** Defines the query that says who may invoke actions on the clients of a user. The decision is core's. */
import type { ActionPermissions, CallPermission } from '../../core/calls/permissions.ts';
import { PERMITTED_ACTIONS, PERMITTED_ACTION_COST } from '../../core/limits.ts';
import { builder } from './builder.ts';
import { PreflightVerdictEnum } from './calls-preflight.ts';
import { CommandCallerKind } from './delivery.ts';
import { fieldsOf, id, list, text, typed } from './fields.ts';

/** The number of kinds of callers: administrators, the user, the user's agents, and viewers of the user's sites. */
const KINDS = 4;

const CallPermissionType = builder.objectRef<CallPermission>('CallPermission').implement({
  description: 'Whether callers of one kind may invoke an action.',
  fields: fieldsOf(() => ({
    kind: typed(CommandCallerKind, 'The kind of callers.'),
    verdict: typed(
      PreflightVerdictEnum,
      '`PASS`: they may. `REFUSE`: they may not. `UNKNOWN`: some may and some may not, or the relay cannot tell.',
    ),
    message: text('The answer in words, for people.'),
  })),
});

const ActionPermissionsType = builder.objectRef<ActionPermissions>('ActionPermissions').implement({
  description:
    'Who may invoke an action on the clients of a user, as far as the central policy and the scopes of tokens decide it. The client can still refuse each call.',
  fields: fieldsOf(() => ({
    action: text('The name of the action.'),
    userId: id('The id of the user that the clients belong to.'),
    callers: list(
      CallPermissionType,
      `For administrators, the user, agents of the user, and viewers of the user’s sites: at most ${KINDS}.`,
      {
        complexity: { field: 1, multiplier: KINDS },
      },
    ),
  })),
});

builder.queryField('actionPermissions', (t) =>
  t.field({
    type: [ActionPermissionsType],
    description: `Who may invoke these actions on the clients of a user, by the rules that decide an invocation: at most ${PERMITTED_ACTIONS} rows, in the order of the names. The relay keeps no tokens, so what a single token allows is not known.`,
    complexity({ actions }) {
      const count = Math.max(1, actions.length);
      return { field: count * PERMITTED_ACTION_COST, multiplier: count };
    },
    args: {
      userId: t.arg.id({ required: true, description: 'The id of the user that the clients belong to.' }),
      actions: t.arg.stringList({
        required: true,
        description: `The names of the actions: at most ${PERMITTED_ACTIONS}. They need not be advertised.`,
      }),
    },
    resolve: (_, query, { core, requester }) => core.rpc.permissions(requester, query),
  }),
);
