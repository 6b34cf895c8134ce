/**
 * Lists and counts the callers that wait for commands, on all nodes, and sends alerts when the oldest wait is too old.
 */
import { readSight, seenActions, seesAction } from '../auth/sight.ts';
import type { Requester } from '../auth/principal.ts';
import { otherNodes } from '../commands/other-nodes.ts';
import type { NodeQuestions } from '../commands/node-questions.ts';
import { callerFilterOf } from '../commands/command-filter.ts';
import {
  ANY_WAIT,
  type Counted,
  type CountedScan,
  type PendingWait,
  type WaiterFilter,
  type WaiterStore,
} from '../commands/waiter-store.ts';
import { isLive, type Connection } from '../connections/connection.ts';
import type { Deps } from '../deps.ts';
import { id, within, type ClientKey, type CommandKey } from '../ids.ts';
import { isRecord, parsedJson } from '../json.ts';
import {
  COUNT_SCAN,
  MIN_AGE_MS,
  OLDER_THAN_MS,
  PAGE_MAX,
  RECONCILE_MS,
  WAITS_ANSWER_CHARS,
  WAITS_ASK_MS,
} from '../limits.ts';
import { createFeed, type Subscription } from '../live.ts';
import { both, thenDo, type MaybePromise } from '../maybe-promise.ts';
import {
  completenessOf,
  gapOf,
  observed,
  type Completeness,
  type IncompleteReason,
  type ObservedSource,
} from '../completeness.ts';
import { listingOf, type Listing, type PageArgs } from '../cursors.ts';
import { silentSources, withGaps } from '../silent-nodes.ts';
import {
  comparePositions,
  nearerEnd,
  type Page,
  type PageRequest,
  type Position,
  type Scan,
  type Summary,
} from '../page.ts';
import type { InstanceMismatch, PendingQuery, PendingRpc, PendingRpcAlert } from './call.ts';

/** Creates the API that shows the waiting callers. It changes no waiter. */
export function createPending(deps: Deps, questions: NodeQuestions) {
  const waits = createWaits(deps, questions);
  const pending = async (requester: Requester, query: PendingQuery, args: PageArgs): Promise<Page<PendingRpc>> => {
    const filter = filterOf(requester, query);
    const check = query.checkInstance ?? null;
    if (check !== null) id('check_instance', check);
    const listing = listingOf('pending', requester, filter);
    const request = deps.cursors.request(listing, args);
    const scan = await waits.list(filter, request);
    return pageOf(deps, { listing, scan, rows: await describe(deps, rowsOf(scan), check) });
  };
  const count = async (requester: Requester, query: PendingQuery): Promise<PendingCount> => {
    const { counts, complete, gaps } = await waits.counts(filterOf(requester, query));
    const total = sum([...counts.values()]);
    return { count: total, complete, completeness: completenessAt(deps, { rows: total, complete, gaps }) };
  };
  return {
    pending,
    count,
    async countByNode(requester: Requester, query: PendingQuery) {
      const { counts, complete, gaps } = await waits.counts(filterOf(requester, query));
      const items = [...counts]
        .map(([nodeId, waiting]) => ({ nodeId, count: waiting }))
        .sort((a, b) => ((a.nodeId ?? '') < (b.nodeId ?? '') ? -1 : 1));
      return { items, completeness: completenessAt(deps, { rows: items.length, complete, gaps }) };
    },
    /**
     * Returns the first page of the waits of each user, as `pending` would. Reads all users together. For nested fields
     * whose parent object was authorized.
     */
    ofUsers(requester: Requester, userIds: readonly string[], first: number) {
      const filters = userIds.map((userId) => ({ ...ANY_WAIT, userId }));
      return thenDo(waits.ofUsers(userIds, first), (found) => summaries(deps, requester, filters, found));
    },
    /** Does the same as `ofUsers`, for clients. */
    ofClients(requester: Requester, keys: readonly ClientKey[], first: number) {
      const { actions: seen } = seenActions(requester);
      const filters = keys.map(({ userId, clientId }) => ({ ...ANY_WAIT, userId, clientId, ...(seen && { seen }) }));
      const found =
        seen === undefined
          ? waits.ofClients(keys, first)
          : thenDo(waits.list({ ...ANY_WAIT, userId: keys[0]?.userId ?? null, seen }, ALL_WAITS), (scan) =>
              keys.map((key) => ofClient(deps, scan, { key, first })),
            );
      return thenDo(found, (scans) => summaries(deps, requester, filters, scans));
    },
    /**
     * Returns the waits of each command. If the requester's token does not name a command's action, the list of that
     * command is empty.
     */
    ofCommands(requester: Requester, keys: readonly CommandKey[]): MaybePromise<readonly (readonly PendingRpc[])[]> {
      const sight = seenActions(requester);
      return thenDo(waits.ofCommands(keys), (found) => {
        const lists = found.map((list) => list.filter(({ command }) => seesAction(sight, command.action)));
        return thenDo(describe(deps, lists.flat(), null), (rows) => {
          let from = 0;
          return lists.map((list) => rows.slice(from, (from += list.length)));
        });
      });
    },
    /**
     * Emits the current state first. Then it emits an event each time the age of the oldest wait reaches `olderThanMs`,
     * and each time no wait is that old any more. The oldest wait is checked once a second; several changes between two
     * checks count as one.
     */
    alerts(requester: Requester, olderThanMs: number, user: string | null): Subscription<PendingRpcAlert> {
      const bound = within('older_than_ms', olderThanMs, OLDER_THAN_MS);
      const { userId } = readSight(requester, user);
      let over: boolean | null = null;
      let looking = false;
      const check = async (): Promise<void> => {
        const oldest = (await pending(requester, { userId }, { first: 1 })).nodes[0] ?? null;
        const isOver = oldest !== null && oldest.ageMs >= bound;
        if (isOver === over) return;
        over = isOver;
        const { count: waiting } = await count(requester, { userId, minAgeMs: bound });
        feed.push({ over, oldest, count: waiting, oldestAgeMs: oldest?.ageMs ?? 0, at: deps.clock.now() });
      };
      const turn = (): void => {
        if (looking) return;
        looking = true;
        check().then(
          () => (looking = false),
          (error: unknown) => feed.fail(error),
        );
      };
      const cancel = deps.clock.every(RECONCILE_MS, turn);
      const feed = createFeed<PendingRpcAlert>(cancel);
      turn();
      return feed.subscription;
    },
  };
}

