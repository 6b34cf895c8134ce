/** Checks the filters and the order of listings of commands. */
import { checkLabels } from '../connections/labels.ts';
import type { PageArgs, GivenFilter } from '../cursors.ts';
import { invalid } from '../errors.ts';
import { canonicalUser, hasAtMost, id, name, trace } from '../ids.ts';
import { ERROR_CODE_CHARS, USER_GIVEN_CHARS } from '../limits.ts';
import type { CallerFilter, Outcome } from './command.ts';
import { COMMAND_ORDERS, type CommandOrder, type DeliveryFilter } from './delivery-inspector.ts';

/** Checks the members of a filter that select callers. Throws `invalid_argument`. */
export function callerFilterOf({ caller = null, callerKind = null }: GivenFilter<CallerFilter>): CallerFilter {
  if (caller !== null && !isCallerName(caller)) invalid('caller', `expected 1 to ${USER_GIVEN_CHARS} characters`);
  return { caller, callerKind };
}

function isCallerName(text: string): boolean {
  return text !== '' && hasAtMost(text, USER_GIVEN_CHARS) && !text.includes('\0');
}

/** Checks the filter of a list of commands. Throws `invalid_argument` or `invalid_user` if a member is not valid. */
export function filterOf(query: DeliveryQuery): DeliveryFilter {
  const { userId, clientId, nodeId, action, stage = null, outcome = null, code = null, clientType = null } = query;
  const { contextId, outcomes, admittedAfter = null, admittedBefore = null, idOrTrace } = query;
  if (code === '' || !hasAtMost(code ?? '', ERROR_CODE_CHARS))
    invalid('code', `expected 1 to ${ERROR_CODE_CHARS} characters`);
  return {
    userId: userId == null ? null : canonicalUser(userId),
    clientId: clientId == null ? null : id('client_id', clientId),
    nodeId: nodeId == null ? null : id('node_id', nodeId),
    stage,
    outcome,
    outcomes: outcomes == null ? null : checkOutcomes(outcomes),
    action: action == null ? null : name('action', action),
    contextId: contextId == null ? null : id('context_id', contextId),
    code,
    clientType,
    labels: checkLabels('labels', query.labels),
    admittedAfter,
    admittedBefore,
    idOrTrace: idOrTrace == null ? null : checkIdOrTrace(idOrTrace),
    ...callerFilterOf(query),
  };
}

/**
 * Returns the text if it can be a command id, the end of a command id, or a trace id. Throws `invalid_argument`
 * otherwise.
 */
export function checkIdOrTrace(text: string): string {
  return text === '' ? invalid('id_or_trace', 'expected at least one character') : trace('id_or_trace', text);
}

export function orderOf(given: CommandOrder | null | undefined): CommandOrder {
  const order = given ?? 'key';
  return COMMAND_ORDERS.includes(order) ? order : invalid('order', `expected one of ${COMMAND_ORDERS.join(', ')}`);
}

/**
 * Returns the part of a filter to which cursors are bound. A member that is not set adds nothing, so cursors stay valid
 * that older versions made without this member.
 */
export function boundTo(filter: DeliveryFilter, order: CommandOrder): object {
  const { userId, clientId, stage, outcome, nodeId, admittedAfter, ...others } = filter;
  const later = { ...others, order: order === 'key' ? null : order };
  const given = Object.fromEntries(Object.entries(later).filter(([, value]) => value !== null));
  return { userId, clientId, stage, outcome, nodeId, admittedAfter, ...given };
}

/** The filters of a list of commands, as a requester gives them. An absent filter matches every command. */
export type DeliveryQuery = GivenFilter<Omit<DeliveryFilter, 'labels' | 'seen'>> & {
  /** The labels that the connection of the target must have, each as `key=value`. */
  readonly labels?: readonly string[] | null | undefined;
};

/** The requested page of commands. The default order is `key`. */
export type CommandPageArgs = PageArgs & { readonly order?: CommandOrder | null | undefined };

/** Returns the outcomes without duplicates and sorted, so that subscriptions with the same outcomes share one feed. */
export function checkOutcomes(outcomes: readonly Outcome[]): readonly Outcome[] {
  return outcomes.length === 0 ? invalid('outcomes', 'expected at least one') : [...new Set(outcomes)].sort();
}
