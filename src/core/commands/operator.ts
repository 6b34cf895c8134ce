/**
 * Builds the operator API of delivery: inspection, actions on links and nodes, live updates of one command, and feeds
 * of the events of commands.
 */
import { isOwnScope, type AdmissionScope, type Policy } from '../auth/policy.ts';
import { readSight, readUserInSight, seenActions, seesAction, type Sight } from '../auth/sight.ts';
import { requireAdmin, type Requester } from '../auth/principal.ts';
import { checkLabels } from '../connections/labels.ts';
import { isLive, type Connection } from '../connections/connection.ts';
import type { CommandHint } from '../backend.ts';
import type { Deps } from '../deps.ts';
import { CallboardError, fail, invalid, isStoreUnavailable, notFoundError } from '../errors.ts';
import {
  canonicalUser,
  commandKeyText,
  hasAtMost,
  id,
  name,
  trace,
  within,
  type ClientKey,
  type CommandKey,
} from '../ids.ts';
import type { JsonText } from '../json.ts';
import {
  ADMITTED_WITHIN_MS,
  DRAIN_WITHIN_MS,
  ERROR_CODE_CHARS,
  LOOP_ALIVE_MS,
  MAX_REASON,
  NODE_LEASE_MS,
  OPERATOR_CONFIRM_MS,
  OPERATOR_POLL_MS,
  SHOWN_SCOPES,
  USER_GIVEN_CHARS,
} from '../limits.ts';
import { createFeed, type Lifetime, type SharedSubscription, type Subscription } from '../live.ts';
import { thenDo, type MaybePromise } from '../maybe-promise.ts';
import { completenessOf, observed, type Completeness } from '../completeness.ts';
import { listingOf, type PageArgs, type GivenFilter } from '../cursors.ts';
import { silentSources, withGaps } from '../silent-nodes.ts';
import type { Page } from '../page.ts';
import type { Cancel } from '../ports.ts';
import { holderOf } from '../shares/holder.ts';
import type { Holdings } from '../shares/shares.ts';
import {
  isTerminal,
  type CallerFilter,
  type Command,
  type CommandEvent,
  type CommandEventFilter,
  type Outcome,
} from './command.ts';
import type { Dispatcher } from './dispatcher.ts';
import {
  COMMAND_ORDERS,
  type CapacityScope,
  type CommandLoad,
  type CommandOrder,
  type DeliveryFilter,
  type DeliverySummary,
  type DispatcherNode,
  type ReservedScope,
} from './stores.ts';

/** The interval at which a watched command is read again, in milliseconds, because hints may be lost in shared mode. */
const REREAD_MS = 1_000;

/** The API of commands: their records, their live updates, the state of delivery, and the actions of an operator. */
export type Deliveries = ReturnType<typeof createDeliveries>;

