/** Defines the mutations that invoke, await and cancel commands. Core decides the order of the checks. */
import { endOf } from '../../core/calls/call.ts';
import type { CancelReceipt, Invocation } from '../../core/core.ts';
import type { CommandKey } from '../../core/ids.ts';
import { AWAIT_WITHIN_MS, CONNECT_WITHIN_MS, RESPOND_WITHIN_MS } from '../../core/limits.ts';
import { thenDo } from '../../core/maybe-promise.ts';
import { noteCommand, spanNoter } from '../../web/request-notes.ts';
import { builder, ranged, wireEnum } from './builder.ts';
import { WaitStageEnum } from './calls-pending.ts';
import { CommandType, subjectOfCommand } from './commands.ts';
import type { Context } from './context.ts';
import { ExecutionEvidenceEnum, OutcomeEnum, StageEnum, commandArguments } from './delivery.ts';
import { fieldsOf, id, nullable, typed } from './fields.ts';
import { TerminalErrorType } from './history.ts';
import { Refusal, answered, orRefusal, refusalOf, type RefusalView } from './refusal.ts';
import { textOfJson } from './scalars.ts';

/**
 * The answer to an invocation. `reread`: the command was awaited by its ids, so the answer shows a stored record
 * instead of the response to the caller's own call.
 */
type InvocationView = Exclude<Invocation, { readonly kind: 'refused' }> & { readonly reread: boolean };

const InvocationType = builder.interfaceRef<InvocationView>('Invocation').implement({
  description: 'An admitted invocation, as its caller sees it. With its ids the command can be awaited again.',
  fields: (t) => ({
    commandId: t.id({ description: 'The command’s id.', resolve: (view) => endOf(view).commandId }),
    rpcId: t.exposeID('rpcId', {
      nullable: true,
      description: 'The id of this call’s wait, which is over; null if the call made none.',
    }),
    outcome: t.field({
      type: OutcomeEnum,
      nullable: true,
      description: 'How the command ended; null while it is live.',
      resolve: (view) => endOf(view).outcome,
    }),
    stage: t.field({
      type: StageEnum,
      description: 'How far the command came.',
      resolve: (view) => endOf(view).stage,
    }),
    lastProvenStage: t.field({
      type: StageEnum,
      nullable: true,
      description:
        'The last stage that the command is proven to have reached before it ended: how far it certainly came. Null if the record is no longer retained.',
      resolve: (view) => endOf(view).lastProvenStage,
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
        'The result that the client reported; null if there is none or it is no longer retained. If an administrator reads it by `awaitCommand`, the audit log records that.',
      resolve: (view, _, { core, requester, readPayload }) => {
        if (!view.reread || view.result === null) return view.result;
        const { command, result } = view;
        if (!core.reveals.shows(requester) && core.reveals.ownsCall(requester, command)) return result;
        return thenDo(readPayload(subjectOfCommand(command)), () => result);
      },
    }),
    error: t.field({
      type: TerminalErrorType,
      nullable: true,
      description:
        'The error with which the command ended; null if there is none. The code `result_expired` means that the command ended as `outcome` says and its result is no longer retained.',
      resolve: (view) => endOf(view).error,
    }),
    command: t.field({
      type: CommandType,
      nullable: true,
      description: 'The command’s record; null for the holder of a grant, and if the record is no longer retained.',
      resolve: (view, _, { requester }) => (requester?.kind === 'grant' || view.kind === 'ended' ? null : view.command),
    }),
  }),
});

const InvokeActionOutcome = builder.objectRef<InvocationView>('InvokeActionOutcome').implement({
  description: 'The command ended. `outcome` says how; it proves nothing about effects outside the client.',
  interfaces: [InvocationType],
});

const InvokeActionPending = builder.objectRef<InvocationView>('InvokeActionPending').implement({
  description:
    'The call reached the stage that it waited for, or its wait ended, before the command ended. The command goes on.',
  interfaces: [InvocationType],
});

