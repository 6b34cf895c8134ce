/** The record of a command’s delivery, with the enums that it uses. It holds no payload. */
import {
  durationOf,
  type Command,
  type CommandCaller,
  type ExecutionEvidence,
  type Outcome,
  type Stage,
} from '../../core/delivery/command.ts';
import { thenDo } from '../../core/maybe-promise.ts';
import { builder } from './builder.ts';
import { ClientTypeEnum, ConnectionSnapshot } from './connections.ts';
import { wireEnum } from './enums.ts';
import { nodeIdOf } from './node-ids.ts';
import { NODE_ID, NodeInterface } from './node-interface.ts';

export const StageEnum = wireEnum<Stage>('Stage', 'How far a command has come.', {
  admitted: 'The command is on record and waits for its client to connect.',
  queued: 'The command is queued for its client’s link.',
  dispatched: 'The node began to write the command to the client’s socket. That proves neither receipt nor execution.',
  acknowledged: 'The client confirmed that it received the command. That does not prove that it ran.',
  terminal: 'The command ended; `outcome` says how.',
});

export const OutcomeEnum = wireEnum<Outcome>(
  'Outcome',
  'How a command ended. No outcome proves anything about effects outside the client.',
  {
    completed: 'The client reported a result.',
    failed: 'The client reported an error or refused the command.',
    cancelled: 'The command was cancelled before dispatch, or the client reported that it stopped.',
    expired: 'The command’s time ran out before dispatch: no socket write began.',
    outcome_unknown:
      'The command was dispatched and may have run; nothing more is known. `lastProvenStage` says how far it certainly came.',
  },
);

export const ExecutionEvidenceEnum = wireEnum<ExecutionEvidence>(
  'ExecutionEvidence',
  'What is proven about execution. It is never proof that an effect outside the client is complete.',
  {
    not_written: 'No socket write began.',
    refused_by_client: 'The client reported that it refused the command before running it.',
    may_have_run: 'The command may have run.',
    reported_by_client: 'The client reported how the command ended.',
  },
);

const CommandCallerKind = wireEnum<CommandCaller['kind']>(
  'CommandCallerKind',
  'What kind of requester invoked a command.',
  {
    admin: 'An administrator.',
    user: 'A user, for one of their own clients.',
    grant: 'A viewer of a site, through a grant of the session’s owner.',
  },
);

const CommandCallerType = builder.objectRef<CommandCaller>('CommandCaller').implement({
  description: 'Who invoked a command.',
  extensions: { shareable: true },
  fields: (t) => ({
    kind: t.expose('kind', { type: CommandCallerKind, description: 'The kind of requester.' }),
    name: t.exposeString('name', {
      description:
        'The administrator’s name, the user’s id, or the grant’s id. It stays the same when a token is renewed.',
    }),
  }),
});

