/** Tests that memory and the stores over Redis give the same answers, records, rows, counts and pages after any sequence of acts. */
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import type { Command } from '../../src/core/commands/command.ts';
import { ANY_COMMAND } from '../../src/core/commands/delivery-inspector.ts';
import type {
  AdmitRequest,
  Binding,
  CommandStore,
  DispatchClaim,
  RebindResult,
  Report,
} from '../../src/core/commands/command-store.ts';
import type { MailboxRow, NodeReport } from '../../src/core/commands/node-store.ts';
import { LINK_STREAM, type IngestResult, type Message } from '../../src/core/history/message.ts';
import { commandKeyText, type ClientKey, type CommandKey } from '../../src/core/ids.ts';
import { canonicalJson, toJson } from '../../src/core/json.ts';
import { silentLog } from '../../src/core/ports.ts';
import { SHARE_BOUNDS, type ShareBounds } from '../../src/core/shares/share-bounds.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { FakeClock } from '../kit/clock.ts';
import { CALLER, admission, ending, inPages, keyFor, openNode, type Bench } from './kit/bench.ts';
import { newMessage } from './kit/history-model.ts';
import { ownedPairBench } from './kit/owned-pair-bench.ts';
import { redisBench, type RedisBenchOptions } from './kit/redis-bench.ts';
import { TEST_MS } from '../kit/patience.ts';

/** The clients: two of one user, and one of a user who shares a scope with the first. */
const CLIENTS: readonly ClientKey[] = [
  { userId: 'alice', clientId: 'tab' },
  { userId: 'alice', clientId: 'phone' },
  { userId: 'bob', clientId: 'tab' },
];
const NODES = ['n1', 'n2'] as const;
const PAGE = { first: 100, after: null } as const;
const ANY_MESSAGE = { afterTime: null, beforeTime: null, kinds: null };
/** The number of sequences in each way, and the seed from which they are drawn (at random). */
const RUNS = Number(process.env['CALLBOARD_TEST_RUNS'] ?? 12);
const SEED = process.env['CALLBOARD_TEST_SEED'];

/** Reports, and returns what was recorded: who publishes the report differs between stores. */
async function recorded(commands: CommandStore, key: CommandKey, report: Report): Promise<object> {
  const { kind, command } = await commands.report(key, report);
  return { kind, command };
}

/** Limits that a short sequence reaches. */
const LIMITS = { retentionMs: 240_000, streamMessages: 12, streamsPerUser: 3 } as const;
const WINDOW_MS = 90_000;
const BOUNDS: ShareBounds = {
  ...SHARE_BOUNDS,
  queued_bytes: { guarantee: 800, total: 1_600 },
  // With an odd number of records, one of the two users always has more than the other.
  ended_records: { guarantee: 2, total: 4 },
};
const SUFFIXES = ['clients/tab', 'clients/tab', 'clients/phone', 'sites/s/events', 'notes'] as const;
const REPORT: NodeReport = {
  ...{ listenerAlive: true, reconciliationAlive: true, activeDrainers: 0, connectionWaiters: 0, links: 0 },
  ...{ unfinishedCommands: 0, draining: false, counters: new Map(), process: null },
};

/** What a sequence of acts goes by; the same for both stores. */
type State = {
  /** The last link of each client that came up. Acts name it, whether or not it is still bound. */
  readonly links: Map<number, Binding>;
  /** The links that clients are bound to. */
  readonly bound: Map<number, Binding>;
  /** The waits that were asked for, in order. */
  readonly waits: { readonly key: CommandKey; readonly rpcId: string; readonly nodeId: string }[];
  /** The commands that were asked for, in order. */
  readonly keys: CommandKey[];
  /** The latest attempt to dispatch each command, which may be repeated. */
  readonly attempts: Map<string, DispatchClaim>;
  acts: number;
};
/** An act on one store. Returns what both stores must answer alike. */
type Act = (side: Side) => unknown;
type Value<A> = A extends fc.Arbitrary<infer V> ? V : never;