export function createDeliveries(deps: Deps, dispatcher: Dispatcher) {
  const { commands } = deps.backend;
  const many = (requester: Requester, keys: readonly CommandKey[]): MaybePromise<readonly (Command | null)[]> => {
    const sight = seenActions(requester);
    const rows = commands.get(keys);
    if (sight.actions === undefined) return rows;
    return thenDo(rows, (found) => found.map((row) => (row && seesAction(sight, row.action) ? row : null)));
  };
  const command = async (requester: Requester, key: CommandKey): Promise<Command | null> => {
    const own = ownKey(requester, key);
    return own ? ((await many(requester, [own]))[0] ?? null) : null;
  };
  return {
    ...createInspection(deps),
    ...createOperatorActions(deps),
    /** Returns the record of a command. Null if there is no such command, or if the requester does not see it. */
    command,
    /** Returns one record per key, in order; null where there is none that the token of the requester sees. */
    many,
    /** Returns the recorded result. Does not authorize: the caller must have done so. */
    result: (key: CommandKey) => commands.result(key),
    /**
     * Emits the current state first, and ends after the terminal one. Null if there is no such command, or if it
     * belongs to another user. With `admittedWithinMs` a command that does not exist yet is waited for, so that a
     * caller can subscribe before it invokes; the sequence then fails with `not_found` after this time. A command of
     * another user is never found, and nothing else tells it from one that does not exist. The wait counts in the
     * requester's share `waits`: throws `share_exceeded` or `store_full` beyond it.
     */
    async updates(
      requester: Requester,
      key: CommandKey,
      admittedWithinMs?: number | null,
    ): Promise<Subscription<CommandUpdate> | null> {
      const withinMs = within('admitted_within_ms', admittedWithinMs, ADMITTED_WITHIN_MS);
      const own = ownKey(requester, key);
      const sight = seenActions(requester);
      if (withinMs === 0) return own && (await many(requester, [own]))[0] ? watch(deps, own, sight) : null;
      return watch(deps, own, sight, { withinMs, holdings: deps.shares.of(holderOf(requester)) });
    },
    /** Returns the live feed of the events of commands that the requester may see. See `commandEvents`. */
    events: (requester: Requester, query: CommandEventQuery) => commandEvents(deps, requester, query),
    /** Counts the live commands of each of these clients in the whole deployment. Does not authorize. */
    loads: (keys: readonly ClientKey[]) => commands.loads(keys),
    /** Counts the commands that are queued or in flight on the links of this node. */
    nodeLoad: (): CommandLoad => dispatcher.load,
  };
}

/**
 * Returns the key with its user in canonical form; null if the command belongs to another user. Whether the token of the
 * requester sees the command's action shows its record.
 */
export function ownKey(requester: Requester, key: CommandKey): CommandKey | null {
  try {
    const userId = readUserInSight(requester, key.userId);
    return { userId, clientId: id('client_id', key.clientId), commandId: id('command_id', key.commandId) };
  } catch (error) {
    if (error instanceof CallboardError && error.code === 'not_found') return null;
    throw error;
  }
}

/** Checks the reason of a cancel or a disconnect; null: there is none. */
export function checkReason(reason: string | null): void {
  if (reason !== null && !hasAtMost(reason, MAX_REASON)) invalid('reason', `expected at most ${MAX_REASON} characters`);
}

/** How long a subscription waits for the admission of its command, and in whose share the wait counts. */
type AwaitedAdmission = { readonly withinMs: number; readonly holdings: Holdings };

/**
 * Watches a command. Subscribes before it reads, so that no change is missed. Emits each version that it reads once,
 * and progress as it arrives, in the order of its numbers. An update that says that the command ended has no progress:
 * if the command has ended when its progress is read, the progress comes with the state that was emitted last, and the
 * hint of the end follows. `key` is null for a command that the requester may not know of. A command that the sight
 * does not have fails as one that does not exist.
 */
