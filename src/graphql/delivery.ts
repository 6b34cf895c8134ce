import type { Command, ExecutionEvidence, Outcome, Stage } from '../core/delivery/command.ts';
import { builder } from './builder.ts';
import { ConnectionSnapshot } from './connections.ts';
import { wireEnum } from './enums.ts';

export const StageEnum = wireEnum<Stage>('Stage', 'How far a command has come.', {
  admitted: 'It is on record; its client is not connected.',
  queued: 'It is queued for the link of its client.',
  dispatched: 'Writing it to the client’s socket was begun. That proves neither receipt nor execution.',
  acknowledged: 'The client said that it has it.',
  terminal: 'It ended; `outcome` says how.',
});

export const OutcomeEnum = wireEnum<Outcome>(
  'Outcome',
  'How a command ended. None of these speaks of effects outside the client.',
  {
    completed: 'The client reported a result.',
    failed: 'The client reported an error, its own refusal included.',
    cancelled: 'It was cancelled before dispatch, or the client reported that it stopped.',
    expired: 'Its time ran out before dispatch: no socket write began.',
    outcome_unknown:
      'It was dispatched and may have run; nothing more is known. `lastProvenStage` says how far it certainly came.',
  },
);

export const ExecutionEvidenceEnum = wireEnum<ExecutionEvidence>(
  'ExecutionEvidence',
  'What is proven about execution; never that an effect outside the client is complete.',
  {
    not_written: 'No socket write began.',
    refused_by_client: 'The client said that it refused before running it.',
    may_have_run: 'It may have run.',
    reported_by_client: 'The client reported how it ended.',
  },
);

export const DeliveryRecord = builder.objectRef<Command>('DeliveryRecord').implement({
  description:
    'What the relay can prove about delivering one command. It holds no payload, and no field of it ever means that an effect outside the client is complete.',
  fields: (t) => ({
    userId: t.exposeID('userId', { description: 'The user of the target.' }),
    clientId: t.exposeID('clientId', { description: 'The target.' }),
    commandId: t.exposeID('commandId', { description: 'The command.' }),
    scopeId: t.exposeID('scopeId', { description: 'The admission scope that its reservation counts in.' }),
    stage: t.expose('stage', {
      type: StageEnum,
      description: 'How far it has come: not proof that an effect outside the client is complete.',
    }),
    outcome: t.expose('outcome', {
      type: OutcomeEnum,
      nullable: true,
      description:
        'How it ended, as the relay was told; null while it is live. Not proof that an effect outside the client is complete.',
    }),
    lastProvenStage: t.expose('lastProvenStage', {
      type: StageEnum,
      description: 'How far it certainly came before it ended.',
    }),
    execution: t.expose('execution', { type: ExecutionEvidenceEnum, description: 'What is proven about execution.' }),
    attempts: t.exposeInt('attempts', { description: 'Dispatches begun: 0 or 1, since nothing is written twice.' }),
    admittedAt: t.expose('admittedAt', { type: 'DateTime', description: 'When it was put on record.' }),
    queuedAt: t.expose('queuedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it was queued for its client’s link.',
    }),
    dispatchedAt: t.expose('dispatchedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When writing it to the socket was begun.',
    }),
    acknowledgedAt: t.expose('acknowledgedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the client said that it has it.',
    }),
    terminalAt: t.expose('terminalAt', { type: 'DateTime', nullable: true, description: 'When it ended.' }),
    deadline: t.expose('deadline', {
      type: 'DateTime',
      description: 'When it ends at the latest: admission and both budgets.',
    }),
    nodeId: t.exposeID('nodeId', {
      nullable: true,
      description: 'The node of the target’s link; null while it waits for its client.',
    }),
    boundInstanceId: t.exposeID('boundInstanceId', {
      nullable: true,
      description: 'The instance that it was written to: only its reports count.',
    }),
    recoveredFromNodeId: t.exposeID('recoveredFromNodeId', {
      nullable: true,
      description: 'The node that it was on before it moved to its present one; null: it never moved.',
    }),
    cancelRequestedAt: t.expose('cancelRequestedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When its cancellation was first asked for.',
    }),
    lateResults: t.exposeInt('lateResults', {
      description: 'Ends reported after it had ended, or by an instance that it was not bound to.',
    }),
    firstLateAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When the first of those came.',
      resolve: ({ firstLate }) => firstLate?.at ?? null,
    }),
    reason: t.exposeString('reason', { nullable: true, description: 'Why it ended so: a code, or who cancelled.' }),
  }),
});

builder.objectFields(ConnectionSnapshot, (t) => ({
  inFlight: t.int({
    description: 'Commands dispatched to the client and not ended, as this deployment counts them.',
    resolve: (connection, _, { core }) => core.delivery.load(connection).inFlight,
  }),
  queued: t.int({
    description: 'Commands queued for the client, as this deployment counts them.',
    resolve: (connection, _, { core }) => core.delivery.load(connection).queued,
  }),
}));