const client = fc.nat({ max: CLIENTS.length - 1 });
/** The ids that callers choose. */
const NAMED = ['a', 'b', 'c', 'd', 'e'] as const;
const name = fc.constantFrom(...NAMED);
const node = fc.constantFrom('n1', ...NODES);
const instance = fc.constantFrom('i1', 'i1', 'i2');
const waitFor = fc.constantFrom('completed', 'completed', 'acknowledged', 'admitted');

function keyOf(at: number, commandId: string) {
  return keyFor(commandId, CLIENTS[at]);
}

const admit = fc.record({
  do: fc.constant('admit' as const),
  client,
  name,
  node,
  waitFor,
  connect: fc.constantFrom(0, 3_000),
  named: fc.constantFrom(null, null, null, 'i1'),
  chosen: fc.boolean(),
  digest: fc.constantFrom('d1', 'd1', 'd2'),
  limit: fc.constantFrom(100, 100, 100, 4, 2),
  shared: fc.constantFrom(false, false, false, true),
  params: fc.constantFrom('none', 'small', 'large'),
  claim: fc.boolean(),
  rule: fc.constantFrom(null, null, null, 'fast' as const, 'slow' as const),
});

/** The rate rules. Times are whole seconds and halves, so that both stores compute the same fractions. */
const RATES = { fast: { burst: 3, perSecond: 0.5 }, slow: { burst: 1, perSecond: 0.125 } } as const;

const PARAMS = { none: null, small: toJson({ n: 1 }), large: toJson('x'.repeat(700)) } as const;

function admitting(given: Value<typeof admit>, state: State): Act {
  const { userId } = CLIENTS[given.client] ?? { userId: '' };
  const number = state.acts++;
  const binding = state.links.get(given.client);
  const params = PARAMS[given.params];
  const request: AdmitRequest = admission(given.chosen ? given.name : `made-${number}`, {
    ...CLIENTS[given.client],
    chosenId: given.chosen,
    digest: given.chosen ? given.digest : '',
    scopeId: given.shared ? 'team' : userId,
    scopeLimit: given.limit,
    memberLimit: given.shared ? 1 : null,
    namedInstanceId: given.named,
    params,
    kept: { payload: params, spill: null },
    connectWithinMs: given.connect,
    waiter: { rpcId: `r${number}`, caller: CALLER, callerNodeId: given.node, waitFor: given.waitFor, withinMs: null },
    rate: given.rule && { rule: given.rule, caller: userId, ...RATES[given.rule] },
    claim: given.claim && binding?.nodeId === given.node ? { binding, attempt: `x${number}` } : null,
  });
  const key = keyOf(given.client, request.commandId);
  state.keys.push(key);
  state.waits.push({ key, rpcId: request.waiter.rpcId, nodeId: given.node });
  if (request.claim) state.attempts.set(commandKeyText(key), request.claim);
  return async ({ backend: { commands } }) => {
    const { answer, ...state } = await commands.preview(request);
    // Over Redis a preview reads no result.
    const asked = answer.kind === 'attached' ? { ...answer, result: null } : answer;
    return [asked, state, await commands.admit(request)];
  };
}

const onCommand = fc.record({
  do: fc.constant('command' as const),
  client,
  /** Which of the commands that were admitted before, the latest first. */
  which: fc.constantFrom(0, 0, 0, 1, 2, 3, 5),
  instance,
  node,
  waitFor,
  act: fc.constantFrom(
    ...(['dispatch', 'dispatch', 'dispatch', 'again', 'ack', 'progress', 'result', 'result', 'large'] as const),
    ...(['error', 'refused', 'cancelled', 'cancel', 'expire', 'give_up', 'attach', 'remove'] as const),
  ),
});