export const InvokeActionResult = builder.unionType('InvokeActionResult', {
  description: 'The end of the command, its current state, or a refusal.',
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
  description: 'What the call waits for.',
} as const;

export const TRACE_ID = {
  description:
    'The caller’s trace id, retained with every message of the command. If neither this nor `parentSpanId` is given, the HTTP headers `traceparent` and `tracestate` (W3C Trace Context) apply; without them there is none.',
};

export const PARENT_SPAN_ID = {
  description: 'The caller’s span id, retained with every message of the command. Omitted: as for `traceId`.',
};

export const InvokeActionInput = builder.inputType('InvokeActionInput', {
  description:
    'A command for one client. Its deadline is the time of its admission plus `connectWithinMs` and `respondWithinMs`.',
  fields: (t) => ({
    userId: t.id({ required: true, description: 'The id of the user that the target client belongs to.' }),
    clientId: t.id({ required: true, description: 'The id of the target client.' }),
    instanceId: t.id({ description: 'The id of the client instance that must be live. Omitted: any instance.' }),
    contextId: t.id({
      description:
        'The id of the client’s context, such as a tab, in which the command may run, and in no other. The call is refused with `context_gone` if the client does not report it. Omitted: the client chooses.',
    }),
    action: t.string({ required: true, description: 'The name of the action to run.' }),
    params: t.field({ type: 'JSON', description: 'The action’s arguments, a JSON object. Omitted: none.' }),
    commandId: t.id({
      description:
        'The caller’s own id for the command, which makes the call safe to repeat: the same request attaches to the command or replays its outcome, and a different request is a conflict. Omitted: the relay generates one.',
    }),
    waitFor: t.field(waitFor),
    connectWithinMs: t.int({
      ...ranged(CONNECT_WITHIN_MS),
      description: `How long the command may wait for its client to connect, ${CONNECT_WITHIN_MS.min} to ${CONNECT_WITHIN_MS.max} milliseconds. With 0, the call is refused if the client is not connected.`,
    }),
    respondWithinMs: t.int({
      ...ranged(RESPOND_WITHIN_MS),
      description: `How long the client may take, ${RESPOND_WITHIN_MS.min} to ${RESPOND_WITHIN_MS.max} milliseconds.`,
    }),
    traceId: t.string(TRACE_ID),
    parentSpanId: t.string(PARENT_SPAN_ID),
  }),
});

builder.mutationField('invokeAction', (t) =>
  t.field({
    type: InvokeActionResult,
    description:
      'Invokes an action of a client and waits for what `waitFor` names. A caller that hangs up ends its wait, never the command.',
    args: { input: t.arg({ type: InvokeActionInput, required: true, description: 'The command to run.' }) },
    resolve: (_, { input }, { core, requester, signal, updates, notes, trace }) => {
      const onSpan = spanNoter(notes);
      const request = { ...input, params: textOfJson(input.params), signal, trace, onSpan, ...updates };
      return core.rpc.invoke(requester, request).then(
        (invocation) => view(noteCommand(notes, invocation), false),
        (error: unknown) => noteCommand(notes, refusalOf(error)),
      );
    },
  }),
);

builder.mutationField('awaitCommand', (t) =>
  t.field({
    type: InvokeActionResult,
    description:
      'Waits for a command by its ids, on any node. Refuses with `not_found` if there is no such command or it belongs to another user.',
    args: {
      ...commandArguments,
      waitFor: t.arg(waitFor),
      withinMs: t.arg.int({
        ...ranged(AWAIT_WITHIN_MS),
        description: `How long to wait, ${AWAIT_WITHIN_MS.min} to ${AWAIT_WITHIN_MS.max} milliseconds. With 0, the call only reads the record and makes no waiter.`,
      }),
    },
    resolve: (_, args, context) => {
      const { core, requester, signal, updates, notes, trace } = context;
      const request = { ...args, signal, trace, onSpan: spanNoter(notes), ...updates };
      return answered(
        async () => {
          if (updates) await mayReadProgress(context, args);
          return core.rpc.await(requester, request);
        },
        (invocation) => view(noteCommand(notes, invocation), true),
      );
    },
  }),
);

/** Writes to the audit that an administrator reads the progress of a command that another requester invoked. */
async function mayReadProgress({ core, requester, readPayload }: Context, key: CommandKey): Promise<void> {
  const command = await core.delivery.command(requester, key);
  if (command && !core.reveals.ownsCall(requester, command)) await readPayload(subjectOfCommand(command));
}

export function view(invocation: Invocation | RefusalView, reread: boolean): InvocationView | RefusalView {
  return invocation.kind === 'refused' ? invocation : { ...invocation, reread };
}

const CancelStateEnum = wireEnum<CancelReceipt['state']>('CancelState', 'The result of a requested cancellation.', {
  cancelled: 'The command had not been written to its client and never will be.',
  requested: 'The client was asked to stop the command. It may have run already.',
  too_late: 'The command had ended already.',
});

const CancelReceiptType = builder.objectRef<CancelReceipt>('CancelReceipt').implement({
  description: 'The result of a requested cancellation.',
  fields: fieldsOf(() => ({
    state: typed(CancelStateEnum, 'What the cancellation achieved.'),
    commandId: id('The id of the command.'),
    outcome: nullable.typed(OutcomeEnum, 'How the command ended; null while it is live.'),
    command: nullable.typed(
      CommandType,
      'The command after the cancellation; null if its record is no longer retained.',
    ),
  })),
});

const CancelCommandResult = orRefusal(
  'CancelCommandResult',
  CancelReceiptType,
  'The receipt of a cancellation, or a refusal.',
);

const CancelCommandInput = builder.inputType('CancelCommandInput', {
  description: 'Which command to cancel, and why.',
  fields: (t) => ({
    userId: t.id({ required: true, description: 'The id of the user that the target client belongs to.' }),
    clientId: t.id({ required: true, description: 'The id of the target client.' }),
    commandId: t.id({ required: true, description: 'The command’s id.' }),
    reason: t.string({
      description: 'The reason, for the record and the client: at most 256 characters. Omitted: none.',
    }),
  }),
});

builder.mutationField('cancelCommand', (t) =>
  t.field({
    type: CancelCommandResult,
    description:
      'Cancels a command. Refuses with `not_found` if there is no such command or it belongs to another user.',
    args: { input: t.arg({ type: CancelCommandInput, required: true, description: 'The command to cancel.' }) },
    resolve: (_, { input: { reason, ...key } }, { core, requester, notes }) =>
      answered(
        () => core.rpc.cancel(requester, key, reason ?? null, notes?.requestId),
        (receipt) => noteCommand(notes, receipt),
      ),
  }),
);
