/**
 * Core's DeliveryInspector in memory: lists and counts commands and reservations. It reads the ledger and changes
 * nothing.
 */
import type { Clock } from '../../core/ports.ts';
import type { Command } from '../../core/commands/command.ts';
import { hasLabels } from '../../core/connections/labels.ts';
import { busiestOf } from '../../core/connections/reconnects.ts';
import type { Connection } from '../../core/connections/connection.ts';
import { matchesRecord } from '../../core/commands/lookup.ts';
import type {
  CapacityScope,
  DeliveryFilter,
  DeliveryInspector,
  ReservedScope,
} from '../../core/commands/delivery-inspector.ts';
import { DELIVERY_SAMPLE, OWN_COMMANDS, SCOPE_HOLDERS } from '../../core/limits.ts';
import type { ObservedSource } from '../../core/completeness.ts';
import { SCAN_BUDGET, scanSorted, sortable, type PageRequest, type Position, type Scan } from '../../core/page.ts';
import { commandKeyText as keyText, keyOf, type ClientKey } from '../../core/ids.ts';
import type { Entry, Ledger, Scope } from './ledger.ts';

type PeekConnection = (key: ClientKey) => Connection | null;
type InspectorSources = { readonly clock: Clock; readonly ledger: Ledger; readonly peek: PeekConnection };

/**
 * Creates core's DeliveryInspector over the ledger. The sample in its summary contains the commands that are due
 * soonest.
 */
export function createMemoryInspector({ clock, ledger, peek }: InspectorSources): DeliveryInspector {
  const gaps = ({ userId, stage }: DeliveryFilter): readonly ObservedSource[] => {
    // Only records of ended commands are ever reduced to marks, so a listing of live commands is complete.
    const complete = !ledger.short(userId) || (stage !== null && stage !== 'terminal');
    const gap = { source: 'delivery', nodeId: null, observed: 0, limit: null, reason: 'evicted' } as const;
    return complete ? [] : [{ ...gap, complete, asOf: clock.now() }];
  };
  return {
    summary() {
      const sample = ledger.soonest(DELIVERY_SAMPLE).map(({ command }) => command);
      const queued = sample.filter(({ stage }) => stage === 'queued').map(({ queuedAt }) => queuedAt ?? clock.now());
      const since = least(queued);
      return {
        trackedCommands: ledger.tracked,
        dueCommands: ledger.dueCount,
        sampledOldestDeadline: least(sample.map(({ deadline }) => deadline)),
        sampledOldestQueuedAgeMs: since === null ? null : Math.max(0, clock.now() - since),
        sampleSize: sample.length,
        legacyCommandStreamDepth: null,
        pendingCommandDepth: null,
      };
    },
    scopes(page) {
      const scan = scanSorted(ledger.scopes(page.after?.[0] ?? null), page, ({ scopeId }) => [scopeId]);
      return { ...scan, rows: scan.rows.map(({ row, position }) => ({ row: viewOf(row), position })) };
    },
    getScopes: (scopeIds) =>
      scopeIds.map((scopeId) => {
        const scope = ledger.scope(scopeId);
        return scope ? viewOf(scope) : null;
      }),
    reservedScopes: () => ledger.scopes(null).take(SCAN_BUDGET).map(reservedIn).toArray(),
    busiest(first) {
      const live = ledger.scopes(null).flatMap(({ holders }) => holders);
      const clients = live
        .take(SCAN_BUDGET + 1)
        .map(({ command }) => command)
        .toArray();
      return { rows: busiestOf(clients.slice(0, SCAN_BUDGET), first), complete: clients.length <= SCAN_BUDGET };
    },
    list(filter, page) {
      const matches = matching(filter, peek);
      const scan =
        page.order === 'newest' ? newest(ledger, filter, page, matches) : byKey(ledger, filter, page, matches);
      return { ...scan, gaps: gaps(filter) };
    },
  };
}

