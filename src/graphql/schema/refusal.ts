/**
 * Defines the type Refusal, with which every mutation answers a refused request, and the meaning of each error code.
 */
import type { ObjectRef } from '@pothos/core';
import type { Invocation, RefusedBy } from '../../core/core.ts';
import { CODES, CallboardError, notFoundError, type Code, type InputError } from '../../core/errors.ts';
import { promised, type MaybePromise } from '../../core/maybe-promise.ts';
import type { Pause, PauseAuthor } from '../../core/pauses/pause.ts';
import { builder, keysOf, wireEnum, type Types } from './builder.ts';
import { fieldsOf, id, nullable, text, time, typed } from './fields.ts';

// The meaning of each error code, for readers of the schema. The table in PROTOCOL.md must have the same texts.

export const CODE_MEANINGS: Readonly<Record<Code, string>> = {
  invalid_argument: 'A parameter, member or frame is missing or wrong; the message names it.',
  invalid_cursor: 'The cursor does not belong to this listing, filter or user. Begin again without one.',
  invalid_user: 'A user id is not valid. 401 where it is the subject of the token.',
  reserved_parameter: 'The params have a member whose name begins with `__cooperative_site_`.',
  reserved_stream: 'Only links write the streams below `clients/` and the stream `links`.',
  too_complex: 'The GraphQL document costs more than is allowed.',
  graphql_parse_failed: 'The text is not a GraphQL document.',
  graphql_validation_failed: 'The GraphQL document does not fit the schema.',
  persisted_query_not_supported:
    'The request names a GraphQL document by its hash only. Send the document. 200 if the answer is `application/json`.',
  unauthenticated: 'The token is missing, wrong or expired. Another token may help.',
  forbidden: 'The token does not allow this.',
  policy_denied: 'A rule of the relay’s policy refuses this call; the message names the rule.',
  raw_history_disabled: 'The relay runs without the raw sample of history.',
  site_action_denied: 'The site or the grant does not allow this action.',
  site_mode_denied: 'The site is not a cooperative one.',
  site_capability_denied: 'The site does not allow invoking actions, or sharing.',
  not_found: 'It does not exist, or the token may not know of it.',
  action_not_advertised: 'The client is connected and does not advertise this action.',
  method_not_allowed: 'The path does not take this HTTP method.',
  not_acceptable: 'The answer has no form that `accept` allows.',
  ambiguous: 'Several rows fit the request; the message names the parameter that selects one.',
  command_conflict: 'The command id is in use for another action, other params, another instance or another context.',
  stale_instance:
    'Events were reported for an instance that is not the client’s present one; or a hello is older than that of the present link.',
  instance_mismatch: 'Another instance of the client is connected than the one named.',
  not_connected: 'The client is not connected, or is closing; the call allows no time to connect.',
  context_gone:
    'The client does not report the context that the call names, or reports it again after it had left. Nothing ran.',
  context_unsupported: 'The call names a context, and the client does not know places. Nothing ran.',
  paused: 'A pause covers the call: `pausedBy` names who set it, why and until when. Nothing ran.',
  session_inactive: 'The site session is over, or suspended while its host is away.',
  payload_too_large: 'The body or the payload is too large.',
  unsupported_media_type: 'The body is not JSON by its `content-type`.',
  capacity_exceeded: 'A limit is reached: live commands of the scope, waits on the command, rows of a listing.',
  queue_full: '1000 commands wait for this client.',
  rate_limited: 'Too many calls, requests or frames, or too many bad tokens.',
  share_exceeded: 'The user has more than their guaranteed share of something that is scarce now; `share` names it.',
  internal: 'An error of the relay; the message has the id under which it is logged.',
  not_supported: 'The store of this deployment cannot do it.',
  store_unavailable: 'The store does not answer.',
  draining: 'This node shuts down and admits nothing new.',
  audit_unavailable: 'The audit cannot be written, so what an administrator asked for was not done.',
  store_full: 'A total of the whole relay is used up; `share` names which.',
  runtime_disconnected: 'The host’s runtime has no link to the relay.',
  connect_timeout: '`expired`: the client did not connect in time.',
  queue_timeout: '`expired`: the client was connected, but the command was not dispatched before its deadline.',
  response_timeout: '`outcome_unknown`: dispatched, and no end was reported before the deadline.',
  instance_replaced:
    'Another instance of the client took over. `outcome_unknown` where the command had been dispatched, else `expired`.',
  node_lost:
    'The node that held the link stopped. `outcome_unknown` where the command had been dispatched, else `expired`.',
  store_lost: 'The store lost records, so nothing is proven about the command.',
  client_denied: 'Refused: the client’s authorizer does not allow it, or the client takes no more commands.',
  approval_denied: 'Refused: the command was not approved.',
  arguments_invalid: 'Refused: the params do not match the action’s schema.',
  lease_busy: 'Refused: the action runs one command at a time, and one is running.',
  unknown_action: 'Refused: the client has no such action.',
  too_late: 'Refused: the time of the command was over before its handler could start.',
  handler_failed: 'The handler failed.',
  result_unavailable: 'The command ran to its end, and its result cannot be had any more.',
  client_timeout:
    'The handler was stopped: it took longer than the client allows, or its deadline passed by the client’s clock.',
  not_received: '`failed`: the command was written, and its client says that it never arrived. Nothing ran.',
  result_expired: 'The command ended as its outcome says; its result is no longer retained.',
  cancelled:
    'The reason in history of a command that was cancelled before it was dispatched. No answer carries it as an error.',
};