function changing({ act, ...given }: Value<typeof onCommand>, state: State): Act {
  const key = state.keys.at(-1 - given.which) ?? keyOf(given.client, 'none');
  const at = CLIENTS.findIndex(({ userId, clientId }) => userId === key.userId && clientId === key.clientId);
  const number = state.acts++;
  const binding = state.links.get(at) ?? { nodeId: 'n1', instanceId: 'i1', epoch: 0 };
  const { instance: instanceId } = given;
  const payload = toJson({ n: number % 3 });
  const error = { code: 'handler_failed', message: 'no' };
  const waiter = {
    rpcId: `w${number}`,
    caller: CALLER,
    callerNodeId: given.node,
    waitFor: given.waitFor,
    withinMs: 5_000,
  } as const;
  const over = state.waits[number % Math.max(1, state.waits.length)];
  if (act === 'attach') state.waits.push({ key, rpcId: waiter.rpcId, nodeId: given.node });
  const again = state.attempts.get(commandKeyText(key)) ?? { binding, attempt: `x${number}` };
  if (act === 'dispatch') state.attempts.set(commandKeyText(key), { binding, attempt: `x${number}` });
  return ({ backend: { commands, waiters } }) => {
    switch (act) {
      case 'dispatch':
        return commands.dispatch(key, binding, `x${number}`);
      case 'again':
        return dispatchAgain(commands, key, again);
      case 'ack':
        return recorded(commands, key, { instanceId, kind: 'ack', payload: null, kept: null });
      case 'progress':
        return recorded(commands, key, { instanceId, kind: 'progress', payload, kept: { payload, spill: null } });
      case 'result':
        return commands.finish(key, ending({ instanceId, payload }));
      case 'large':
        return commands.finish(key, ending({ instanceId, payload: toJson('y'.repeat(20_000)) }));
      case 'error':
      case 'refused':
        return commands.finish(
          key,
          ending({ instanceId, kind: 'error', payload: null, error, refused: act === 'refused' }),
        );
      case 'cancelled':
        return commands.finish(key, ending({ instanceId, kind: 'cancelled', payload: null }));
      case 'cancel':
        return commands.settle(key, { kind: 'cancel', reason: number % 2 === 0 ? null : 'enough', by: 'test' });
      case 'expire':
        return commands.settle(key, { kind: 'expire' });
      case 'give_up':
        return commands.settle(key, { kind: 'give_up', code: 'node_lost', instanceId });
      case 'attach':
        return waiters.attach(key, waiter);
      case 'remove':
        return over && waiters.remove(over.key, over.rpcId);
    }
  };
}

/**
 * Repeats an attempt to dispatch a command. Redis gives the answer of a recorded attempt again, and changes nothing.
 * Memory does not, because there each act is answered.
 */
async function dispatchAgain(
  commands: CommandStore,
  key: CommandKey,
  { binding, attempt }: DispatchClaim,
): Promise<unknown> {
  const [before] = await commands.get([key]);
  const answer = await commands.dispatch(key, binding, attempt);
  return before?.stage === 'dispatched' ? null : answer;
}

const link = fc.record({
  do: fc.constant('link' as const),
  client,
  node,
  instance,
  move: fc.constantFrom('up' as const, 'up' as const, 'again' as const, 'down' as const, 'old' as const),
});

function moving({ client: at, node: nodeId, instance: instanceId, move }: Value<typeof link>, state: State): Act {
  const key = CLIENTS[at] ?? { userId: '', clientId: '' };
  const bound = state.links.get(at);
  const up = { nodeId, instanceId, epoch: (bound?.epoch ?? 0) + 1 };
  if (move === 'up' || !bound) {
    state.links.set(at, up);
    state.bound.set(at, up);
    return ({ backend: { commands } }) => commands.rebind(key, up, 'up');
  }
  const old = { ...up, epoch: bound.epoch - 1 };
  // An older link is bound only if none is.
  if (move === 'old' && !state.bound.has(at)) state.bound.set(at, old);
  if (move === 'down' && state.bound.get(at) === bound) state.bound.delete(at);
  if (move === 'old') return ({ backend: { commands } }) => commands.rebind(key, old, 'up');
  return ({ backend: { commands } }) => commands.rebind(key, bound, move);
}