function watch(
  deps: Deps,
  key: CommandKey | null,
  sight: Pick<Sight, 'actions'>,
  awaited: AwaitedAdmission | null = null,
): Subscription<CommandUpdate> {
  const { backend, clock } = deps;
  let latest: Command | null = null;
  let lost = 0;
  let lastNumber: number | null = awaited ? 0 : null;
  let last: Promise<void> = Promise.resolve();
  const push = (command: Command, reported: Reported | null): void => {
    feed.push({ command, ...(reported ?? NO_PROGRESS), at: clock.now() }, lost);
    lost = 0;
  };
  const say = (command: Command, reported: Reported | null): void => {
    stopWaiting();
    if (!seesAction(sight, command.action)) return feed.fail(notFoundError());
    if (reported !== null && isTerminal(command)) {
      if (latest) push(latest, reported);
      return;
    }
    if (latest && command.version <= latest.version && reported === null) return;
    latest = command;
    push(command, reported);
    if (isTerminal(command)) feed.end();
  };
  const reread = (command: CommandKey, reported: Reported | null): void => {
    const turn = last.then(async () => {
      const [now] = await backend.commands.get([command]);
      if (now) say(now, reported);
      else if (latest || !awaited) feed.end();
    });
    // While a shared store is unavailable there is nothing to emit. The next read catches up.
    last = turn.catch((error: unknown) => {
      if (!backend.capabilities.shared || !isStoreUnavailable(error)) feed.fail(error);
    });
  };
  const hinted = (command: CommandKey, { progress, ...hint }: CommandHint): void => {
    if (progress === null) return reread(command, null);
    const number = hint.number ?? null;
    if (number !== null && lastNumber !== null) {
      if (number <= lastNumber) return;
      lost += number - lastNumber - 1;
    }
    lastNumber = number ?? lastNumber;
    reread(command, { progress, number });
  };
  const stopWaiting = awaited ? startWaiting(deps, awaited, () => feed.fail(notFoundError())) : () => {};
  const cancels: Cancel[] = [stopWaiting];
  if (key) {
    const topic = `command:${commandKeyText(key)}` as const;
    cancels.push(
      backend.bus.subscribe(
        topic,
        (hint) => hinted(key, hint),
        () => (lost = Math.max(1, lost)),
      ),
    );
    if (backend.capabilities.shared) cancels.push(clock.every(REREAD_MS, () => reread(key, null)));
  }
  const feed = createFeed<CommandUpdate>(() => cancels.forEach((cancel) => cancel()));
  if (key) reread(key, null);
  return feed.subscription;
}

/**
 * Counts the wait for an admission in the share `waits` until it is stopped. Calls `expired` when it takes too long.
 */
function startWaiting({ clock }: Deps, { withinMs, holdings }: AwaitedAdmission, expired: () => void): Cancel {
  holdings.claim('waits', 1);
  let isWaiting = true;
  const cancel = clock.after(withinMs, expired);
  return () => {
    if (!isWaiting) return;
    isWaiting = false;
    cancel();
    holdings.release('waits', 1);
  };
}

type Reported = Pick<CommandUpdate, 'progress' | 'number'>;
const NO_PROGRESS: Reported = { progress: null, number: null };

// Answers the operator's questions about delivery from the store. Changes nothing.