const ALL_WAITS: PageRequest = { first: PAGE_MAX, after: null };

type OfClient = { readonly key: ClientKey; readonly first: number };

/**
 * Picks the first waits of a client, and their number, from a page of all waits of its user. If that page is not the
 * last one, the result says that rows are missing.
 */
function ofClient(
  { clock }: Deps,
  { rows, next, gaps }: Scan<PendingWait>,
  { key: { clientId }, first }: OfClient,
): CountedScan {
  const own = rows.filter(({ row }) => row.waiter.clientId === clientId);
  const shown = own.slice(0, first);
  const end = own.length > shown.length ? (shown.at(-1)?.position ?? null) : next;
  const missing = next === null ? gaps : [...gaps, gapOf('pending_rpcs', clock.now(), null, 'limit_reached')];
  return { total: own.length, scan: { rows: shown, next: end, gaps: missing } };
}

type PendingCount = Counted & { readonly completeness: Completeness };

function filterOf(requester: Requester, query: PendingQuery): WaiterFilter {
  const { clientId, nodeId, callerNodeId, contextId, minAgeMs } = query;
  const { userId, actions } = readSight(requester, query.userId);
  return {
    ...callerFilterOf(query),
    userId,
    ...(actions && { seen: actions }),
    clientId: clientId == null ? null : id('client_id', clientId),
    nodeId: nodeId == null ? null : id('node_id', nodeId),
    callerNodeId: callerNodeId == null ? null : id('caller_node_id', callerNodeId),
    contextId: contextId == null ? null : id('context_id', contextId),
    minAgeMs: minAgeMs == null ? null : within('min_age_ms', minAgeMs, MIN_AGE_MS),
  };
}

/**
 * Describes waits for the answer. Reads the connections of all of them in one call, to compare the instance that runs
 * now with the instance that each waiter expects.
 */
function describe(deps: Deps, waits: readonly PendingWait[], checkInstance: string | null): MaybePromise<PendingRpc[]> {
  if (waits.length === 0) return [];
  const now = deps.clock.now();
  return thenDo(deps.backend.connections.get(waits.map(({ waiter }) => waiter)), (connections) =>
    waits.map((wait, i) => ({
      ...wait,
      ageMs: Math.max(0, now - wait.waiter.createdAt),
      instanceMismatch: mismatch({ wait, connection: connections[i] ?? null, checkInstance, now }),
    })),
  );
}