const message = fc.record({
  do: fc.constant('message' as const),
  client,
  id: name,
  suffix: fc.constantFrom(...SUFFIXES),
  how: fc.constantFrom('ingest', 'ingest', 'retain'),
  ofCommand: fc.boolean(),
});

function retaining({ client: at, id, suffix, how, ofCommand }: Value<typeof message>, state: State): Act {
  const { userId = '', clientId = '' } = CLIENTS[at] ?? {};
  const commandId = ofCommand ? (state.keys.at(-1)?.commandId ?? null) : null;
  const row = { ...newMessage({ id, userId, clientId, suffix, commandId }), clientId };
  if (how === 'retain') return async ({ backend: { history } }) => unnumbered(await history.retain(row));
  return async ({ backend: { history } }) => {
    const result: IngestResult = await history.ingest(row);
    return result.kind === 'retained' ? unnumbered(result.message) : result;
  };
}

/** Each store numbers a new stream from another `seq`. */
function unnumbered(row: Message): unknown {
  return { ...row, seq: null };
}

/** What nodes do without being asked: a heartbeat, the ends of commands that are due, a node that leaves and is back. */
const ofNodes = fc.record({
  do: fc.constant('node' as const),
  node,
  act: fc.constantFrom('beat', 'settle', 'settle', 'leave'),
});

function keeping({ node: nodeId, act }: Value<typeof ofNodes>, state: State): Act {
  if (act === 'beat') return ({ backend }) => backend.nodes.beat(nodeId, REPORT);
  if (act === 'settle') return settling;
  const lost = CLIENTS.flatMap((key, at) => {
    const binding = state.bound.get(at);
    if (binding?.nodeId !== nodeId) return [];
    state.bound.delete(at);
    return [{ key, binding }];
  });
  const waits = state.waits.filter((wait) => wait.nodeId === nodeId);
  return async (side) => {
    const { commands, waiters } = side.backend;
    // Elsewhere a node ends with its process. Its links go down, as they do when Redis reaps a node.
    if (!side.reaps) for (const { key, binding } of lost) await commands.rebind(key, binding, 'down');
    await side.leave(nodeId);
    for (const { key, rpcId } of waits) await waiters.remove(key, rpcId);
  };
}

/** Ends all commands that are due, as reconciliation does each second. */
async function settling({ backend: { nodes, commands } }: Side): Promise<unknown> {
  const answers = [];
  for (const key of [...(await nodes.due(100))].sort(byKey))
    answers.push(await commands.settle(key, { kind: 'expire' }));
  return answers;
}

const listing = fc.record({
  do: fc.constant('list' as const),
  client,
  first: fc.integer({ min: 1, max: 4 }),
  order: fc.constantFrom('key', 'newest'),
  of: fc.constantFrom('all', 'user', 'client'),
  stage: fc.constantFrom(null, null, 'queued', 'dispatched', 'terminal'),
  outcome: fc.constantFrom(null, null, null, 'completed', 'expired'),
  nodeId: fc.constantFrom(null, null, null, 'n1'),
});

/** Reads commands and messages page by page. */
function reading({ client: at, first, order, of, ...filter }: Value<typeof listing>, state: State): Act {
  const { userId = '', clientId = '' } = CLIENTS[at] ?? {};
  const whose = { userId: of === 'all' ? null : userId, clientId: of === 'client' ? clientId : null };
  const key = state.keys.at(-1) ?? keyOf(at, 'none');
  return async ({ backend: { inspector, history } }) => {
    const asked = { ...ANY_COMMAND, ...filter, ...whose };
    const commands = await inPages<Command>(first, (page) => inspector.list(asked, { ...page, order }));
    const turn = order === 'newest' ? 'newest_first' : 'oldest_first';
    const messages = await inPages<Message>(first, (page) =>
      history.ofCommand(key.userId, key.commandId, { ...page, order: turn }),
    );
    // Commands that were admitted in the same millisecond have a fixed order in each store, but not the same one.
    return [order === 'newest' ? commands.toSorted(byTimeAndKey) : commands, messages.map(unnumbered)];
  };
}

