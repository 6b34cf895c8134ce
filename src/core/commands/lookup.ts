/** Finds commands by an id or a trace id, and groups failed commands. Reads a bounded number of records. */
import { matchesAny } from '../auth/patterns.ts';
import { readSight, seenActions, seesAction } from '../auth/sight.ts';
import { requireAdmin, type Requester } from '../auth/principal.ts';
import type { Deps } from '../deps.ts';
import { invalid } from '../errors.ts';
import { clientKeyText, isWithin, type ClientKey, type CommandKey } from '../ids.ts';
import { SHOWN_FAILURES } from '../limits.ts';
import { completenessOf, observed, type Completeness } from '../completeness.ts';
import { listingOf, type PageArgs } from '../cursors.ts';
import { silentSources, withGaps } from '../silent-nodes.ts';
import { SCAN_BUDGET, type Page, type PageRequest, type Position, type Scan } from '../page.ts';
import { hasIdOrTrace, matchesCaller, type Command, type Outcome } from './command.ts';
import { checkIdOrTrace, filterOf, type DeliveryQuery } from './command-filter.ts';
import { ownKey } from './delivery.ts';
import { ANY_COMMAND, type DeliveryFilter, type DeliveryInspector } from './delivery-inspector.ts';

/** Creates the search by id or trace id, and the grouping of failures. */
export function createLookup(deps: Deps) {
  const { backend, clock, cursors } = deps;
  const { inspector } = backend;
  const source = () => ['delivery', clock.now()] as const;
  return {
    /**
     * Finds commands that have a record by their id, by the last eight or more characters of the id, or by their trace
     * id. An administrator finds those of all users, and a user those of its own clients. A page reads at most
     * SCAN_BUDGET records, so it may be empty although a later page has a match. Throws `invalid_argument` if the text
     * is neither an id nor a trace id.
     */
    async find(requester: Requester, idOrTrace: string, args: PageArgs): Promise<Page<Command>> {
      const { userId, actions } = readSight(requester, null);
      checkIdOrTrace(idOrTrace);
      const listing = listingOf('found_commands', requester, { idOrTrace });
      const request = cursors.request(listing, args);
      const search =
        userId === null
          ? findNewest(inspector, idOrTrace, request)
          : // In the order `key`, only this user's records are read.
            inspector.list(
              { ...ANY_COMMAND, userId, idOrTrace, ...(actions && { seen: actions }) },
              { ...request, order: 'key' },
            );
      const scan = withGaps(...(await Promise.all([search, silentSources(deps, 'delivery')])));
      return cursors.page(listing, scan, source(), (command) => command);
    },
    /**
     * Groups the failed commands that match a filter. Failed are those with the outcomes of the filter or, if it has
     * none, with FAILURE_OUTCOMES. Reads at most SCAN_BUDGET records, newest admission first. `first`: the most groups
     * to return, 1 to SHOWN_FAILURES. Throws `invalid_argument` if an argument is not valid.
     */
    async failures(
      requester: Requester,
      query: DeliveryQuery,
      { by, first, reading }: FailureGrouping,
    ): Promise<Failures> {
      requireAdmin(requester);
      if (by.length === 0) invalid('by', 'expected at least one');
      if (!isWithin(first, SHOWN_FAILURES)) invalid('first', `expected 1 to ${SHOWN_FAILURES.max}`);
      const given = filterOf(query);
      const outcomes = given.outcomes ?? (given.outcome === null ? FAILURE_OUTCOMES : null);
      const filter = { ...given, outcomes };
      const silent = silentSources(deps, 'delivery', filter.nodeId);
      const page = { first: SCAN_BUDGET, after: null, order: 'newest', reading } as const;
      const scan = withGaps(...(await Promise.all([inspector.list(filter, page), silent])));
      const groups = groupsOf(scan, new Set(by));
      const read = observed(...source(), scan.rows.length, scan.next === null ? null : SCAN_BUDGET);
      return {
        groups: groups.slice(0, first),
        groupCount: groups.length,
        count: scan.rows.length,
        outcomes: countsOf(scan),
        completeness: completenessOf([read, ...scan.gaps]),
      };
    },
  };
}