type WaitWithConnection = {
  readonly wait: PendingWait;
  readonly connection: Connection | null;
  readonly checkInstance: string | null;
  readonly now: number;
};

/**
 * Compares the instance that the client runs now with the instance that the waiter expects. `checkInstance` replaces
 * the observed instance if it is not null. Returns null if both are the same, or if one of them is unknown.
 */
function mismatch({ wait, connection, checkInstance, now }: WaitWithConnection): InstanceMismatch | null {
  const { boundInstanceId, expectedInstanceId } = wait.command;
  const expected = boundInstanceId ?? expectedInstanceId;
  const observed = checkInstance ?? (isLive(connection, now) ? connection.instanceId : null);
  if (expected === null || observed === null || observed === expected) return null;
  return { expectedInstanceId: expected, observedInstanceId: observed, observedAt: now };
}

function rowsOf(scan: Scan<PendingWait>): PendingWait[] {
  return scan.rows.map(({ row }) => row);
}

type Described = { readonly listing: Listing; readonly scan: Scan<PendingWait>; readonly rows: readonly PendingRpc[] };

function pageOf(deps: Deps, { listing, scan, rows }: Described): Page<PendingRpc> {
  const seen = new Map(scan.rows.map(({ row }, i) => [row, rows[i]]));
  const page = deps.cursors.page(listing, scan, ['pending_rpcs', deps.clock.now()], (row) => seen.get(row));
  return { ...page, nodes: rows };
}

function summaries(
  deps: Deps,
  requester: Requester,
  filters: readonly WaiterFilter[],
  found: readonly CountedScan[],
): MaybePromise<Summary<PendingRpc>[]> {
  const waits = found.flatMap(({ scan }) => rowsOf(scan));
  return thenDo(describe(deps, waits, null), (rows) => {
    let from = 0;
    return found.map(({ total, scan }, i) => {
      const own = rows.slice(from, (from += scan.rows.length));
      const listing = listingOf('pending', requester, filters[i] ?? ANY_WAIT);
      return { ...pageOf(deps, { listing, scan, rows: own }), total };
    });
  });
}

type Tallied = { readonly rows: number; readonly complete: boolean; readonly gaps: readonly ObservedSource[] };

function completenessAt({ clock }: Deps, { rows, complete, gaps }: Tallied): Completeness {
  return completenessOf([observed('pending_rpcs', clock.now(), rows, complete ? null : COUNT_SCAN), ...gaps]);
}

// Reads the waits of all nodes. If each node keeps the waits of its own callers in memory, the other nodes are asked
// through their mailboxes, once for each answer. A silent node is not asked; the answer lists it as a gap.

type NodeAnswers = { readonly answers: readonly WaitsAnswer[]; readonly gaps: readonly ObservedSource[] };

/**
 * Creates the reads of WaiterStore over all nodes, and answers the same questions from other nodes. An answer has a gap
 * for each node that did not answer. Only `ofCommands` lists no gaps.
 */
