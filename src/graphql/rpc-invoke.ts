import type { CancelReceipt, Invocation } from '../core/core.ts';
import { notFound } from '../core/errors.ts';
import { endOf } from '../core/rpc/ended.ts';
import { AWAIT_WITHIN_MS, CONNECT_WITHIN_MS, RESPOND_WITHIN_MS } from '../core/limits.ts';
import { builder } from './builder.ts';
import { textOfJson } from './builder-json.ts';
import { commandArguments, CommandType, subjectOfCommand } from './delivery-command.ts';
import { ExecutionEvidenceEnum, OutcomeEnum, StageEnum } from './delivery.ts';
import { wireEnum } from './enums.ts';
import { TerminalErrorType } from './history.ts';
import { DEED } from './nature.ts';
import { Refusal, refusalOf, type RefusalView } from './refusal.ts';
import { noteCommand } from './request-notes.ts';
import { WaitStageEnum } from './rpc.ts';

/** `reread`: asked for again by its ids, so that what is shown is a record and not the caller's own answer. */
type InvocationView = Exclude<Invocation, RefusalView> & { readonly reread: boolean };

const InvocationType = builder.interfaceRef<InvocationView>('Invocation').implement({
  description: 'An admitted invocation as its caller sees it. Its ids are a handle that can be awaited again.',
  fields: (t) => ({
    commandId: t.id({ description: 'The command.', resolve: (view) => endOf(view).commandId }),
    rpcId: t.exposeID('rpcId', {
      nullable: true,
      description: 'This call’s wait, which is over; null where there was none.',
    }),
    outcome: t.field({
      type: OutcomeEnum,
      nullable: true,
      description: 'How the command ended; null while it is live.',
      resolve: (view) => endOf(view).outcome,
    }),
    stage: t.field({
      type: StageEnum,
      description: 'How far the command has come.',
      resolve: (view) => endOf(view).stage,
    }),
    execution: t.field({
      type: ExecutionEvidenceEnum,
      description: 'What is proven about execution.',
      resolve: (view) => endOf(view).execution,
    }),
    result: t.field({
      type: 'JSON',
      nullable: true,
      description:
        'What the client reported as result. An administrator who awaits a command by its ids is written to the audit log.',
      resolve: (view, _, { auditPayload }) => {
        if (view.reread && view.result !== null) auditPayload(subjectOfCommand(view.command));
        return view.result;
      },
    }),
    error: t.field({
      type: TerminalErrorType,
      nullable: true,
      description:
        'Why it failed or was not completed. Code `result_expired`: it ended as `outcome` says, and its result is no longer retained.',
      resolve: (view) => endOf(view).error,
    }),
    command: t.field({
      type: CommandType,
      nullable: true,
      description: 'The case file; null for the holder of a grant, and where the record is no longer retained.',
      resolve: (view, _, { who }) => (who?.kind === 'grant' || view.kind === 'ended' ? null : view.command),
    }),
  }),
});

const InvokeActionOutcome = builder.objectRef<InvocationView>('InvokeActionOutcome').implement({
  description: 'The command ended. `outcome` says how, and claims nothing about effects outside the client.',
  interfaces: [InvocationType],
});

const InvokeActionPending = builder.objectRef<InvocationView>('InvokeActionPending').implement({
  description: 'What was waited for was reached, or the wait ended, before the command did. The command goes on.',
  interfaces: [InvocationType],
});

export const InvokeActionResult = builder.unionType('InvokeActionResult', {
  description: 'The end of the command, its present state, or a refusal.',
  types: [InvokeActionOutcome, InvokeActionPending, Refusal],
  resolveType: ({ kind }) => {
    if (kind === 'refused') return 'Refusal';
    return kind === 'pending' ? 'InvokeActionPending' : 'InvokeActionOutcome';
  },
});

export const waitFor = {
  type: WaitStageEnum,
  required: true,
  defaultValue: 'completed',
  description: 'What to wait for.',
} as const;

