/** Defines the schema of revocations: which tokens are revoked, by whom and why, and the mutation that revokes. */
import { MAX_REASON, REVOCATIONS_MAX, REVOKE_WITHIN_MS } from '../../core/limits.ts';
import type { Revocation } from '../../core/revocations/revocation.ts';
import type { RevocationReceipt } from '../../core/revocations/revocations.ts';
import { builder } from './builder.ts';
import { fieldsOf, id, int, nullable, text, texts, time, typed } from './fields.ts';
import { connectionOf, forAdmins, pageArguments, pageCost, pageOf } from './page.ts';
import { answered, orRefusal } from './refusal.ts';

const RevocationType = builder.objectRef<Revocation>('Revocation').implement({
  description: 'Tokens that are revoked. A revocation covers the tokens that match every member that is not null.',
  fields: fieldsOf(() => ({
    revocationId: id('The id of the revocation.'),
    userId: nullable.id('Only tokens of this user, or of the administrator of this name; null: of all.'),
    clientId: nullable.id('Only links of this client; null: every use of the token.'),
    tokenId: nullable.id('Only the token with this id (`jti`); null: all.'),
    issuedBefore: nullable.time(
      'Only tokens that were issued before this time (`iat`), or do not say when; null: all.',
    ),
    reason: text('Why.'),
    who: text('Who revoked: `admin:<name>` or `user:<id>`.'),
    at: time('When it was revoked.'),
    expiresAt: time('Until when it is kept.'),
  })),
});

const RevocationConnection = connectionOf('Revocation', RevocationType, { rows: 'revocations' });

export const RevocationReceiptType = builder.objectRef<RevocationReceipt>('RevocationReceipt').implement({
  description: 'What a revocation has ended.',
  fields: fieldsOf(() => ({
    revocation: typed(RevocationType, 'The revocation.'),
    links: int('How many links were closed with 4403, on all nodes that answered.'),
    sockets: int('How many connections with an event stream or another request in progress were ended.'),
    cancelled: int('How many commands that had not been dispatched were cancelled: none of them ran.'),
    nodes: texts('The nodes that refuse what is revoked, and have ended what it covers.'),
    silent: texts(
      `The nodes that did not answer within ${REVOKE_WITHIN_MS} ms. They refuse what is revoked once they reach the store. So are those that decide about queued commands and did not answer in time: the relay tries on to cancel these commands. \`partition <n>\`: no node decides about them now.`,
    ),
  })),
});

const RevokeInput = builder.inputType('RevokeInput', {
  description: 'Which tokens to revoke: those that match every member that is given; at least one.',
  fields: (t) => ({
    userId: t.id({ description: 'Only tokens of this user. A user may omit it, and may name no other one.' }),
    clientId: t.id({ description: 'Only links of this client of the user.' }),
    tokenId: t.id({ description: 'Only the token with this id (`jti`).' }),
    issuedBefore: t.field({
      type: 'DateTime',
      description: 'Only tokens that were issued before this time. Omitted without `tokenId`: before now.',
    }),
    reason: t.string({ required: true, description: `Why: 1 to ${MAX_REASON} characters.` }),
  }),
});

const RevokeResult = orRefusal('RevokeResult', RevocationReceiptType, 'What was ended, or a refusal.');

builder.mutationFields((t) => ({
  revoke: t.field({
    type: RevokeResult,
    description: `Revokes tokens. From the answer on, the nodes that it names refuse what is revoked, and have ended its links and event streams. Commands that wait for their client, and were invoked with tokens that are covered, are cancelled. A user may revoke tokens of its own. At most ${REVOCATIONS_MAX} single tokens: \`issuedBefore\` covers many at once. Tokens of administrators in the configuration cannot be revoked.`,
    args: { input: t.arg({ type: RevokeInput, required: true, description: 'Which tokens to revoke, and why.' }) },
    resolve: (_, { input }, { core, requester, notes }) =>
      answered(() => core.revocations.revoke(requester, input, notes?.requestId)),
  }),
}));

builder.queryFields((t) => ({
  revocations: t.field({
    type: RevocationConnection,
    description: 'Which tokens are revoked, newest first. Administrators only.',
    complexity: forAdmins(pageCost),
    args: pageArguments,
    resolve: (_, page, { core, requester }) => core.revocations.list(requester, pageOf(page)),
  }),
}));