/** Creates the view of delivery, for administrators only. It shows no payload. */
function createInspection(deps: Deps) {
  const { backend, clock, cursors } = deps;
  const { inspector, nodes, commands } = backend;
  const source = () => ['delivery', clock.now()] as const;
  return {
    async summary(requester: Requester): Promise<DeliverySummaryView> {
      requireAdmin(requester);
      const [summary, silent] = await Promise.all([inspector.summary(), silentSources(deps, 'delivery')]);
      const own = observed(...source(), summary.trackedCommands);
      return { ...summary, completeness: completenessOf([own, ...(summary.gaps ?? []), ...silent]) };
    },
    /** Lists the nodes that have reported, ordered by id. */
    async nodes(requester: Requester, args: PageArgs): Promise<Page<NodeView>> {
      const listing = listingOf('nodes', requireAdmin(requester), null);
      const request = cursors.request(listing, args);
      const scan = withGaps(...(await Promise.all([nodes.list(request), silentSources(deps, 'delivery')])));
      const now = clock.now();
      return cursors.page(listing, scan, ['delivery', now], (node) => nodeView(node, now));
    },
    /** Lists the admission scopes that hold reservations, ordered by scope. */
    async tenants(requester: Requester, args: PageArgs): Promise<Page<ScopeView>> {
      const listing = listingOf('tenants', requireAdmin(requester), null);
      const scan = await inspector.scopes(cursors.request(listing, args));
      return cursors.page(listing, scan, source(), (scope) => scopeView(deps, scope));
    },
    async reservations(requester: Requester): Promise<ReservationsView> {
      requireAdmin(requester);
      return reservationsView(deps.policy, await inspector.reservedScopes());
    },
    /** Returns nodes by their ids, in order; null for one that has not reported. */
    async nodesById(requester: Requester, nodeIds: readonly string[]): Promise<readonly (NodeView | null)[]> {
      requireAdmin(requester);
      const found = await Promise.all(nodeIds.map((nodeId) => nodes.get(nodeId)));
      const now = clock.now();
      return found.map((node) => node && nodeView(node, now));
    },
    /** Returns scopes by their ids, in order; null for one without reservations. */
    async tenantsById(requester: Requester, scopeIds: readonly string[]): Promise<readonly (ScopeView | null)[]> {
      requireAdmin(requester);
      return (await inspector.getScopes(scopeIds)).map((scope) => scope && scopeView(deps, scope));
    },
    /**
     * Returns the record of one command; null if none is kept. Throws `invalid_argument` or `invalid_user` if the key
     * is not valid.
     */
    async status(requester: Requester, { userId, clientId, commandId }: CommandKey): Promise<Command | null> {
      requireAdmin(requester);
      const client = { userId: canonicalUser(userId), clientId: id('client_id', clientId) };
      return (await commands.get([{ ...client, commandId: id('command_id', commandId) }]))[0] ?? null;
    },
    /**
     * Lists tracked commands in the requested order: for an administrator those of all users, for a user those of its
     * own clients. Throws `invalid_argument` if a filter is not valid, and `not_found` if a user names another one.
     */
    async commands(requester: Requester, query: DeliveryQuery, args: CommandPageArgs): Promise<Page<Command>> {
      const { userId, actions } = readSight(requester, query.userId);
      const filter = { ...filterOf(query), userId, ...(actions && { seen: actions }) };
      const order = orderOf(args.order);
      const listing = listingOf('delivery', requester, boundTo(filter, order));
      const request = { ...cursors.request(listing, args), order };
      const silent = silentSources(deps, 'delivery', filter.nodeId);
      const scan = withGaps(...(await Promise.all([inspector.list(filter, request), silent])));
      return cursors.page(listing, scan, source(), (command) => command);
    },
  };
}

/**
 * Builds the operator's view of a node. What the node reported of its loops counts for LOOP_ALIVE_MS, because an older
 * report does not prove that they still run.
 */
export function nodeView(node: DispatcherNode, now: number): NodeView {
  const age = now - node.updatedAt;
  const alive = age < LOOP_ALIVE_MS;
  return {
    ...node,
    listenerAlive: node.listenerAlive && alive,
    reconciliationAlive: node.reconciliationAlive && alive,
    stale: age >= NODE_LEASE_MS,
    policyDigest: node.policy?.digest ?? null,
    policyFault: node.policy?.fault ?? null,
  };
}

/**
 * Adds the limit of a scope. The policy finds a scope only by user, so the users who hold reservations in the scope are
 * looked up.
 */
function scopeView({ policy }: Deps, scope: CapacityScope): ScopeView {
  const own = ({ id: scopeId }: AdmissionScope): boolean => scopeId === scope.scopeId;
  const limit = scope.holders.map(({ userId }) => policy.scopeOf(userId)).find(own)?.limit ?? null;
  return { ...scope, limit };
}

/** Checks the members of a filter that select callers. */
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

/** Returns a text that may be an id of a command, an end of one, or a trace id. Throws `invalid_argument` otherwise. */
export function checkIdOrTrace(text: string): string {
  return text === '' ? invalid('id_or_trace', 'expected at least one character') : trace('id_or_trace', text);
}

function orderOf(given: CommandOrder | null | undefined): CommandOrder {
  const order = given ?? 'key';
  return COMMAND_ORDERS.includes(order) ? order : invalid('order', `expected one of ${COMMAND_ORDERS.join(', ')}`);
}

/**
 * Returns the part of a filter that cursors are bound to. Members that are not given add nothing, so that cursors from
 * older versions, which did not have these members, stay valid.
 */
