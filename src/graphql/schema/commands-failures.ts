/** Defines the listing of failed commands in groups, such as all of one action with one error code. */
import type { FailureGroup, FailureKey, Failures, OutcomeCount } from '../../core/commands/lookup.ts';
import { SHOWN_FAILURES } from '../../core/limits.ts';
import { SCAN_BUDGET } from '../../core/page.ts';
import { builder, wireEnum, ranged } from './builder.ts';
import { DeliveryRecord, OutcomeEnum, Delivery, DeliveryFilter } from './delivery.ts';
import { fieldsOf, int, list, nullable, float, typed } from './fields.ts';
import { CompletenessType, scannedPageCost } from './page.ts';

const FailureKeyEnum = wireEnum<FailureKey>('FailureKey', 'What failures are grouped by.', {
  action: 'The action.',
  code: 'The code of the error that they ended with.',
  client: 'The target client, with its user.',
  node: 'The node of the target’s link.',
});

const FailureGroupType = builder.objectRef<FailureGroup>('FailureGroup').implement({
  description: 'Failed commands that have the same values for all keys of the grouping.',
  fields: fieldsOf((t) => ({
    action: nullable.text('Their action; null unless the failures are grouped by action.'),
    code: nullable.text(
      'The code of their errors; null unless the failures are grouped by code, and if they ended without an error.',
    ),
    userId: t.id({
      nullable: true,
      description: 'The user of their client; null unless the failures are grouped by client.',
      resolve: ({ client }) => client?.userId ?? null,
    }),
    clientId: t.id({
      nullable: true,
      description: 'Their client; null unless the failures are grouped by client.',
      resolve: ({ client }) => client?.clientId ?? null,
    }),
    nodeId: nullable.id(
      'The node of their target’s link; null unless the failures are grouped by node, and if the target was on none.',
    ),
    count: int('The number of failures in the group.'),
    share: float('The fraction of all failures that were counted, above 0 and at most 1.'),
    last: typed(DeliveryRecord, 'The failure that was admitted last.'),
  })),
});

const OutcomeCountType = builder.objectRef<OutcomeCount>('OutcomeCount').implement({
  description: 'How many commands ended in one way.',
  fields: fieldsOf(() => ({
    outcome: typed(OutcomeEnum, 'How they ended.'),
    count: int('Their number.'),
  })),
});

const FailuresType = builder.objectRef<Failures>('Failures').implement({
  description: 'Failed commands in groups, the largest groups first.',
  fields: fieldsOf(() => ({
    groups: list(FailureGroupType, 'The largest groups.', { complexity: { field: 1, multiplier: 1 } }),
    groupCount: int('The number of all groups.'),
    count: int('The number of failures that were counted.'),
    outcomes: list(OutcomeCountType, 'The failures by their outcome, without outcomes that none of them has.', {
      complexity: { field: 1, multiplier: 5 },
    }),
    completeness: typed(
      CompletenessType,
      `Whether anything is missing, from which source, and why. The newest ${SCAN_BUDGET} commands are read; with the reason LIMIT_REACHED there are older ones, which are not counted.`,
    ),
  })),
});

builder.objectField(Delivery, 'failures', (t) =>
  t.field({
    type: FailuresType,
    description:
      'Commands that failed, in groups. Without an outcome in the filter, failures are the outcomes FAILED, EXPIRED and OUTCOME_UNKNOWN.',
    complexity: ({ first }) => scannedPageCost({ first }, SCAN_BUDGET),
    args: {
      filter: t.arg({ type: DeliveryFilter, description: 'Which commands to count. Omitted: all.' }),
      by: t.arg({
        type: [FailureKeyEnum],
        required: true,
        defaultValue: ['action', 'code'],
        description:
          'What the failures are grouped by: at least one key. Failures of a group have the same values for all of them.',
      }),
      first: t.arg.int({
        ...ranged(SHOWN_FAILURES),
        description: `The most groups to return: ${SHOWN_FAILURES.min} to ${SHOWN_FAILURES.max}.`,
      }),
    },
    resolve: (requester, { filter, by, first }, { core, reading }) =>
      core.lookup.failures(requester, filter ?? {}, { by, first, reading }),
  }),
);
