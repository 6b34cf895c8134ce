/**
 * Defines the schema of pauses: what is paused, by whom, why and until when; what a pause would affect; and the
 * mutations that pause and resume.
 */
import { MAX_REASON, PAUSES, PAUSE_PATTERN_CHARS, RESERVATIONS_PER_SCOPE } from '../../core/limits.ts';
import type { Pause, PauseReach } from '../../core/pauses/pause.ts';
import type { CoverRequest, PauseReceipt, ResumeReceipt } from '../../core/pauses/pauses.ts';
import type { PauseEvent } from '../../core/backend.ts';
import type { LiveEvent } from '../../core/live.ts';
import { builder, wireEnum } from './builder.ts';
import { fieldsOf, fieldsOfPart, flag, id, int, nullable, text, texts, time, typed } from './fields.ts';
import { CommandCallerKind } from './delivery.ts';
import { connectionOf, pageArguments, pageOf, scanCost, scannedPageCost } from './page.ts';
import { fresh } from './subscription-fields.ts';
import { PauseAuthorType, answered, orRefusal } from './refusal.ts';

const QueuedEnum = wireEnum<Pause['queued']>(
  'PauseQueued',
  'What a pause does with commands that were not dispatched.',
  {
    keep: 'They wait until the pause ends, and may expire: nothing ran.',
    cancel: 'They are cancelled: nothing ran.',
  },
);

const RunningEnum = wireEnum<Pause['running']>('PauseRunning', 'What a pause does with commands that run.', {
  leave: 'They run on.',
  cancel: 'Their clients are asked to cancel them.',
});

const PauseType = builder.objectRef<Pause>('Pause').implement({
  description:
    'Calls that are stopped. A pause covers the calls that match every member that is not null. While it holds, no node admits such a call or writes it to a client.',
  fields: fieldsOf(() => ({
    pauseId: id('The id of the pause.'),
    userId: nullable.id('Only calls of the clients of this user; null: of all users.'),
    clientId: nullable.id('Only calls of this client; null: of all clients.'),
    callerKind: nullable.typed(CommandCallerKind, 'Only calls of this kind of callers; null: of all kinds.'),
    caller: nullable.text('Only calls of callers whose name matches this pattern; null: of all.'),
    action: nullable.text('Only calls of actions that match this pattern; null: of all.'),
    label: nullable.text('Only calls of programs whose name matches this pattern; null: of all.'),
    reason: text('Why. Callers that are refused can read it.'),
    by: typed(PauseAuthorType, 'Who set it.'),
    since: time('When it was set.'),
    until: nullable.time('When it ends by itself; null: it holds until somebody resumes.'),
    queued: typed(QueuedEnum, 'What it did with commands that were not dispatched.'),
    running: typed(RunningEnum, 'What it did with commands that ran.'),
  })),
});

const PauseConnection = connectionOf('Pause', PauseType, { rows: 'pauses' });

const PauseReachType = builder.objectRef<PauseReach>('PauseReach').implement({
  description: 'What a pause would touch now.',
  fields: fieldsOf(() => ({
    clients: int('The connected clients whose calls it would cover, or some of them.'),
    queued: int('The commands that were not dispatched and that it would cover.'),
    running: int('The commands that run and that it would cover.'),
  })),
});

/**
 * The number of scanned rows to which a count is equivalent. It compares each command that has not ended with up to
 * three patterns, which takes as long as scanning 25 rows.
 */
const REACH_ROWS = 25 * RESERVATIONS_PER_SCOPE;

const PATTERN = `A pattern with \`*\`, of 1 to ${PAUSE_PATTERN_CHARS} characters.`;

/**
 * Names the check of the REST layer for the members with patterns. Otherwise that layer would choose the check by the
 * member's name, and a member `action` elsewhere is the name of one action, which may have no `*`.
 */
const PATTERN_RULE = { extensions: { rule: 'pattern' } } as const;

const PauseCoverInput = builder.inputType('PauseCoverInput', {
  description:
    'Which calls to pause: those that match every member. Give at least one, or `all`. A user covers its own clients alone.',
  fields: (t) => ({
    userId: t.id({ description: 'Only calls of the clients of this user. A user may omit it.' }),
    clientId: t.id({ description: 'Only calls of this client. An administrator names `userId`, too.' }),
    callerKind: t.field({
      type: CommandCallerKind,
      description: 'Only calls of this kind of callers: `MCP` are agents.',
    }),
    caller: t.string({ description: `Only calls of callers with such a name. ${PATTERN}`, ...PATTERN_RULE }),
    action: t.string({ description: `Only calls of such actions. ${PATTERN}`, ...PATTERN_RULE }),
    label: t.string({
      description: `Only calls of programs with such a name, as agents give it. ${PATTERN}`,
      ...PATTERN_RULE,
    }),
    all: t.boolean({ description: 'All calls; of a user: all calls of its clients.' }),
  }),
});