/** The layer that refused a request. Every mutation checks the token, the address and the arguments. */
type Layer = RefusedBy | 'token';

/** A refusal: one that core returned for an invocation, or one created from an error that core threw. */
export type RefusalView = Omit<Extract<Invocation, { readonly kind: 'refused' }>, 'by'> & {
  readonly by: Layer;
  readonly errors?: readonly InputError[] | undefined;
};

/**
 * The codes of errors that are not refusals. `unauthenticated` fails the whole request. The other two do not prove that
 * nothing was done.
 */
const FAILURES: ReadonlySet<Code> = new Set(['unauthenticated', 'internal', 'store_unavailable']);

/** The layer to which each error code of core belongs; `relay` for all other codes. */
const LAYERS: Partial<Record<Code, Layer>> = {
  forbidden: 'token',
  not_found: 'address',
  invalid_argument: 'arguments',
  invalid_user: 'arguments',
  reserved_parameter: 'arguments',
  policy_denied: 'policy',
  not_connected: 'target',
  capacity_exceeded: 'capacity',
  rate_limited: 'capacity',
  share_exceeded: 'capacity',
  store_full: 'capacity',
  session_inactive: 'site',
  site_action_denied: 'site',
  site_capability_denied: 'site',
  site_mode_denied: 'site',
};

/** Returns the refusal for an error of core. Rethrows an error that is not a refusal. */
export function refusalOf(error: unknown): RefusalView {
  if (!(error instanceof CallboardError) || FAILURES.has(error.code)) throw error;
  const { code, message, details } = error;
  const { retryAfterMs = null, share, errors } = details;
  return { kind: 'refused', code, message, by: LAYERS[code] ?? 'relay', retryAfterMs, commandId: null, share, errors };
}

/**
 * Answers a mutation with the row that `ask` returns, or with a refusal: if `ask` throws one, or if it returns null,
 * which means `not_found`. Rejects with every other error of `ask`. `show` converts the row or refusal into the answer.
 */
export function answered<Row>(ask: () => MaybePromise<Row | null>): Promise<Row | RefusalView>;
export function answered<Row, Shown>(
  ask: () => MaybePromise<Row | null>,
  show: (row: Row | RefusalView) => Shown,
): Promise<Shown>;
export function answered<Row>(ask: () => MaybePromise<Row | null>, show = (row: Row | RefusalView): unknown => row) {
  return promised(ask).then(
    (row) => show(row ?? refusalOf(notFoundError())),
    (error: unknown) => show(refusalOf(error)),
  );
}

const CODE_TEXTS = { ...CODE_MEANINGS };
for (const code of keysOf(CODES)) CODE_TEXTS[code] = `\`${code}\`, HTTP status ${CODES[code]}. ${CODE_MEANINGS[code]}`;