function createWaits(deps: Deps, questions: NodeQuestions) {
  const { waiters } = deps.backend;
  questions.answerWith('waits', (text) => answerQuestion(waiters, text));
  const others = (question: WaitsQuestion): MaybePromise<NodeAnswers> => ask(deps, questions, question);
  const summaries = (own: MaybePromise<readonly CountedScan[]>, question: WaitsQuestion & { readonly first: number }) =>
    both(own, others(question), (found, { answers, gaps }) =>
      found.map((one, i) => ({
        total: one.total + sum(answers.map(({ lists }) => lists[i]?.total ?? 0)),
        scan: withGaps(merge([one.scan, ...answers.flatMap(({ lists }) => lists[i] ?? [])], question.first), gaps),
      })),
    );
  return {
    list: (filter: WaiterFilter, page: PageRequest) =>
      both(waiters.list(filter, page), others({ read: 'list', filter, page }), (own, { answers, gaps }) =>
        withGaps(answers.length === 0 ? own : merge([own, ...answers.flatMap(({ lists }) => lists)], page.first), gaps),
      ),
    /** Counts the waits for each node, by the node to which the target is connected. */
    counts: (filter: WaiterFilter) =>
      both(waiters.countByNode(filter), others({ read: 'counts', filter }), (own, { answers, gaps }) => {
        const counts = new Map(own.counts);
        for (const [node, count] of answers.flatMap((answer) => answer.counts))
          counts.set(node, (counts.get(node) ?? 0) + count);
        const complete = own.complete && answers.every((answer) => answer.complete);
        return { counts, complete, gaps: [...(own.gaps ?? []), ...gaps] };
      }),
    ofUsers: (userIds: readonly string[], first: number) =>
      summaries(waiters.ofUsers(userIds, first), { read: 'ofUsers', userIds, first }),
    ofClients: (keys: readonly ClientKey[], first: number) =>
      summaries(waiters.ofClients(keys, first), { read: 'ofClients', keys, first }),
    ofCommands: (keys: readonly CommandKey[]) =>
      both(waiters.ofCommands(keys), others({ read: 'ofCommands', keys }), (own, { answers }) =>
        own.map((list, i) => {
          const more = answers.flatMap(({ lists }) => lists[i]?.rows.map(({ row }) => row) ?? []);
          return more.length === 0 ? list : [...list, ...more].sort((a, b) => a.waiter.createdAt - b.waiter.createdAt);
        }),
      ),
  };
}

/** Asks the other nodes. If the store has the waits of all nodes, asks nobody, and the result is not a promise. */
function ask(deps: Deps, questions: NodeQuestions, question: WaitsQuestion): MaybePromise<NodeAnswers> {
  if (!deps.backend.capabilities.allWaits) return askNodes(deps, questions, question);
  return thenDo(silentSources(deps, 'pending_rpcs'), (gaps) => ({ answers: [], gaps }));
}

async function askNodes(deps: Deps, questions: NodeQuestions, question: WaitsQuestion): Promise<NodeAnswers> {
  const { others, silent } = await otherNodes(deps);
  const caller = 'filter' in question ? question.filter.callerNodeId : null;
  const asked = others.filter((node) => !silent.has(node) && (caller === null || caller === node));
  const text = JSON.stringify({ form: FORM, ...question });
  const answers: WaitsAnswer[] = [];
  const gap = (nodeId: string, reason: IncompleteReason): ObservedSource =>
    gapOf('pending_rpcs', deps.clock.now(), nodeId, reason);
  const gaps = [...silent].map((nodeId) => gap(nodeId, 'node_silent'));
  await Promise.all(
    asked.map(async (nodeId) => {
      const written = await questions.ask(nodeId, { topic: 'waits', text, withinMs: WAITS_ASK_MS });
      const answer = written === null ? 'node_silent' : readAnswer(written);
      if (typeof answer === 'string') gaps.push(gap(nodeId, answer));
      else answers.push(answer);
    }),
  );
  return { answers, gaps };
}

type NodePage = Pick<Scan<PendingWait>, 'rows' | 'next'>;

/**
 * Merges the pages of several nodes into one. The page of a node ends at `next` if the node has more rows. Rows after
 * the earliest of these ends are left out, because that node may have rows that belong between them.
 */