const InvokeActionInput = builder.inputType('InvokeActionInput', {
  description: 'A command for one client. Its deadline is its admission and both budgets.',
  fields: (t) => ({
    userId: t.id({ required: true, description: 'The user of the target.' }),
    clientId: t.id({ required: true, description: 'The target.' }),
    instanceId: t.id({ description: 'The instance that must be the live one; omitted, any.' }),
    action: t.string({ required: true, description: 'The action to run.' }),
    params: t.field({ type: 'JSON', description: 'What the action is given: a JSON object; omitted, none.' }),
    commandId: t.id({
      description:
        'The caller’s own id, which makes the call safe to repeat: the same request attaches to the command or replays its outcome, another is a conflict. Omitted, the relay makes one.',
    }),
    waitFor: t.field(waitFor),
    connectWithinMs: t.int({
      required: true,
      defaultValue: CONNECT_WITHIN_MS.default,
      description: `How long it may wait for its client to connect, ${CONNECT_WITHIN_MS.min} to ${CONNECT_WITHIN_MS.max} milliseconds; 0 refuses when it is not connected.`,
      extensions: { minimum: CONNECT_WITHIN_MS.min, maximum: CONNECT_WITHIN_MS.max },
    }),
    respondWithinMs: t.int({
      required: true,
      defaultValue: RESPOND_WITHIN_MS.default,
      description: `How long its client may take, ${RESPOND_WITHIN_MS.min} to ${RESPOND_WITHIN_MS.max} milliseconds.`,
      extensions: { minimum: RESPOND_WITHIN_MS.min, maximum: RESPOND_WITHIN_MS.max },
    }),
    traceId: t.string({ description: 'The caller’s trace, retained with every message of the command.' }),
    parentSpanId: t.string({ description: 'The caller’s span, retained likewise.' }),
  }),
});

builder.mutationField('invokeAction', (t) =>
  t.field({
    type: InvokeActionResult,
    description:
      'Invokes an action of a client and waits for what was asked to wait for. A caller that hangs up ends its wait, never the command.',
    args: { input: t.arg({ type: InvokeActionInput, required: true, description: 'The command.' }) },
    extensions: DEED,
    resolve: (_, { input }, { core, who, signal, notes }) => {
      const request = { ...input, params: textOfJson(input.params), signal };
      return core.rpc.invoke(who, request).then((invocation) => view(noteCommand(notes, invocation), false));
    },
  }),
);

builder.mutationField('awaitCommand', (t) =>
  t.field({
    type: InvokeActionResult,
    description:
      'Waits again on a command by its ids, from any node. An absent command is `not_found`, and so is another user’s.',
    args: {
      ...commandArguments,
      waitFor: t.arg(waitFor),
      withinMs: t.arg.int({
        required: true,
        defaultValue: AWAIT_WITHIN_MS.default,
        description: `How long to wait, ${AWAIT_WITHIN_MS.min} to ${AWAIT_WITHIN_MS.max} milliseconds; 0 only reads the record and makes no waiter.`,
        extensions: { minimum: AWAIT_WITHIN_MS.min, maximum: AWAIT_WITHIN_MS.max },
      }),
    },
    extensions: DEED,
    resolve: async (_, args, { core, who, signal, notes }) => {
      const answer = await core.rpc.await(who, { ...args, signal }).catch(refusalOf);
      return view(noteCommand(notes, answer ?? notFound()), true);
    },
  }),
);

export function view(invocation: Invocation, reread: boolean): InvocationView | RefusalView {
  return invocation.kind === 'refused' ? invocation : { ...invocation, reread };
}

const CancelStateEnum = wireEnum<CancelReceipt['state']>('CancelState', 'What became of a cancellation.', {
  cancelled: 'The command had not been written to its client, and now never will be.',
  requested: 'Its client was asked to stop. It may have run all the same.',
  too_late: 'The command had ended.',
});

const CancelReceiptType = builder.objectRef<CancelReceipt>('CancelReceipt').implement({
  description: 'What became of a cancellation.',
  fields: (t) => ({
    state: t.expose('state', { type: CancelStateEnum, description: 'What became of it.' }),
    commandId: t.exposeID('commandId', { description: 'The command.' }),
    outcome: t.expose('outcome', {
      type: OutcomeEnum,
      nullable: true,
      description: 'How the command ended; null while it is live.',
    }),
    command: t.expose('command', {
      type: CommandType,
      nullable: true,
      description: 'The command as it was then; null where its record is no longer retained.',
    }),
  }),
});

const CancelCommandResult = builder.unionType('CancelCommandResult', {
  description: 'The receipt of a cancellation, or a refusal.',
  types: [CancelReceiptType, Refusal],
  resolveType: (answer) => ('kind' in answer ? 'Refusal' : 'CancelReceipt'),
});

const CancelCommandInput = builder.inputType('CancelCommandInput', {
  description: 'Which command to cancel, and why.',
  fields: (t) => ({
    userId: t.id({ required: true, description: 'The user of the target.' }),
    clientId: t.id({ required: true, description: 'The target.' }),
    commandId: t.id({ required: true, description: 'The command.' }),
    reason: t.string({ description: 'Why, for the record and the client.' }),
  }),
});

builder.mutationField('cancelCommand', (t) =>
  t.field({
    type: CancelCommandResult,
    description: 'Cancels a command. An absent command is `not_found`, and so is another user’s.',
    args: { input: t.arg({ type: CancelCommandInput, required: true, description: 'The command.' }) },
    resolve: async (_, { input: { reason, ...key } }, { core, who, notes }) =>
      noteCommand(notes, (await core.rpc.cancel(who, key, reason ?? null).catch(refusalOf)) ?? notFound()),
  }),
);