export const DeliveryRecord = builder.objectRef<Command>('DeliveryRecord').implement({
  description:
    'What the relay can prove about the delivery of one command. It holds no payload, and no field of it ever means that an effect outside the client is complete.',
  extensions: { shareable: true },
  interfaces: [NodeInterface],
  fields: (t) => ({
    id: t.id({ ...NODE_ID, resolve: (row) => nodeIdOf('DeliveryRecord', row) }),
    userId: t.exposeID('userId', { description: 'The id of the user that the target client belongs to.' }),
    clientId: t.exposeID('clientId', { description: 'The id of the target client.' }),
    commandId: t.exposeID('commandId', { description: 'The command’s id.' }),
    action: t.exposeString('action', { description: 'The name of the requested action.' }),
    clientType: t.expose('clientType', {
      type: ClientTypeEnum,
      nullable: true,
      description: 'What kind of program the client was at admission; null if it was not connected then.',
    }),
    caller: t.expose('caller', {
      type: CommandCallerType,
      description: 'Who invoked the command first. A repeated invocation of the same id does not change it.',
    }),
    scopeId: t.exposeID('scopeId', { description: 'The admission scope whose capacity the command counts against.' }),
    stage: t.expose('stage', {
      type: StageEnum,
      description: 'How far the command came. It is not proof that an effect outside the client is complete.',
    }),
    outcome: t.expose('outcome', {
      type: OutcomeEnum,
      nullable: true,
      description:
        'How the command ended, as far as the relay knows; null while it is live. It is not proof that an effect outside the client is complete.',
    }),
    lastProvenStage: t.expose('lastProvenStage', {
      type: StageEnum,
      description: 'The last stage that the command is proven to have reached before it ended.',
    }),
    execution: t.expose('execution', { type: ExecutionEvidenceEnum, description: 'What is proven about execution.' }),
    attempts: t.exposeInt('attempts', {
      description: 'How many dispatches began: 0 or 1, since the relay never writes a command twice.',
    }),
    admittedAt: t.expose('admittedAt', { type: 'DateTime', description: 'When the command was admitted.' }),
    queuedAt: t.expose('queuedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the command was queued for its client’s link; null if it was not queued.',
    }),
    dispatchedAt: t.expose('dispatchedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the node began to write the command to the client’s socket; null if it never began.',
    }),
    acknowledgedAt: t.expose('acknowledgedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the client confirmed receipt; null if it did not.',
    }),
    terminalAt: t.expose('terminalAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the command ended; null while it is live.',
    }),
    durationMs: t.int({
      nullable: true,
      description: 'How long the command took from its admission to its end, in milliseconds; null while it is live.',
      resolve: durationOf,
    }),
    deadline: t.expose('deadline', {
      type: 'DateTime',
      description:
        'When the command ends at the latest: `admittedAt` plus the connect and response budgets (`connectWithinMs` and `respondWithinMs`).',
    }),
    nodeId: t.exposeID('nodeId', {
      nullable: true,
      description: 'The id of the node that holds the target’s link; null while the command waits for its client.',
    }),
    boundInstanceId: t.exposeID('boundInstanceId', {
      nullable: true,
      description:
        'The id of the instance that the command was written to: only reports of this instance count. Null before dispatch.',
    }),
    recoveredFromNodeId: t.exposeID('recoveredFromNodeId', {
      nullable: true,
      description: 'The id of the node that held the command before its current one; null if it never moved.',
    }),
    cancelRequestedAt: t.expose('cancelRequestedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When cancellation was first requested; null if it was not.',
    }),
    lateResults: t.exposeInt('lateResults', {
      description:
        'How many ends were reported after the command had ended, or by an instance other than `boundInstanceId`.',
    }),
    firstLateAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When the first late result arrived; null if there was none.',
      resolve: ({ firstLate }) => firstLate?.at ?? null,
    }),
    code: t.string({
      nullable: true,
      description:
        'The code of the error with which the command ended; null while it is live, and if it ended without an error.',
      resolve: ({ error }) => error?.code ?? null,
    }),
    message: t.string({
      nullable: true,
      description:
        'The bounded message of the error with which the command ended, at most 256 characters; null where `code` is.',
      resolve: ({ error }) => error?.message ?? null,
    }),
    reason: t.exposeString('reason', {
      nullable: true,
      description:
        'Why the command ended, as an error code, or who cancelled it or requested its cancellation. Null if neither applies.',
    }),
  }),
});

builder.objectFields(ConnectionSnapshot, (t) => ({
  inFlight: t.int({
    description: 'How many commands were dispatched to the client and have not ended.',
    resolve: (connection, _, { loaders }) => thenDo(loaders.load(connection), ({ inFlight }) => inFlight),
  }),
  queued: t.int({
    description: 'How many commands wait to be dispatched to the client.',
    resolve: (connection, _, { loaders }) => thenDo(loaders.load(connection), ({ queued }) => queued),
  }),
}));
