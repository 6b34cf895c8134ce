/**
 * Defines the schema of the audit: what administrators did, the stored chain of its rows and the check of that chain,
 * and the mutation `revealPayload`, whose use the audit records.
 */
import type { AuditSubject, OperatorAction } from '../../core/audit/audit-rows.ts';
import type { AuditChain, AuditCheck, AuditEvent } from '../../core/audit/audit.ts';
import { invalid } from '../../core/errors.ts';
import { AUDIT_ROWS, MAX_REASON, PAGE_MAX, REVEALS_PER_HOUR, REVEAL_REASON_MIN } from '../../core/limits.ts';
import { SCAN_BUDGET } from '../../core/page.ts';
import type { RevealTarget, RevealedPayload } from '../../core/reveal/reveal.ts';
import { builder, ranged, wireEnum } from './builder.ts';
import { fieldsOf, id, int, json, nullable, text, texts, time, typed } from './fields.ts';
import { readNodeId } from './node-ids.ts';
import { connectionOf, forAdmins, pageArguments, pageCost, pageOf, scanCost, scannedPageCost } from './page.ts';
import { answered, orRefusal } from './refusal.ts';

const OperatorActionEnum = wireEnum<OperatorAction>(
  'OperatorAction',
  'What an administrator did, or a user who paused or resumed.',
  {
    disconnect: 'Closed a client’s link.',
    drain: 'Drained a node.',
    cancel: 'Cancelled a command that another caller had invoked.',
    payload: 'Read payloads by an argument of a listing.',
    reveal: 'Revealed one payload and gave the reason.',
    pause: 'Paused calls.',
    resume: 'Ended a pause.',
    revoke: 'Revoked tokens.',
    enrol: 'Decided whether a device is enrolled.',
    rename: 'Gave a device another name.',
  },
);

const AuditSubjectType = builder.objectRef<AuditSubject>('AuditSubject').implement({
  description: 'The ids of what an act concerned.',
  fields: fieldsOf(() => ({
    userId: nullable.id('The id of the user that it concerned; null if it concerned no single user.'),
    clientId: nullable.id('The id of the client; null if there is none.'),
    instanceId: nullable.id('The id of the client instance; null if there is none.'),
    commandId: nullable.id('The id of the command; null if there is none.'),
    messageId: nullable.id('The id of the message; null if there is none.'),
    stream: nullable.id(
      'The full key of the stream, `<user>/<suffix>`, or `*` for all streams; null if there is none.',
    ),
    view: nullable.text('`raw` for the raw sample of history; otherwise null.'),
    nodeId: nullable.id('The id of the node that it concerned; null if there is none.'),
    tokenId: nullable.id('The id of the token; null if there is none.'),
    pauseId: nullable.id('The id of the pause; null if there is none.'),
  })),
});

const AuditEventType = builder.objectRef<AuditEvent>('AuditEvent').implement({
  description: 'An act of an administrator. Its row was written before the act. Rows hold no payload and no token.',
  fields: fieldsOf((t) => ({
    id: t.id({ description: 'The number of the row in the chain.', resolve: ({ seq }) => String(seq) }),
    at: time('When the row was written.'),
    who: text('The administrator, as `admin:<name>`: the name of the token, or the subject of a JWT.'),
    action: typed(OperatorActionEnum, 'What the administrator did.'),
    subject: typed(AuditSubjectType, 'What it concerned.'),
    reason: nullable.text('The reason that was given; null if none was.'),
    node: id('The id of the node that the administrator asked.'),
    requestId: nullable.id(
      'The id of the request, as in `x-request-id` and the access log; null outside of a request.',
    ),
    outcome: nullable.text(
      'What became of it, such as `closed`, `cancelled` or `revealed`; null for `PAYLOAD`, and if the relay ended before it could record that.',
    ),
  })),
});

const AuditEventConnection = connectionOf('AuditEvent', AuditEventType, { rows: 'acts of administrators' });

const AuditFilter = builder.inputType('AuditFilter', {
  description: 'Which acts to include. An act must match every member that is given.',
  fields: (t) => ({
    userId: t.id({
      description:
        'Only acts that concern this user. Omitted: a user gets acts that concern it, an administrator gets all.',
    }),
    who: t.string({ description: 'Only acts of this administrator, as `admin:<name>`.' }),
    action: t.field({ type: OperatorActionEnum, description: 'Only this action.' }),
    afterTime: t.field({ type: 'DateTime', description: 'Only acts after this time, exclusive.' }),
    beforeTime: t.field({ type: 'DateTime', description: 'Only acts before this time, exclusive.' }),
  }),
});

const AuditChainType = builder.objectRef<AuditChain>('AuditChain').implement({
  description:
    'A part of the audit as it is stored. Each line is a JSON object; its member `mac` authenticates the others, `prev` is that of the row before, and `key` is the id of the key that signed it. `callboard audit verify` checks the chain.',
  fields: fieldsOf(() => ({
    lines: texts(`Rows as they are stored, in order: at most ${PAGE_MAX}.`),
    lastSeq: nullable.int(
      'The number of the last of these rows, to use as `afterSeq` for the next part; null if there are none.',
    ),
  })),
});

const AuditCheckType = builder.objectRef<AuditCheck>('AuditCheck').implement({
  description:
    'What a relay found when it checked the stored chain with its own keys. Rows that were removed at the very end do not show.',
  fields: fieldsOf(() => ({
    rows: int('How many rows were checked.'),
    fault: nullable.text('The first row that was changed, moved or removed, in a sentence; null if there is none.'),
    unchecked: int(
      'How many rows were signed with a key that the relay does not have, so that only their place was checked.',
    ),
    asOf: time('When the check began.'),
  })),
});