export const RefusalCodeEnum = wireEnum<Code>(
  'RefusalCode',
  'The error codes of the relay. REST, GraphQL and links use the same codes.',
  CODE_TEXTS,
  (code) => code,
);

const RefusedByEnum = wireEnum<Layer>('RefusedBy', 'The layer of the relay that refused a request.', {
  token: 'The token does not allow it.',
  address: 'The address names nothing that the requester may reach.',
  policy: 'The central policy denies the invocation.',
  pause: 'A pause covers the call.',
  arguments: 'An argument is invalid.',
  capacity: 'A limit on capacity, rate or storage is reached.',
  target:
    'The target client is not connected, has another instance than the requested one, or does not advertise the action.',
  place: 'The client does not report the named context, or knows no places.',
  conflict: 'The command id was used for a different request.',
  site: 'The rules of the site deny the request.',
  relay: 'This node does not do it now, or at all.',
});

export const FaultType = builder.objectRef<InputError>('Fault').implement({
  description: 'One invalid input.',
  fields: fieldsOf(() => ({
    parameter: text('The name of the input, as the request spells it.'),
    detail: text('What is wrong with the input.'),
  })),
});

const AuthorKindEnum = wireEnum<PauseAuthor['kind']>('PauseAuthorKind', 'Who set a pause.', {
  admin: 'An administrator.',
  user: 'The user whose clients it covers.',
  client: 'The client itself: the person at it said stop.',
});

export const PauseAuthorType = builder.objectRef<PauseAuthor>('PauseAuthor').implement({
  description: 'Who set a pause.',
  fields: fieldsOf(() => ({
    kind: typed(AuthorKindEnum, 'The kind of author.'),
    name: text('The name of the administrator, the id of the user, or the id of the client.'),
  })),
});

const RefusingPauseType = builder.objectRef<Pause>('RefusingPause').implement({
  description: 'The pause because of which a call was refused.',
  fields: fieldsOf(() => ({
    pauseId: id('The id of the pause.'),
    reason: text('Why calls are paused.'),
    by: typed(PauseAuthorType, 'Who set the pause.'),
    since: time('When it was set.'),
    until: nullable.time('When it ends by itself; null: it holds until somebody resumes.'),
  })),
});

export const Refusal = builder.objectRef<RefusalView>('Refusal').implement({
  description:
    'A request that was refused before anything was done. Every mutation answers a refusal with this type. A refused invocation leaves no command behind.',
  fields: fieldsOf((t) => ({
    code: typed(RefusalCodeEnum, 'The error code, for programs.'),
    message: text('The error message, for people.'),
    by: typed(RefusedByEnum, 'The layer that refused.'),
    retryAfterMs: nullable.int('After how many milliseconds a retry may succeed; null if waiting alone does not help.'),
    share: nullable.text(
      'Which share is used up, such as `links` or `queued_bytes`; null unless the code is `share_exceeded` or `store_full`.',
    ),
    pausedBy: t.field({
      type: RefusingPauseType,
      nullable: true,
      description: 'The pause that covers the call; null unless the code is `paused`.',
      resolve: ({ pause }) => pause ?? null,
    }),
    errors: t.field({
      type: [FaultType],
      complexity: { field: 1, multiplier: 10 },
      description:
        'The invalid inputs, named as in REST (`client_id`), at most 10; empty unless the code is `invalid_argument`.',
      resolve: ({ errors }) => errors ?? [],
    }),
    givenCommandId: t.id({
      nullable: true,
      description:
        'The command id that the caller gave; null if it gave none, or if the request was refused before the id was checked. This call created no command with that id.',
      resolve: ({ commandId }) => commandId,
    }),
  })),
});

/** Creates the union of a result type and `Refusal`. */
export function orRefusal<Name extends string, Row extends object>(
  name: Name,
  result: ObjectRef<Types, Row>,
  description: string,
) {
  return builder.unionType(name, {
    description,
    types: [result, Refusal],
    resolveType: (answer) => ('kind' in answer && answer.kind === 'refused' ? 'Refusal' : result.name),
  });
}