function boundTo(filter: DeliveryFilter, order: CommandOrder): object {
  const { userId, clientId, stage, outcome, nodeId, admittedAfter, ...others } = filter;
  const later = { ...others, order: order === 'key' ? null : order };
  const given = Object.fromEntries(Object.entries(later).filter(([, value]) => value !== null));
  return { userId, clientId, stage, outcome, nodeId, admittedAfter, ...given };
}

// What operators see of delivery. Types only.

export type DeliverySummaryView = DeliverySummary & { readonly completeness: Completeness };

/**
 * A node's last report; its loops count as alive only while that report is recent enough. `stale`: its lease has run
 * out.
 */
export type NodeView = DispatcherNode & { readonly stale: boolean } & Record<
    'policyDigest' | 'policyFault',
    string | null
  >;

/**
 * A capacity scope with its limit. `limit`: how many commands the scope may hold at once under this node's policy; null
 * if that policy has no such scope.
 */
export type ScopeView = CapacityScope & { readonly limit: number | null };

/**
 * The reservations of the deployment, without the id of any user. `named`: the scopes of the policy with the most
 * reservations, most first; at most SHOWN_SCOPES. `others`: the reservations of all other scopes, such as those of
 * single users. `fullest`: the highest fraction of its limit that any scope has used; 0 without reservations.
 */
export type ReservationsView = {
  readonly named: readonly Pick<ScopeView, 'scopeId' | 'reservedCommands' | 'limit'>[];
  readonly others: number;
  readonly fullest: number;
};

/** The filters of a list of tracked commands. An omitted filter matches every command. */
export type DeliveryQuery = GivenFilter<Omit<DeliveryFilter, 'labels' | 'seen'>> & {
  /** The labels that the target's connection must have, each as `key=value`. */
  readonly labels?: readonly string[] | null | undefined;
};

/** The requested page of commands. The default order is `key`. */
export type CommandPageArgs = PageArgs & { readonly order?: CommandOrder | null | undefined };

/**
 * The result of closing a link as an operator. `closed`: the link is gone. `requested`: its node was asked and has not
 * confirmed yet. `connection` is the state afterwards; it may already be another link of the client.
 */
export type Disconnection = { readonly state: 'closed' | 'requested'; readonly connection: Connection };

export type CommandUpdate = {
  readonly command: Command;
  readonly progress: JsonText | null;
  /** The number that the client gave the report of progress; null if it gave none, and without progress. */
  readonly number: number | null;
  readonly at: number;
};

// Carries out what an operator can request: to disconnect a client, and to drain a node.

/**
 * Creates the actions of an operator, for administrators only. Each action is first written to the audit. If that
 * fails, `audit_unavailable` is thrown and nothing is done. `requestId`: the id of the request, for the audit row.
 */
