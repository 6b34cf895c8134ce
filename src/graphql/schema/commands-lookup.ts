/** Commands that are found by an id or a trace, and failed commands in groups. */
import type { FailureGroup, FailureKey, Failures, OutcomeCount } from '../../core/commands/lookup.ts';
import { SHOWN_FAILURES, TRACE_MAX_CHARS } from '../../core/limits.ts';
import { SCAN_BUDGET } from '../../core/page.ts';
import { builder, fieldsOf, float, int, list, nullable, ranged, typed, wireEnum } from './builder.ts';
import { Delivery, DeliveryFilter, DeliveryRecord, DeliveryRecordConnection, OutcomeEnum } from './delivery.ts';
import { CompletenessType, pageArguments, pageOf, scannedPageCost } from './page.ts';

builder.queryField('findCommands', (t) =>
  t.field({
    type: DeliveryRecordConnection,
    description: `Commands with a record that have this id, whose id ends with this text of at least 8 characters, or that have this trace id. An administrator finds those of all users, a user those for its own clients. A page reads at most ${SCAN_BUDGET} commands, so a page before the last one may be empty.`,
    complexity: (page) => scannedPageCost(page, SCAN_BUDGET),
    args: {
      idOrTrace: t.arg.id({
        required: true,
        description: `An id of a command, the end of one, or a trace id: 1 to ${TRACE_MAX_CHARS} characters.`,
      }),
      ...pageArguments,
    },
    resolve: (_, { idOrTrace, ...page }, { core, requester, reading }) =>
      core.lookup.find(requester, idOrTrace, { ...pageOf(page), reading }),
  }),
);

// Failures in groups.

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
