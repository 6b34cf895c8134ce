/**
 * Defines the types of actions that connected clients advertise. An advertisement never permits anyone to invoke the
 * action.
 */
import type {
  ActionAdvertisement,
  Connection,
  ActionEffects,
  ActionGuards,
} from '../../core/connections/connection.ts';
import type { ActionSample, AdvertisedAction } from '../../core/core.ts';
import { FILTER_TEXT_CHARS, ACTION_SAMPLE, ACTION_SAMPLE_CONNECTIONS, CLIENT_ACTIONS } from '../../core/limits.ts';
import { builder } from './builder.ts';
import { ENTITY, PURE } from './cache-hints.ts';
import { ConnectionSnapshot } from './connections.ts';
import { fieldsOf, flag, id, list, nullable, typed, text } from './fields.ts';
import { CompletenessType, forAdmins, scanCost } from './page.ts';

// The cost of these flags is included in the cost of the object that has them.
const ActionGuardsType = builder.objectRef<ActionGuards>('ActionGuards').implement({
  description:
    'What stands between a command and an action’s handler, as the client says. The relay does not check it.',
  extensions: ENTITY,
  fields: fieldsOf(() => ({
    approval: nullable.flag('Whether somebody at the client approves each command; null if the client does not say.', {
      complexity: 0,
    }),
    lease: nullable.flag(
      'Whether one command runs at a time, and others are refused as long as it runs; null if the client does not say.',
      { complexity: 0 },
    ),
  })),
});

const ActionEffectsType = builder.objectRef<ActionEffects>('ActionEffects').implement({
  description: 'What an action does, as its client says. These are hints for people and tools, never a promise.',
  extensions: ENTITY,
  fields: fieldsOf(() => ({
    readOnly: nullable.flag('Whether the action changes nothing; null if the client does not say.', { complexity: 0 }),
    destructive: nullable.flag(
      'Whether the action may delete or overwrite something; null if the client does not say.',
      { complexity: 0 },
    ),
    idempotent: nullable.flag(
      'Whether running the action again with the same arguments changes nothing more; null if the client does not say.',
      { complexity: 0 },
    ),
    openWorld: nullable.flag(
      'Whether the action acts on something outside the client; null if the client does not say.',
      { complexity: 0 },
    ),
  })),
});

const ActionAdvertisementType = builder.objectRef<ActionAdvertisement>('ActionAdvertisement').implement({
  description:
    'An action as a client advertised it, stored unchanged. It is evidence that the client can run it, never that a caller may invoke it: central policy, the client’s own policy, approval, argument checks, targeting, leases and the handler can each still refuse it.',
  extensions: ENTITY,
  fields: fieldsOf(() => ({
    name: text('The name with which callers invoke the action.'),
    summary: nullable.text('One line for people; null if the client sent none.'),
    description: nullable.text('A longer text for people; null if the client sent none.'),
    version: nullable.text('The client’s own version of the action; null if it sent none.'),
    checksArguments: nullable.flag(
      'Whether the client says that it checks arguments before it runs the action; null if it does not say.',
    ),
    schema: nullable.json('The JSON Schema of the action’s arguments; null if the client sent none.'),
    metadata: nullable.json('Other data that the client sent with the action; null if it sent none.'),
    guards: nullable.typed(
      ActionGuardsType,
      'What stands between a command and the action’s handler; null if the client sent nothing about it.',
    ),
    effects: nullable.typed(ActionEffectsType, 'What the action does; null if the client sent nothing about it.'),
  })),
});

const ActionList = builder.objectRef<Connection>('ActionList').implement({
  description: `All actions that one client advertises now: at most ${CLIENT_ACTIONS}, not paged.`,
  extensions: ENTITY,
  fields: (t) => ({
    items: t.expose('actions', {
      type: [ActionAdvertisementType],
      description: 'The advertisements, in the client’s order.',
    }),
    completeness: t.field({
      type: CompletenessType,
      description: 'Whether anything is missing, from which source, and why.',
      resolve: (connection, _, { core }) => core.actions.completeness(connection),
    }),
  }),
});

builder.objectField(ConnectionSnapshot, 'actions', (t) =>
  t.field({
    type: ActionList,
    description: 'The actions that the client says it can run. They do not say what a caller may invoke.',
    extensions: PURE,
    resolve: (connection) => connection,
  }),
);

const AdvertisedActionType = builder.objectRef<AdvertisedAction>('AdvertisedAction').implement({
  description: 'One advertised action, with the client that advertises it.',
  fields: fieldsOf(() => ({
    userId: id('The id of the user that the client belongs to.'),
    clientId: id('The id of the client that advertises the action.'),
    instanceId: id('The id of the client instance that advertised the action.'),
    action: typed(ActionAdvertisementType, 'The advertised action.'),
  })),
});

const ActionSampleType = builder.objectRef<ActionSample>('ActionSample').implement({
  description: `A bounded sample over live connections: at most ${ACTION_SAMPLE} advertisements of at most ${ACTION_SAMPLE_CONNECTIONS} connections, and about 2 MiB.`,
  fields: fieldsOf(() => ({
    items: list(AdvertisedActionType, 'The sampled advertisements.', {
      complexity: { field: 1, multiplier: ACTION_SAMPLE },
    }),
    complete: flag('Whether the sample holds every advertisement of every live connection.'),
    completeness: typed(CompletenessType, 'Whether anything is missing, from which source, and why.'),
  })),
});

builder.queryField('actions', (t) =>
  t.field({
    type: ActionSampleType,
    description: 'A bounded sample of the actions that connected clients advertise. Administrators only.',
    complexity: forAdmins(() => scanCost(0)),
    args: {
      name: t.arg.string({ description: 'Only advertisements of the action with this name.' }),
      text: t.arg.string({
        description: `Only advertisements of actions whose name contains this text, upper or lower case, at most ${FILTER_TEXT_CHARS} characters.`,
      }),
    },
    resolve: (_, { name, text }, { core, requester, reading }) =>
      core.actions.sample(requester, name ?? null, reading, text ?? null),
  }),
);