/**
 * Returns the key with the canonical user id; null if the requester must not know of the command. A token that is
 * limited to some actions must not know of commands with other actions. It must not know of a command without a record
 * either, because the action is then unknown.
 */
export async function seenKey({ backend }: Deps, requester: Requester, given: CommandKey): Promise<CommandKey | null> {
  const key = ownKey(requester, given);
  const sight = seenActions(requester);
  if (key === null || sight.actions === undefined) return key;
  const [command] = await backend.commands.get([key]);
  return command && seesAction(sight, command.action) ? key : null;
}

/**
 * How many milliseconds may lie between the time in a command id and the time of admission. The clocks of callers
 * differ, and a caller may make an id some time before it invokes.
 */
const ID_TIME_MS = 60_000;
/**
 * The pattern of ids that begin with the time at which they were made: UUIDs of version 7, as the relay and its
 * libraries make them.
 */
const TIMED_ID = /^([\da-f]{8})-([\da-f]{4})-7[\da-f]{3}-[\da-f]{4}-[\da-f]{12}$/;

type Span = { readonly admittedAfter: number; readonly admittedBefore: number };

function spanOf(id: string): Span | null {
  const [, high, low] = TIMED_ID.exec(id) ?? [];
  if (high === undefined || low === undefined) return null;
  const at = parseInt(high + low, 16);
  return { admittedAfter: at - ID_TIME_MS, admittedBefore: at + ID_TIME_MS };
}

/**
 * The two parts of a search. If the id begins with a time, the search first reads commands that were admitted around
 * that time (`near`), because many others may have been admitted since. Then it reads all commands. The first member of
 * a position names the part.
 */
type Part = 'near' | 'all';

async function findNewest(
  inspector: DeliveryInspector,
  idOrTrace: string,
  request: PageRequest,
): Promise<Scan<Command>> {
  const span = spanOf(idOrTrace);
  const [part = 'near', ...rest] = request.after ?? [];
  const after = rest.length === 0 ? null : rest;
  const filter = { ...ANY_COMMAND, idOrTrace };
  if (span && part === 'near') {
    const near = await inspector.list({ ...filter, ...span }, { ...request, after, order: 'newest' });
    if (near.next !== null) return inPart('near', near);
    if (near.rows.length > 0) return { ...inPart('near', near), next: ['all'] };
  }
  const all = await inspector.list(filter, { ...request, after: part === 'all' ? after : null, order: 'newest' });
  const isOld = ({ admittedAt }: Command): boolean =>
    span !== null && admittedAt > span.admittedAfter && admittedAt < span.admittedBefore;
  // The part `near` has already listed the commands of this time.
  return inPart('all', { ...all, rows: all.rows.filter(({ row }) => !isOld(row)) });
}

function inPart(part: Part, scan: Scan<Command>): Scan<Command> {
  const placed = (position: Position): Position => [part, ...position];
  return {
    ...scan,
    rows: scan.rows.map(({ row, position }) => ({ row, position: placed(position) })),
    next: scan.next && placed(scan.next),
  };
}

// Groups failed commands.

/** The outcomes that count as failures: all but completed and cancelled. */
export const FAILURE_OUTCOMES: readonly Outcome[] = ['failed', 'expired', 'outcome_unknown'];

/** The keys by which failures are grouped. `client`: the target and its user. `node`: the node of the target's link. */
const FAILURE_KEYS = ['action', 'code', 'client', 'node'] as const;
export type FailureKey = (typeof FAILURE_KEYS)[number];

type FailureGrouping = Pick<PageRequest, 'reading'> & {
  readonly by: readonly FailureKey[];
  readonly first: number;
};

