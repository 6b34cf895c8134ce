/** The type Refusal: why an invocation was not admitted, and by which layer. */
import type { Invocation, RefusedBy } from '../../core/core.ts';
import { CallboardError, CODES, type Code } from '../../core/errors.ts';
import { builder } from './builder.ts';
import { CODE_MEANINGS } from './refusal-meanings.ts';
import { enumName, keysOf, wireEnum } from './enums.ts';

/** A refusal as core returns it. */
export type RefusalView = Extract<Invocation, { readonly kind: 'refused' }>;

/**
 * The codes of core's errors that a union with the type Refusal shows as a refusal, each with the layer that refused.
 */
const EXPECTED: Partial<Record<Code, RefusedBy>> = {
  policy_denied: 'policy',
  not_connected: 'target',
  capacity_exceeded: 'capacity',
  rate_limited: 'capacity',
  share_exceeded: 'capacity',
  store_full: 'capacity',
  draining: 'relay',
  audit_unavailable: 'relay',
  session_inactive: 'site',
  site_action_denied: 'site',
  site_capability_denied: 'site',
  site_mode_denied: 'site',
};

/** Turns an expected error into a refusal. Rethrows every other error, such as those about missing permissions. */
export function refusalOf(error: unknown): RefusalView {
  const by = error instanceof CallboardError ? EXPECTED[error.code] : undefined;
  if (!(error instanceof CallboardError) || by === undefined) throw error;
  const { code, message, details } = error;
  const commandId = details.command?.commandId ?? null;
  const { retryAfterMs = null, share } = details;
  return { kind: 'refused', code, message, by, retryAfterMs, commandId, share };
}

export const RefusalCodeEnum = builder.enumType('RefusalCode', {
  description: 'The error codes of the relay. REST, GraphQL and links use the same codes.',
  values: codeValues(),
});

function codeValues(): Record<string, { readonly value: Code; readonly description: string }> {
  const values: Record<string, { readonly value: Code; readonly description: string }> = {};
  for (const code of keysOf(CODES)) {
    values[enumName(code)] = {
      value: code,
      description: `\`${code}\`, HTTP status ${CODES[code]}. ${CODE_MEANINGS[code]}`,
    };
  }
  return values;
}

const RefusedByEnum = wireEnum<RefusedBy>('RefusedBy', 'The layer of the relay that refused a request.', {
  address: 'The address names nothing that the requester may reach.',
  policy: 'The central policy denies the invocation.',
  arguments: 'An argument is invalid.',
  capacity: 'A limit on capacity, rate or storage is reached.',
  target:
    'The target client is not connected, has another instance than the requested one, or does not advertise the action.',
  conflict: 'The command id was used for a different request.',
  site: 'The rules of the site deny the request.',
  relay: 'This node admits no commands now.',
});

export const Refusal = builder.objectRef<RefusalView>('Refusal').implement({
  description: 'A request that was refused before anything could run. A refused invocation leaves no command behind.',
  fields: (t) => ({
    code: t.expose('code', { type: RefusalCodeEnum, description: 'The error code, for programs.' }),
    message: t.exposeString('message', { description: 'The error message, for people.' }),
    by: t.expose('by', { type: RefusedByEnum, description: 'The layer that refused.' }),
    retryAfterMs: t.exposeInt('retryAfterMs', {
      nullable: true,
      description: 'After how many milliseconds a retry may succeed; null if waiting alone does not help.',
    }),
    share: t.string({
      nullable: true,
      description:
        'Which share is used up, such as `links` or `queued_bytes`; null unless the code is `share_exceeded` or `store_full`.',
      resolve: ({ share }) => share ?? null,
    }),
    givenCommandId: t.id({
      nullable: true,
      description:
        'The command id that the caller gave; null if it gave none. This call created no command with that id.',
      resolve: ({ commandId }) => commandId,
    }),
  }),
});