const PauseCallsInput = builder.inputType('PauseCallsInput', {
  description: 'Which calls to pause, why, and until when.',
  fields: (t) => ({
    cover: t.field({ type: PauseCoverInput, required: true, description: 'Which calls to pause.' }),
    reason: t.string({
      required: true,
      description: `Why: 1 to ${MAX_REASON} characters. Callers that are refused, and the audit, show it.`,
    }),
    until: t.field({ type: 'DateTime', description: 'When the pause ends by itself. Omitted: when somebody resumes.' }),
    queued: t.field({
      type: QueuedEnum,
      description: 'What to do with commands that were not dispatched. Default: keep them.',
    }),
    running: t.field({ type: RunningEnum, description: 'What to do with commands that run. Default: leave them.' }),
  }),
});

const SPREAD = {
  partial: flag('Whether some relays have not recorded it yet. The relay that was asked goes on trying.'),
  silent: texts(
    'What did not answer: ids of nodes, or `partition <n>`. Unless `partial`, the answer waited until they could write nothing more.',
  ),
};

const PauseReceiptType = builder.objectRef<PauseReceipt>('PauseReceipt').implement({
  description: 'A pause that has begun.',
  fields: fieldsOf((t) => ({
    pauseId: t.id({ description: 'The id of the pause.', resolve: ({ pause }) => pause.pauseId }),
    pause: typed(PauseType, 'The pause.'),
    cancelled: int('The commands that were not dispatched and were cancelled: none of them ran.'),
    asked: int('The commands that run and whose clients were asked to cancel them.'),
    ...SPREAD,
  })),
});

const ResumeReceiptType = builder.objectRef<ResumeReceipt>('ResumeReceipt').implement({
  description: 'A pause that has ended.',
  fields: fieldsOf(() => ({ pause: typed(PauseType, 'The pause.'), ...SPREAD })),
});

const PauseCallsResult = orRefusal('PauseCallsResult', PauseReceiptType, 'The pause, or a refusal.');
const ResumeCallsResult = orRefusal('ResumeCallsResult', ResumeReceiptType, 'The pause that has ended, or a refusal.');

/** Omitted members of an input are null or undefined, both of which core accepts. */
const coverOfInput = (input: typeof PauseCoverInput.$inferInput): CoverRequest => input;

builder.mutationFields((t) => ({
  pauseCalls: t.field({
    type: PauseCallsResult,
    description: `Stops calls. From the answer on, nothing that the pause covers is admitted, or written to a client by any node; such a call is refused with \`paused\`. A user may pause what is its own. At most ${PAUSES} pauses.`,
    args: { input: t.arg({ type: PauseCallsInput, required: true, description: 'Which calls to pause, and why.' }) },
    resolve: (_, { input: { cover, ...rest } }, { core, requester, notes }) =>
      answered(() => core.pauses.pause(requester, { ...coverOfInput(cover), ...rest }, notes?.requestId)),
  }),
  resumeCalls: t.field({
    type: ResumeCallsResult,
    description:
      'Ends a pause: calls are admitted again, and what waited is dispatched. A user may not end a pause of an administrator. Refuses with `not_found` if there is no such pause, or if it concerns other users.',
    args: { pauseId: t.arg.id({ required: true, description: 'The id of the pause.' }) },
    resolve: (_, { pauseId }, { core, requester, notes }) =>
      answered(() => core.pauses.resume(requester, pauseId, notes?.requestId)),
  }),
}));

builder.queryFields((t) => ({
  pauses: t.field({
    type: PauseConnection,
    description:
      'What is paused now, newest first. Administrators see all pauses; users see those that cover their own clients alone.',
    complexity: (page) => scannedPageCost(page, PAUSES),
    args: {
      userId: t.arg.id({ description: 'Only pauses of the clients of this user.' }),
      ...pageArguments,
    },
    resolve: (_, { userId, ...page }, { core, requester }) => core.pauses.list(requester, { userId }, pageOf(page)),
  }),
  pauseReach: t.field({
    type: PauseReachType,
    description: 'What a pause would touch now. Changes nothing.',
    complexity: () => scanCost(REACH_ROWS),
    args: { cover: t.arg({ type: PauseCoverInput, required: true, description: 'Which calls to pause.' }) },
    resolve: (_, { cover }, { core, requester }) => core.pauses.reach(requester, coverOfInput(cover)),
  }),
}));

const PauseChangeEnum = wireEnum<PauseEvent['change']>('PauseChange', 'What happened to a pause.', {
  paused: 'It began, or a client replaced its own.',
  resumed: 'Somebody ended it.',
  lapsed: 'Its time is over.',
});

const PauseEventType = builder.objectRef<LiveEvent<PauseEvent>>('PauseEvent').implement({
  description: 'A pause that began or ended.',
  fields: fieldsOf((t) => ({
    ...fieldsOfPart(t, 'event', {
      change: typed(PauseChangeEnum, 'What happened.'),
      pause: typed(PauseType, 'The pause.'),
      at: time('When it happened.'),
    }),
    missed: int(
      'At least how many events were lost since the previous one: those that the subscriber read too slowly, and one for each interruption between the relay and other relays.',
    ),
  })),
});

builder.subscriptionField('pauseEvents', (t) =>
  t.field({
    type: PauseEventType,
    description:
      'Pauses that begin and end from now on. Administrators see all; users see those that cover their own clients alone.',
    args: { userId: t.arg.id({ description: 'Only pauses of the clients of this user.' }) },
    subscribe: (_, { userId }, { core, requester }) => core.pauses.events(requester, userId ?? null),
    resolve: fresh,
  }),
);
