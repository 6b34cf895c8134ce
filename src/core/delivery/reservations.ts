/** Sums up the reservations of all scopes, without naming users. */
import { isOwnScope, type Policy } from '../auth/policy.ts';
import { SHOWN_SCOPES } from '../limits.ts';
import type { ReservedScope } from './inspector.ts';
import type { ReservationsView } from './observation.ts';

export function reservationsView(policy: Policy, scopes: readonly ReservedScope[]): ReservationsView {
  const all = scopes.map((scope) => ({ ...scope, limit: limitOf(policy, scope) }));
  const named = all
    .filter(({ scopeId, userId }) => !isOwnScope(scopeId, userId))
    .sort((a, b) => b.reservedCommands - a.reservedCommands)
    .slice(0, SHOWN_SCOPES);
  const sum = (rows: readonly ReservedScope[]): number =>
    rows.reduce((total, { reservedCommands }) => total + reservedCommands, 0);
  const usedOf = ({ reservedCommands, limit }: (typeof all)[number]): number => (limit ? reservedCommands / limit : 0);
  return {
    named: named.map(({ scopeId, reservedCommands, limit }) => ({ scopeId, reservedCommands, limit })),
    others: sum(all) - sum(named),
    fullest: all.reduce((most, scope) => Math.max(most, usedOf(scope)), 0),
  };
}

/**
 * Returns the limit of a scope under this node's policy. Null if this policy puts the user into another scope: then a
 * node with another policy made the reservation.
 */
function limitOf(policy: Policy, { scopeId, userId }: ReservedScope): number | null {
  const scope = policy.scopeOf(userId);
  return scope.id === scopeId ? scope.limit : null;
}
