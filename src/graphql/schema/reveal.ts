/** The mutation `revealPayload`: one payload, one reason, one row of the audit. */
import { invalid } from '../../core/errors.ts';
import { MAX_REASON, REVEAL_REASON_MIN, REVEALS_PER_HOUR } from '../../core/limits.ts';
import type { RevealedPayload, RevealTarget } from '../../core/reveal/api.ts';
import { builder } from './builder.ts';
import { wireEnum } from './enums.ts';
import { readNodeId } from './node-ids.ts';
import { Refusal, refusalOf } from './refusal.ts';

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
  fields: (t) => ({
    value: t.expose('value', { type: 'JSON', description: 'The payload as it was sent.' }),
    digest: t.exposeString('digest', { description: 'SHA-256 of the payload’s JSON text as base64url.' }),
    expiresAt: t.expose('expiresAt', { type: 'DateTime', description: 'Until when the relay retains it at most.' }),
  }),
});

const RevealPayloadResult = builder.unionType('RevealPayloadResult', {
  description: 'The payload, or a refusal.',
  types: [RevealedPayloadType, Refusal],
  resolveType: (answer) => ('kind' in answer ? 'Refusal' : 'RevealedPayload'),
});

type Given = {
  readonly subject: RevealTarget['kind'];
  readonly userId: string;
  readonly clientId?: string | null | undefined;
  readonly commandId?: string | null | undefined;
  readonly messageId?: string | null | undefined;
};

function targetOf({ subject, userId, clientId, commandId, messageId }: Given): RevealTarget {
  if (subject === 'message') return messageOf({ userId, commandId }, messageId ?? invalid('messageId', 'required'));
  return {
    kind: subject,
    userId,
    clientId: clientId ?? invalid('clientId', 'required'),
    commandId: commandId ?? invalid('commandId', 'required'),
  };
}

function messageOf({ userId, commandId }: Pick<Given, 'userId' | 'commandId'>, messageId: string): RevealTarget {
  if (commandId != null) return { kind: 'message', userId, commandId, messageId };
  const { kind, key } = readNodeId('messageId', messageId);
  if (kind !== 'Message' || key.userId !== userId)
    return invalid('messageId', 'expected the id of a message of this user');
  return { kind: 'message', key: { userId, suffix: key.suffix, seq: Number(key.seq), at: Number(key.at) } };
}

builder.mutationField('revealPayload', (t) =>
  t.field({
    type: RevealPayloadResult,
    description: `Reveals one payload. For an administrator, the audit records it with the reason before the payload is read, at most ${REVEALS_PER_HOUR} times an hour for each administrator; if it cannot be recorded, nothing is revealed. Answers \`not_found\` for what is absent, belongs to another user or is no longer retained.`,
    args: { input: t.arg({ type: RevealPayloadInput, required: true, description: 'What to reveal.' }) },
    resolve: (_, { input }, { core, requester, notes }) => {
      const request = { target: targetOf(input), reason: input.reason, requestId: notes?.requestId };
      return core.reveals.reveal(requester, request).catch(refusalOf);
    },
  }),
);
