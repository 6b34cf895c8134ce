/**
 * Defines the query `preflightInvocation`, which says how each layer of an invocation would decide now. The decisions
 * are core's.
 */
import {
  PREFLIGHT_LAYERS,
  type Preflight,
  type PreflightLayer,
  type PreflightLayerName,
  type PreflightVerdict,
} from '../../core/calls/call.ts';
import { builder, wireEnum } from './builder.ts';
import { InvokeActionInput } from './calls.ts';
import { CommandType } from './commands.ts';
import { fieldsOf, list, nullable, text, time, typed } from './fields.ts';
import { RefusalCodeEnum } from './refusal.ts';
import { textOfJson } from './scalars.ts';

const PreflightLayerEnum = wireEnum<PreflightLayerName>(
  'PreflightLayerName',
  'A layer that an invocation passes, in the order in which they are asked.',
  {
    identity: 'The relay checks the token.',
    scope: 'The relay checks the scope `invoke`.',
    address: 'The relay checks the user that the client belongs to.',
    input: 'The relay checks the input.',
    policy: 'The central policy decides.',
    relay: 'The node must not be draining.',
    action: 'A connected client must advertise the action.',
    waits: 'The caller’s share of waits must have room.',
    storage: 'The store of large payloads must have room for the params.',
    conflict: 'The command id must not belong to a different request.',
    pause: 'No pause may cover the call.',
    target: 'The client must be connected, with the named instance, or the call must allow time to connect.',
    place: 'A named context must be one that the client reports.',
    capacity: 'The admission scope, the client’s queue and the user’s shares must have room.',
    rate: 'The rate rule of the policy that counts the call, if there is one, must allow another one.',
    client_arguments: 'The client checks the arguments.',
    client_authorizer: 'The client’s own authorizer decides.',
    client_approval: 'A person at the client decides.',
    client_lease: 'The client runs some actions one at a time.',
  },
);

const VERDICTS: Readonly<Record<PreflightVerdict, string>> = {
  pass: 'It would not refuse.',
  refuse: 'It would refuse.',
  unknown: 'The relay cannot tell without doing it.',
  skipped: 'It was not asked: an earlier layer decides, or it does not apply.',
};
export const PreflightVerdictEnum = wireEnum<PreflightVerdict>(
  'PreflightVerdict',
  'The answer of a preflight.',
  VERDICTS,
);

const AskedOfEnum = wireEnum<PreflightLayer['askedOf']>('PreflightAskedOf', 'Who decides in a layer.', {
  relay: 'The relay.',
  client: 'The client, once it has the command. The relay does not know the answer before.',
});

const PreflightLayerType = builder.objectRef<PreflightLayer>('PreflightLayer').implement({
  description: 'What one layer of an invocation would answer.',
  fields: fieldsOf(() => ({
    layer: typed(PreflightLayerEnum, 'The layer.'),
    verdict: typed(PreflightVerdictEnum, 'Whether it would refuse.'),
    code: nullable.typed(RefusalCodeEnum, 'The code with which it would refuse; null unless the verdict is `REFUSE`.'),
    message: text('The answer in words, for people.'),
    evidence: nullable.json(
      'What the layer looked at, such as `{"reserved":480,"limit":500}`: a JSON object whose members depend on the layer; null if there is nothing to show.',
    ),
    askedOf: typed(AskedOfEnum, 'Who decides.'),
    observedAt: nullable.time('When the evidence was read; null if the layer was not asked.'),
  })),
});

const PreflightType = builder.objectRef<Preflight>('Preflight').implement({
  description:
    'What would happen to an invocation: a snapshot. It reserves nothing, so an invocation that follows may be answered in another way.',
  fields: fieldsOf(() => ({
    wouldAdmit: typed(
      PreflightVerdictEnum,
      'Whether the relay would admit the command: `PASS`, `REFUSE` or `UNKNOWN`. The client’s layers come later and are not counted.',
    ),
    firstRefusal: nullable.typed(
      PreflightLayerType,
      'The layer that would refuse first, so the code with which the invocation would be refused; null if none would. A layer before it that is `UNKNOWN` may refuse instead.',
    ),
    layers: list(
      PreflightLayerType,
      `Every layer, in the order in which they are asked: at most ${PREFLIGHT_LAYERS.length}.`,
      { complexity: { field: 1, multiplier: PREFLIGHT_LAYERS.length } },
    ),
    command: nullable.typed(
      CommandType,
      'With a given command id, the command that the invocation would attach to or replay; null if there is none or its record is no longer retained.',
    ),
    asOf: time('When the layers were asked.'),
  })),
});

/**
 * The cost is high because this query reads all that an invocation reads, so one document must not contain many of
 * them.
 */
const PREFLIGHT_COST = 50;

builder.queryField('preflightInvocation', (t) =>
  t.field({
    type: PreflightType,
    description:
      'Whether an invocation would be admitted, and by which layer it would be refused. The same rules decide as for `invokeAction`. Nothing is admitted, reserved, written or counted. Answers `not_found` if the client belongs to another user.',
    complexity: { field: PREFLIGHT_COST, multiplier: 1 },
    args: {
      input: t.arg({ type: InvokeActionInput, required: true, description: 'The command, as for `invokeAction`.' }),
    },
    resolve: (_, { input }, { core, requester }) =>
      core.rpc.preflight(requester, { ...input, params: textOfJson(input.params) }),
  }),
);