function byTimeAndKey(a: Command, b: Command): number {
  return b.admittedAt - a.admittedAt || byKey(a, b);
}

/** An act, or how much time passes, in milliseconds. */
type Step =
  Value<typeof admit | typeof onCommand | typeof link | typeof message | typeof ofNodes | typeof listing> | number;

const lone: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: admit },
  { weight: 14, arbitrary: onCommand },
  { weight: 4, arbitrary: link },
  { weight: 2, arbitrary: message },
  { weight: 3, arbitrary: ofNodes },
  { weight: 2, arbitrary: listing },
  { weight: 4, arbitrary: fc.constantFrom(1, 400, 400, 1_500, 1_500, 3_000, 31_000) },
  { weight: 1, arbitrary: fc.constantFrom(95_000, 250_000) },
);
/** The life of one command, as it usually is: it is admitted, dispatched and reported on. */
const life = fc
  .tuple(
    admit,
    fc.array(fc.oneof({ weight: 9, arbitrary: onCommand }, { weight: 1, arbitrary: fc.constantFrom(1, 1_500) }), {
      maxLength: 4,
      size: 'max',
    }),
  )
  .map(([given, reports]): readonly Step[] => {
    const admission: Step = { ...given, named: null, digest: 'd1', limit: 100 };
    const own = { do: 'command', client: given.client, which: 0, instance: 'i1' } as const;
    const dispatch: Step = { ...own, node: 'n1', waitFor: 'completed', act: 'dispatch' };
    return [
      admission,
      dispatch,
      ...reports.map((report) => (typeof report === 'number' ? report : { ...report, ...own })),
    ];
  });
const steps = fc
  .array(
    fc.oneof({ weight: 4, arbitrary: lone.map((step): readonly Step[] => [step]) }, { weight: 1, arbitrary: life }),
    {
      minLength: 5,
      maxLength: 40,
      size: 'max',
    },
  )
  .map((parts) => parts.flat());
/**
 * The longest step before which nothing is settled, in milliseconds. Reconciliation ends each command soon after its
 * deadline, and stores rely on that when they forget names.
 */
const UNSETTLED_MS = 31_000;

/** Every sequence begins with links, so that most commands can be dispatched. */
const UP = CLIENTS.map(
  (_, at) => ({ do: 'link', client: at, node: NODES[at % 2] ?? 'n1', instance: 'i1', move: 'up' }) as const,
);

/**
 * A store that is compared with memory. `quiet`: resolves once what it does in the background, such as reducing records,
 * is done. `reaps`: whether a node that detaches loses its links. `audit`: finds wrong counters. `bounds`: of both stores.
 */
type Compared = {
  readonly bench: Bench;
  readonly quiet: () => Promise<void>;
  readonly reaps: boolean;
  readonly bounds: ShareBounds;
  readonly audit?: () => Promise<readonly string[]>;
};

async function overRedis(options: RedisBenchOptions): Promise<Compared> {
  const limits = { ...LIMITS, idempotencyWindowMs: WINDOW_MS, bounds: BOUNDS };
  const bench = await redisBench({ partitions: 1, ...limits, ...options });
  return { ...bench, bench, reaps: true, bounds: BOUNDS };
}