builder.queryFields((t) => ({
  auditCheck: t.field({
    type: AuditCheckType,
    complexity: forAdmins(() => scanCost(AUDIT_ROWS)),
    description:
      'Checks the whole chain of the audit as it is stored. Administrators only. A node repeats a check after a minute at the earliest, and answers with its last one until then. `callboard audit verify` checks the chain without trusting the relay.',
    resolve: (_, _args, { core, requester }) => core.audit.check(requester),
  }),
  auditEvents: t.field({
    type: AuditEventConnection,
    description:
      'What administrators did, newest first. Administrators see all acts; users see those that concern their own data, with who did it.',
    complexity: (page) => scannedPageCost(page, SCAN_BUDGET),
    args: {
      filter: t.arg({
        type: AuditFilter,
        description: 'Which acts to include. Omitted: all that the requester may see.',
      }),
      ...pageArguments,
    },
    resolve: (_, { filter, ...page }, { core, requester }) => core.audit.events(requester, filter ?? {}, pageOf(page)),
  }),
  auditChain: t.field({
    type: AuditChainType,
    description: 'The stored rows of the audit, oldest first, to verify them. Administrators only.',
    complexity: forAdmins(pageCost),
    args: {
      afterSeq: t.arg.int({
        required: true,
        defaultValue: 0,
        description: 'Only rows after this number.',
        extensions: { minimum: 0 },
      }),
      first: t.arg.int({
        ...ranged({ min: 1, max: PAGE_MAX, default: PAGE_MAX }),
        description: `The most rows: 1 to ${PAGE_MAX}.`,
      }),
    },
    resolve: (_, { afterSeq, first }, { core, requester }) => core.audit.chain(requester, afterSeq, first),
  }),
}));

// The mutation `revealPayload` shows one payload for one reason, and writes one row of the audit.

const RevealSubjectEnum = wireEnum<RevealTarget['kind']>('RevealSubject', 'What to reveal.', {
  command_params: 'The params of a command. Needs `clientId` and `commandId`.',
  command_result: 'The result of a command. Needs `clientId` and `commandId`.',
  message: 'The payload of a retained message. Needs `messageId`.',
});

const RevealPayloadInput = builder.inputType('RevealPayloadInput', {
  description: 'Which payload to reveal, and why.',
  fields: (t) => ({
    subject: t.field({ type: RevealSubjectEnum, required: true, description: 'What to reveal.' }),
    userId: t.id({ required: true, description: 'The id of the user that the payload belongs to.' }),
    clientId: t.id({ description: 'The client’s id.' }),
    commandId: t.id({ description: 'The command’s id.' }),
    messageId: t.id({
      description: 'The field `id` of a Message; or, together with `commandId`, its field `messageId`.',
    }),
    reason: t.string({
      required: true,
      description: `The reason, for the audit: ${REVEAL_REASON_MIN} to ${MAX_REASON} characters. The user can read it.`,
    }),
  }),
});

const RevealedPayloadType = builder.objectRef<RevealedPayload>('RevealedPayload').implement({
  description: 'A payload. If an administrator revealed it, the audit says so, and the user can see that.',
  fields: fieldsOf(() => ({
    value: json('The payload as it was sent.'),
    digest: text('SHA-256 of the payload’s JSON text as base64url.'),
    expiresAt: time('Until when the relay retains it at most.'),
  })),
});

const RevealPayloadResult = orRefusal('RevealPayloadResult', RevealedPayloadType, 'The payload, or a refusal.');

type RevealInput = typeof RevealPayloadInput.$inferInput;

function targetOf({ subject, userId, clientId, commandId, messageId }: RevealInput): RevealTarget {
  if (subject === 'message') return messageOf({ userId, commandId }, messageId ?? invalid('message_id', 'required'));
  return {
    kind: subject,
    userId,
    clientId: clientId ?? invalid('client_id', 'required'),
    commandId: commandId ?? invalid('command_id', 'required'),
  };
}

function messageOf({ userId, commandId }: Pick<RevealInput, 'userId' | 'commandId'>, messageId: string): RevealTarget {
  if (commandId != null) return { kind: 'message', userId, commandId, messageId };
  const { kind, key } = readNodeId('message_id', messageId);
  if (kind !== 'Message' || key.userId !== userId)
    return invalid('message_id', 'expected the id of a message of this user');
  return { kind: 'message', key: { userId, suffix: key.suffix, seq: Number(key.seq), at: Number(key.at) } };
}

builder.mutationField('revealPayload', (t) =>
  t.field({
    type: RevealPayloadResult,
    description: `Reveals one payload. For an administrator, the audit records it with the reason before the payload is read, at most ${REVEALS_PER_HOUR} times an hour for each administrator; if it cannot be recorded, nothing is revealed. Refuses with \`not_found\` what is absent, belongs to another user or is no longer retained.`,
    args: { input: t.arg({ type: RevealPayloadInput, required: true, description: 'What to reveal.' }) },
    resolve: (_, { input }, { core, requester, notes }) =>
      answered(() => {
        const request = { target: targetOf(input), reason: input.reason, requestId: notes?.requestId };
        return core.reveals.reveal(requester, request);
      }),
  }),
);