function viewOf({ scopeId, holders }: Scope): CapacityScope {
  const first = [...holders].sort(byDeadline).slice(0, SCOPE_HOLDERS);
  return {
    scopeId,
    reservedCommands: holders.size,
    oldestDeadline: first[0]?.command.deadline ?? null,
    holders: first.map(({ command }) => ({ ...keyOf(command), deadline: command.deadline })),
  };
}

function reservedIn({ scopeId, holders }: Scope): ReservedScope {
  const [first] = holders;
  return { scopeId, reservedCommands: holders.size, userId: first?.command.userId ?? '' };
}

function byDeadline({ command: a }: Entry, { command: b }: Entry): number {
  const [left, right] = [keyText(a), keyText(b)];
  return a.deadline - b.deadline || (left < right ? -1 : 1);
}

type Matches = (command: Command) => boolean;

function matching(filter: DeliveryFilter, peek: PeekConnection): Matches {
  const { userId, labels } = filter;
  return (command) =>
    (userId === null || command.userId === userId) &&
    matchesRecord(filter, command) &&
    (labels === null || hasLabels(peek(command), labels));
}

function byKey(ledger: Ledger, filter: DeliveryFilter, page: PageRequest, matches: Matches): Scan<Command> {
  const commands = ledger.inOrder(filter, page.after).map(({ command }) => command);
  return scanSorted(commands, page, ({ userId, clientId, commandId }) => [userId, clientId, commandId], matches);
}

/**
 * Reads commands, newest admission first. If the user or client has at most OWN_COMMANDS commands, reads and sorts only
 * these; otherwise reads all commands in order of admission. The number of parts of a position shows which of the two
 * ways produced the page before it.
 */
function newest(ledger: Ledger, filter: DeliveryFilter, page: PageRequest, matches: Matches): Scan<Command> {
  if (filter.userId === null || page.after?.length === ALL_PARTS) return newestOfAll(ledger, page, matches);
  const most = page.after === null ? OWN_COMMANDS : SCAN_BUDGET;
  const own = ledger
    .inOrder(filter, null)
    .take(most + 1)
    .map(({ command }) => command)
    .toArray();
  if (own.length > most && page.after === null) return newestOfAll(ledger, page, matches);
  const later = own.filter((command) => isLater(placeOf(command), page.after)).sort(byAdmission);
  const scan = scanSorted(later, page, placeOf, matches);
  return own.length > most ? { ...scan, cut: true } : scan;
}

/** Returns the position of a command among those of its user. */
const placeOf = ({ admittedAt, clientId, commandId }: Command): Position => [sortable(admittedAt), clientId, commandId];

/**
 * Whether a position comes after `after` in the order of the newest commands of a user. `after` is null at the start.
 */
function isLater(place: Position, after: Position | null): boolean {
  const at = after === null ? -1 : place.findIndex((part, i) => part !== after[i]);
  return after === null || (at >= 0 && (place[at] ?? '') < (after[at] ?? ''));
}

function byAdmission(one: Command, other: Command): number {
  return isLater(placeOf(one), placeOf(other)) ? 1 : -1;
}

/** The number of parts of a position in a listing of the commands of all users. */
const ALL_PARTS = 4;

/**
 * Reads the commands of all users, newest admission first. A position is the command's time of admission, then its key,
 * so every process that has the command computes the same position.
 */
function newestOfAll(ledger: Ledger, page: PageRequest, matches: Matches): Scan<Command> {
  const timed = ledger.newestFirst(page.after).map(({ item, at }) => ({ command: item.command, at }));
  const scan = scanSorted(
    timed,
    page,
    ({ at, command: { userId, clientId, commandId } }) => [sortable(at), userId, clientId, commandId],
    ({ command }) => matches(command),
  );
  return { ...scan, rows: scan.rows.map(({ row, position }) => ({ row: row.command, position })) };
}

function least(numbers: readonly number[]): number | null {
  return numbers.length === 0 ? null : Math.min(...numbers);
}