/**
 * Failed commands that have the same values for all keys of the grouping. If a key is not part of the grouping, its
 * member is null.
 */
export type FailureGroup = {
  readonly action: string | null;
  /** The error code of the commands; null if they ended without one, or if `code` is not part of the grouping. */
  readonly code: string | null;
  readonly client: ClientKey | null;
  /**
   * The node of the target's link; null if the commands were never queued for a link, or if `node` is not part of the
   * grouping.
   */
  readonly nodeId: string | null;
  readonly count: number;
  /** The group's fraction of all counted failures, above 0 and at most 1. */
  readonly share: number;
  /** The failed command that was admitted last. */
  readonly last: Command;
};

export type OutcomeCount = { readonly outcome: Outcome; readonly count: number };

/** `groups`: the largest groups, in descending order. `count`: the number of failures that were counted. */
export type Failures = {
  readonly groups: readonly FailureGroup[];
  /** The number of all groups, including those that are not returned. */
  readonly groupCount: number;
  readonly count: number;
  /** The number of failures of each outcome that occurred. */
  readonly outcomes: readonly OutcomeCount[];
  /** Incomplete, with the reason `limit_reached`, if older commands were not read. */
  readonly completeness: Completeness;
};

function groupsOf({ rows }: Scan<Command>, by: ReadonlySet<FailureKey>): readonly FailureGroup[] {
  const members = Map.groupBy(rows, ({ row }) => groupText(row, by));
  const groups = [...members.values()].flatMap(([first, ...rest]) => {
    if (!first) return [];
    const { row } = first;
    const count = 1 + rest.length;
    return [
      {
        action: by.has('action') ? row.action : null,
        code: by.has('code') ? (row.error?.code ?? null) : null,
        client: by.has('client') ? { userId: row.userId, clientId: row.clientId } : null,
        nodeId: by.has('node') ? row.nodeId : null,
        count,
        share: count / rows.length,
        last: row,
      },
    ];
  });
  return groups.sort((a, b) => b.count - a.count || b.last.admittedAt - a.last.admittedAt);
}

function groupText(command: Command, by: ReadonlySet<FailureKey>): string {
  const { action, error, nodeId } = command;
  const values = { action, code: error?.code ?? null, client: clientKeyText(command), node: nodeId };
  return JSON.stringify(FAILURE_KEYS.map((key) => (by.has(key) ? values[key] : null)));
}

function countsOf({ rows }: Scan<Command>): readonly OutcomeCount[] {
  const members = Map.groupBy(rows, ({ row }) => row.outcome);
  return [...members].flatMap(([outcome, { length }]) => (outcome === null ? [] : [{ outcome, count: length }]));
}

/** Whether a command's record matches a filter. Does not compare the user or the labels of the client. */
export function matchesRecord(filter: DeliveryFilter, command: Command): boolean {
  const { clientId, stage, outcome, outcomes, nodeId, action, contextId, code, clientType } = filter;
  const { admittedAfter, admittedBefore, idOrTrace, seen } = filter;
  return (
    (clientId === null || command.clientId === clientId) &&
    (stage === null || command.stage === stage) &&
    (outcome === null || command.outcome === outcome) &&
    (outcomes === null || (command.outcome !== null && outcomes.includes(command.outcome))) &&
    (nodeId === null || command.nodeId === nodeId) &&
    (action === null || command.action === action) &&
    (seen === undefined || matchesAny(seen, command.action)) &&
    (contextId === null || command.contextId === contextId) &&
    (code === null || command.error?.code === code) &&
    (clientType === null || command.clientType === clientType) &&
    (admittedAfter === null || command.admittedAt > admittedAfter) &&
    (admittedBefore === null || command.admittedAt < admittedBefore) &&
    (idOrTrace === null || hasIdOrTrace(command, idOrTrace)) &&
    matchesCaller(filter, command.caller)
  );
}