function createOperatorActions(deps: Deps) {
  const { backend, clock, audit } = deps;
  const { connections, nodes } = backend;
  const find = async (client: ClientKey): Promise<Connection | null> => (await connections.get([client]))[0] ?? null;
  return {
    /**
     * Closes a client's link with the cause `operator`. Null: there is no such connection. Throws `not_connected` if
     * its link is down.
     */
    async disconnectClient(
      requester: Requester,
      key: ClientKey,
      reason: string | null,
      requestId?: string | null,
    ): Promise<Disconnection | null> {
      const admin = requireAdmin(requester);
      const client = { userId: canonicalUser(key.userId), clientId: id('client_id', key.clientId) };
      checkReason(reason);
      const before = await find(client);
      if (!before) return null;
      if (!isLive(before, clock.now())) notConnected();
      const { nodeId, instanceId, epoch } = before;
      const subject = { ...client, instanceId, nodeId };
      const act = await audit.record(admin, { action: 'disconnect', subject, reason, requestId });
      const kick = { kind: 'kick', client, epoch, cause: 'operator', instanceId: null } as const;
      if (!(await nodes.post(nodeId, kick))) {
        await act.end('not_connected');
        notConnected();
      }
      const isGone = (now: Connection | null): boolean => now?.epoch !== epoch || now.disconnectedAt !== null;
      const after = await pollUntil(deps, () => find(client), isGone);
      const state = isGone(after) ? 'closed' : 'requested';
      await act.end(state);
      return { state, connection: after ?? before };
    },
    /**
     * Asks a node to drain for at most `withinMs` milliseconds, and answers with its report afterwards. Null: there is
     * no such live node.
     */
    async drainNode(
      requester: Requester,
      nodeIdText: string,
      withinMs: number | null,
      reason: string | null = null,
      requestId?: string | null,
    ): Promise<NodeView | null> {
      const admin = requireAdmin(requester);
      const nodeId = id('node_id', nodeIdText);
      const ms = within('within_ms', withinMs, DRAIN_WITHIN_MS);
      checkReason(reason);
      if (!(await nodes.get(nodeId))) return null;
      const act = await audit.record(admin, { action: 'drain', subject: { nodeId }, reason, requestId });
      const isPosted = await nodes.post(nodeId, { kind: 'drain', withinMs: ms });
      await act.end(isPosted ? 'requested' : 'not_found');
      if (!isPosted) return null;
      const after = await pollUntil(
        deps,
        () => nodes.get(nodeId),
        (node) => node === null || node.draining,
      );
      return after && nodeView(after, clock.now());
    },
  };
}

function notConnected(): never {
  fail('not_connected', 'The client is not connected.');
}

/** Reads until `done` holds, for at most OPERATOR_CONFIRM_MS, because nodes process their mailboxes asynchronously. */
async function pollUntil<T>({ clock }: Deps, read: () => MaybePromise<T>, done: (seen: T) => boolean): Promise<T> {
  const end = clock.monotonic() + OPERATOR_CONFIRM_MS;
  for (;;) {
    const seen = await read();
    if (done(seen) || clock.monotonic() >= end) return seen;
    await new Promise<void>((resolve) => void clock.after(OPERATOR_POLL_MS, resolve));
  }
}

// Sums up the reservations of all scopes, without naming users.

function reservationsView(policy: Policy, scopes: readonly ReservedScope[]): ReservationsView {
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

// Decides who may listen to the events of commands, and to which of them.

export type CommandEventQuery = GivenFilter<Omit<CommandEventFilter, 'seen'>>;

/** A lifetime that never ends by itself. The transport ends the streams of an expired token. */
const AS_LONG_AS_TOKEN: Lifetime = { endWith() {}, close() {} };

/**
 * Returns the feed of events of commands that match a query: of all users for an administrator, of its own clients for
 * a user. Throws `invalid_argument` for an invalid member, `not_found` for a foreign user, and on `listen` as
 * `CommandEvents.listen`.
 */
function commandEvents(
  { events, shares }: Deps,
  requester: Requester,
  query: CommandEventQuery,
): SharedSubscription<CommandEvent> {
  const { clientId, action, clientType = null, outcomes } = query;
  const { userId, actions } = readSight(requester, query.userId);
  const filter: CommandEventFilter = {
    userId,
    ...(actions && { seen: actions }),
    clientId: clientId == null ? null : id('client_id', clientId),
    action: action == null ? null : name('action', action),
    clientType,
    outcomes: outcomes == null ? null : checkOutcomes(outcomes),
  };
  const holdings = shares.of(holderOf(requester));
  const listen = (push: (event: CommandEvent) => void): Cancel => events.listen(filter, push, holdings);
  return { key: events.keyOf(filter), listen, lifetime: AS_LONG_AS_TOKEN };
}

/** Returns each outcome once and in a fixed order, so that equal filters share one feed. */
function checkOutcomes(outcomes: readonly Outcome[]): readonly Outcome[] {
  return outcomes.length === 0 ? invalid('outcomes', 'expected at least one') : [...new Set(outcomes)].sort();
}