async function ofOwners(): Promise<Compared> {
  const memory = { history: LIMITS, idempotencyWindowMs: WINDOW_MS };
  // They keep params until the client acknowledges them, because a dispatch may be repeated.
  const bounds = { ...BOUNDS, queued_bytes: SHARE_BOUNDS.queued_bytes };
  return { ...(await ownedPairBench({ nodes: NODES, memory, bounds })), reaps: false, bounds };
}

/** The stores that are compared with memory, and the ways in which Redis applies acts. */
const WAYS: readonly { readonly way: string; readonly compared: () => Promise<Compared> }[] = [
  { way: 'Redis, which decides the acts of a call together', compared: () => overRedis({}) },
  { way: 'Redis, which decides each act on its own', compared: () => overRedis({ careful: true }) },
  { way: 'relays that own partitions', compared: ofOwners },
];

/** A store under test, with the mailboxes of its nodes. */
type Side = Pick<Compared, 'reaps'> &
  Bench & {
    readonly take: () => Promise<readonly (readonly MailboxRow[])[]>;
    /** Lets a node leave, and attaches it again as a new process. */
    readonly leave: (nodeId: string) => Promise<void>;
  };

async function sideOf({ bench, quiet, reaps }: Pick<Compared, 'bench' | 'quiet' | 'reaps'>): Promise<Side> {
  const nodes = new Map<string, Awaited<ReturnType<typeof openNode>>>();
  for (const nodeId of NODES) nodes.set(nodeId, await openNode(bench, nodeId));
  return {
    reaps,
    advance: (ms) => bench.advance(ms),
    now: () => bench.now(),
    setBack: (ms) => bench.setBack(ms),
    close: () => bench.close(),
    get backend() {
      return bench.backend;
    },
    async take() {
      await quiet();
      await bench.advance(0);
      return [...nodes.values()].map(({ rows }) => rows.splice(0));
    },
    async leave(nodeId) {
      nodes.get(nodeId)?.detach();
      await quiet();
      nodes.set(nodeId, await openNode(bench, nodeId));
    },
  };
}

function memory(bounds: ShareBounds): Bench {
  const clock = new FakeClock();
  const backend = createMemoryBackend({
    markSecret: 'x',
    ...{ clock, log: silentLog, sha256: createCrypto('test').sha256 },
    ...{ history: LIMITS, idempotencyWindowMs: WINDOW_MS, shares: createShares(bounds) },
  });
  return {
    backend,
    advance: (ms) => clock.advance(ms),
    now: () => clock.now(),
    setBack: (ms) => clock.stepWall(-ms),
    close: async () => void (await backend.close()),
  };
}

/** The rows of a mailbox as comparable texts. Replies may come before other rows of the same acts, and in any order. */
function comparable(rows: readonly MailboxRow[]): readonly string[] {
  return rows.map((row) => canonicalJson(row)).sort();
}

/** Returns everything that the ports show of commands. Positions are those of each store, so they are left out. */
async function shown({ backend, take }: Side): Promise<unknown> {
  const { inspector, commands, waiters, history, dedup } = backend;
  const mailboxes = (await take()).map(comparable);
  const userIds = [...new Set(CLIENTS.map((key) => key.userId))];
  const suffixes = [...SUFFIXES, LINK_STREAM];
  const named = CLIENTS.flatMap((key) => NAMED.map((commandId) => ({ ...key, commandId })));
  const [list, scopes, users, found, summary, live, loads, marks, due, stats] = await Promise.all([
    inspector.list(ANY_COMMAND, PAGE),
    inspector.scopes(PAGE),
    history.users(PAGE),
    Promise.all(
      userIds.flatMap((userId) => suffixes.map((suffix) => history.messages(userId, suffix, ANY_MESSAGE, PAGE))),
    ),
    inspector.summary(),
    Promise.all(CLIENTS.map((key) => commands.live(key))),
    commands.loads(CLIENTS),
    Promise.all(named.map((key) => commands.mark(key))),
    backend.nodes.due(100),
    dedup.stats(3_600),
  ]);
  const listed = list.rows.map(({ row }) => row);
  const [results, waits] = await Promise.all([
    Promise.all(listed.map((command) => commands.result(command))),
    waiters.ofCommands(listed),
  ]);
  return {
    mailboxes,
    listed,
    results,
    live: live.map((keys) => [...keys].sort(byKey)),
    loads,
    scopes: scopes.rows.map(({ row }) => ({ ...row, holders: row.holders.map(({ commandId }) => commandId).sort() })),
    marks,
    incomplete: list.gaps.map(({ reason }) => reason),
    waits: waits.map((rows) => rows.map(({ waiter }) => waiter)),
    users: users.rows.map(({ row }) => row),
    streams: found.map((stream) => {
      // Each store numbers a new stream from another `seq`.
      const first = stream?.rows[0]?.row.seq ?? 0;
      const rows = stream?.rows.map(({ row }) => ({ ...row, seq: row.seq - first })) ?? null;
      return [rows, stream?.gaps.map(({ reason }) => reason)];
    }),
    counts: { sampleSize: summary.sampleSize, dueCommands: summary.dueCommands },
    due: [...due].sort(byKey),
    dedup: { ...stats, liveKeys: null },
  };
}