function merge(parts: readonly NodePage[], first: number): Scan<PendingWait> {
  const bound = parts.reduce<Position | null>((least, { next }) => nearerEnd(least, next), null);
  const rows = parts
    .flatMap((part) => part.rows)
    .filter(({ position }) => bound === null || comparePositions(position, bound) <= 0)
    .sort((a, b) => comparePositions(a.position, b.position));
  const taken = rows.slice(0, first);
  return { rows: taken, next: rows.length > first ? (taken.at(-1)?.position ?? null) : bound, gaps: [] };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

// The texts of the questions and answers with which nodes ask each other about the waits of their callers.

/** A question to a node: the name of a method of WaiterStore, and its arguments. */
type WaitsQuestion =
  | { readonly read: 'list'; readonly filter: WaiterFilter; readonly page: PageRequest }
  | { readonly read: 'counts'; readonly filter: WaiterFilter }
  | { readonly read: 'ofUsers'; readonly userIds: readonly string[]; readonly first: number }
  | { readonly read: 'ofClients'; readonly keys: readonly ClientKey[]; readonly first: number }
  | { readonly read: 'ofCommands'; readonly keys: readonly CommandKey[] };

type Rows = readonly { readonly row: PendingWait; readonly position: Position }[];

/**
 * The answer of a node. For the question `counts`, `counts` has the number of waits for each node of a target. For the
 * other questions, `lists` has one list for `list`, and one for each user, client or command that was asked about.
 */
type WaitsAnswer = {
  readonly lists: readonly { readonly total: number; readonly rows: Rows; readonly next: Position | null }[];
  readonly counts: readonly (readonly [string | null, number])[];
  readonly complete: boolean;
};

/** The version of the text format. Increase it with each change of the format. */
const FORM = 3;
const READS: ReadonlySet<unknown> = new Set(['list', 'counts', 'ofUsers', 'ofClients', 'ofCommands']);

/**
 * Answers a question of another node about the waits of this node. Throws if this version does not know the question's
 * format.
 */
export async function answerQuestion(waiters: WaiterStore, text: string): Promise<string> {
  const answer = await answerOf(waiters, readQuestion(text));
  const written = JSON.stringify({ form: FORM, ...answer });
  return written.length > WAITS_ANSWER_CHARS ? `{"form":${FORM},"tooLong":true}` : written;
}

function readQuestion(text: string): WaitsQuestion {
  const question: unknown = JSON.parse(text);
  const known = isRecord(question) && question['form'] === FORM && READS.has(question['read']);
  if (!known) throw new Error('The question is of another form.');
  return question as unknown as WaitsQuestion;
}

async function answerOf(waiters: WaiterStore, question: WaitsQuestion): Promise<WaitsAnswer> {
  switch (question.read) {
    case 'list': {
      const { rows, next } = await waiters.list(question.filter, question.page);
      return { lists: [{ total: rows.length, rows, next }], counts: [], complete: true };
    }
    case 'counts': {
      const { counts, complete } = await waiters.countByNode(question.filter);
      return { lists: [], counts: [...counts], complete };
    }
    case 'ofUsers':
      return listsOf(await waiters.ofUsers(question.userIds, question.first));
    case 'ofClients':
      return listsOf(await waiters.ofClients(question.keys, question.first));
    case 'ofCommands': {
      const lists = await waiters.ofCommands(question.keys);
      const rowsOf = (waits: readonly PendingWait[]): Rows => waits.map((row) => ({ row, position: [] }));
      return {
        lists: lists.map((waits) => ({ total: waits.length, rows: rowsOf(waits), next: null })),
        counts: [],
        complete: true,
      };
    }
  }
}

function listsOf(found: readonly CountedScan[]): WaitsAnswer {
  const lists = found.map(({ total, scan }) => ({ total, rows: scan.rows, next: scan.next }));
  return { lists, counts: [], complete: true };
}

/**
 * Reads an answer. Returns the reason instead if the answer cannot be used: it was too long, or this version does not
 * know its format.
 */
export function readAnswer(text: string): WaitsAnswer | IncompleteReason {
  const answer = parsedJson(text);
  if (!isRecord(answer) || answer['form'] !== FORM) return 'not_supported';
  if (answer['tooLong'] === true) return 'limit_reached';
  return isAnswer(answer) ? answer : 'not_supported';
}

function isAnswer(answer: object): answer is WaitsAnswer {
  const { lists, counts, complete } = answer as Partial<Record<keyof WaitsAnswer, unknown>>;
  return (
    Array.isArray(lists) &&
    lists.every(isList) &&
    Array.isArray(counts) &&
    counts.every(isCount) &&
    typeof complete === 'boolean'
  );
}

function isList(list: unknown): boolean {
  if (!isRecord(list)) return false;
  const { total, rows, next } = list;
  return typeof total === 'number' && Array.isArray(rows) && rows.every(isRow) && (next === null || isPosition(next));
}

function isRow(row: unknown): boolean {
  if (!isRecord(row) || !isPosition(row['position']) || !isRecord(row['row'])) return false;
  const { waiter, command } = row['row'];
  return isRecord(waiter) && typeof waiter['rpcId'] === 'string' && isRecord(command) && 'stage' in command;
}

function isPosition(position: unknown): position is Position {
  return Array.isArray(position) && position.every((text) => typeof text === 'string');
}

function isCount(count: unknown): boolean {
  return Array.isArray(count) && (count[0] === null || typeof count[0] === 'string') && typeof count[1] === 'number';
}
