import type { Invocation, RefusedBy } from '../core/core.ts';
import { CallboardError, CODES, type Code } from '../core/errors.ts';
import { builder } from './builder.ts';
import { enumName, keysOf, wireEnum } from './enums.ts';

/** A typed refusal, as core answers it. */
export type RefusalView = Extract<Invocation, { readonly kind: 'refused' }>;

/** What may be refused by being thrown in core, and by which layer: also shown as a typed refusal where a union allows one. */
const EXPECTED: Partial<Record<Code, RefusedBy>> = {
  policy_denied: 'policy',
  not_connected: 'target',
  capacity_exceeded: 'capacity',
  rate_limited: 'capacity',
  share_exceeded: 'capacity',
  store_full: 'capacity',
  draining: 'relay',
  session_inactive: 'site',
  site_action_denied: 'site',
  site_capability_denied: 'site',
  site_mode_denied: 'site',
};

/** The expected refusal in a thrown error; throws it again when it is none, as those about who may not ask are. */
export function refusalOf(error: unknown): RefusalView {
  const by = error instanceof CallboardError ? EXPECTED[error.code] : undefined;
  if (!(error instanceof CallboardError) || by === undefined) throw error;
  const { code, message, details } = error;
  const commandId = details.command?.commandId ?? null;
  const { retryAfterMs = null, share } = details;
  return { kind: 'refused', code, message, by, retryAfterMs, commandId, share };
}

export const RefusalCodeEnum = builder.enumType('RefusalCode', {
  description: 'The closed table of codes, shared with every other face.',
  values: codeValues(),
});

function codeValues(): Record<string, { readonly value: Code; readonly description: string }> {
  const values: Record<string, { readonly value: Code; readonly description: string }> = {};
  for (const code of keysOf(CODES)) {
    values[enumName(code)] = { value: code, description: `\`${code}\`, HTTP status ${CODES[code]}.` };
  }
  return values;
}

const RefusedByEnum = wireEnum<RefusedBy>('RefusedBy', 'Which layer refused.', {
  address: 'The address names nothing that the asker may reach.',
  policy: 'The central policy.',
  arguments: 'The check of the arguments.',
  capacity: 'A bound on how much may be held.',
  target: 'The target: it is not connected, not the one named, or advertises no such action.',
  conflict: 'The command id was used for another request.',
  site: 'The rules of a site.',
  relay: 'This node, which admits nothing now.',
});

export const Refusal = builder.objectRef<RefusalView>('Refusal').implement({
  description: 'Refused before anything could run: an invocation that is refused leaves no command behind.',
  fields: (t) => ({
    code: t.expose('code', { type: RefusalCodeEnum, description: 'Why, for a program.' }),
    message: t.exposeString('message', { description: 'Why, for a reader.' }),
    by: t.expose('by', { type: RefusedByEnum, description: 'Which layer refused.' }),
    retryAfterMs: t.exposeInt('retryAfterMs', {
      nullable: true,
      description: 'When trying again may help, milliseconds from now; null where time alone does not help.',
    }),
    share: t.string({
      nullable: true,
      description:
        'Which share of the relay is used up, where the code is `share_exceeded` or `store_full`: `links`, `queued_bytes`, ...',
      resolve: ({ share }) => share ?? null,
    }),
    givenCommandId: t.id({
      nullable: true,
      description: 'The command id that the caller gave, if it gave one. There is no such command by this call.',
      resolve: ({ commandId }) => commandId,
    }),
  }),
});