/** An answer, with the running commands of a link in one order: no caller depends on theirs. */
function sorted(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null || !('unfinished' in answer)) return answer;
  const { unfinished, orphaned } = answer as RebindResult;
  return { ...answer, unfinished: unfinished.toSorted(byKey), orphaned: orphaned.toSorted(byKey) };
}

function byKey(a: CommandKey, b: CommandKey): number {
  return commandKeyText(a) < commandKeyText(b) ? -1 : 1;
}

function actOf(step: Exclude<Step, number>, state: State): Act {
  switch (step.do) {
    case 'admit':
      return admitting(step, state);
    case 'command':
      return changing(step, state);
    case 'link':
      return moving(step, state);
    case 'message':
      return retaining(step, state);
    case 'node':
      return keeping(step, state);
    case 'list':
      return reading(step, state);
  }
}

/** Returns the acts of a step of time. */
function passing(ms: number): readonly Act[] {
  const pass: Act = ({ advance }) => advance(ms);
  return ms > UNSETTLED_MS ? [settling, pass, settling] : [pass];
}

/** How long the sequences may take, in milliseconds: five seconds each on a busy machine. */
const TIMEOUT_MS = TEST_MS + RUNS * 5_000;

describe('memory and a store over Redis', () => {
  const open: Bench[] = [];
  afterEach(async () => {
    for (const bench of open.splice(0)) await bench.close();
  });

  it.each(WAYS)(
    'show the same after each act of any sequence ($way)',
    { timeout: TIMEOUT_MS },
    async ({ compared }) => {
      const property = fc.asyncProperty(steps, async (sequence) => {
        const other = await compared();
        open.push(other.bench);
        const inMemory = memory(other.bounds);
        open.push(inMemory);
        const sides = [
          await sideOf({ bench: inMemory, quiet: async () => {}, reaps: false }),
          await sideOf(other),
        ] as const;
        const state: State = { links: new Map(), bound: new Map(), waits: [], keys: [], attempts: new Map(), acts: 0 };
        for (const step of [...UP, ...sequence]) {
          const acts = typeof step === 'number' ? passing(step) : [actOf(step, state)];
          for (const act of acts) {
            const answers = [await act(sides[0]), await act(sides[1])];
            expect(sorted(answers[1])).toEqual(sorted(answers[0]));
          }
          expect(await shown(sides[1])).toEqual(await shown(sides[0]));
        }
        expect((await other.audit?.()) ?? []).toEqual([]);
        for (const bench of open.splice(0)) await bench.close();
      });
      const seed = SEED === undefined ? {} : { seed: Number(SEED) };
      await fc.assert(property, { ...seed, numRuns: RUNS, endOnFailure: true });
    },
  );
});
