/** Core's CommandStore over Redis: each change of a command is a transaction of core's rules. */
import type {
  AdmitPreview,
  AdmitQuestion,
  AdmitRefusal,
  AdmitRequest,
  AdmitResult,
  CommandStore,
  DispatchResult,
  End,
  FinishResult,
  RebindResult,
  Report,
  ReportResult,
} from '../../../core/commands/command-store.ts';
import { isTerminal, type CommandMark } from '../../../core/commands/command.ts';
import { satisfied } from '../../../core/commands/waiter.ts';
import type { Settlement, SettleResult } from '../../../core/commands/settlement.ts';
import type { Attempt } from '../../../core/commands/rules.ts';
import type { Move } from '../../../core/commands/transaction.ts';
import type { Connection } from '../../../core/connections/connection.ts';
import { clientStream } from '../../../core/history/message.ts';
import { clientKeyText, type ClientKey, type CommandKey } from '../../../core/ids.ts';
import type { JsonText } from '../../../core/json.ts';
import type { RefusedShare } from '../../../core/shares/share-bounds.ts';
import { revisionOf } from '../connections-actions.ts';
import { commandDeps, nameArgs, type CommandDeps, type RedisDeps } from '../deps.ts';
import type { Store } from '../store.ts';
import { getCommands, getLive, getLoads } from './get.ts';
import { callerFields, encodeRequest, retained } from './record.ts';
import type { ExpectedClient, TransactionInput } from './transaction-writes.ts';
import { QueueReader } from './link-transaction.ts';
import { amountsRead, clientRead, contextReads, liveReads, paramsRead, type RedisTransaction } from './transaction.ts';
import type { Act, ActResult, Failure } from './transactions.ts';

/** The most characters of a history row besides its payload. */
const ROW_CHARS = 512;

/** Creates core's CommandStore over Redis. */
export function createRedisCommands(redis: RedisDeps): CommandStore {
  const deps = commandDeps(redis);
  const { store } = deps;
  return {
    windowMs: deps.windowMs,
    admit: (request) => admit(deps, request),
    preview: (question) => preview(deps, question),
    dispatch: (key, binding, attempt) => dispatch(deps, key, { binding, attempt }),
    report: (key, reported) => report(deps, key, reported),
    finish: (key, end) => finish(deps, key, end),
    settle: (key, settlement) => settle(deps, key, settlement),
    rebind: (client, binding, link, received) => moveQueue(deps, client, { binding, link, received }),
    live: (client) => getLive(store, client),
    loads: (clients) => getLoads(store, clients),
    get: (keys) => getCommands(redis, keys),
    mark: (key) => readMark(deps, key),
    result: (key) => readResult(deps, key),
  };
}

/** Runs an act on a known command, and updates the cache of live commands. */
export async function changeCommand<T>(
  deps: CommandDeps,
  act: Omit<Act<T>, 'key'> & { readonly key: CommandKey },
): Promise<ActResult<T>> {
  const { held, transactions } = deps;
  const { key } = act;
  try {
    const done = await transactions.run(act);
    if (done.entries.length === 0) held.drop(key);
    remember(deps, done);
    return done;
  } catch (error) {
    held.drop(key);
    throw error;
  }
}

/** Updates the cache of live commands after an act, and adds the commands that the act posted to this process. */
function remember({ held, store }: CommandDeps, { entries, place }: ActResult<unknown>): void {
  for (const entry of entries) {
    const { command, offeredTo } = entry;
    const isNamed = offeredTo !== null && offeredTo === store.callerOf(store.partitionOfUser(command.userId))?.nodeId;
    if (entry.span !== null) held.drop(command);
    else if (isNamed || held.get(command) || entry.isNew) held.put(command, entry.remembered(place));
  }
}

/** Returns the first reads of an act on a command: the command, and the spans of ended commands. */
export function commandReads({ store }: Pick<CommandDeps, 'store'>, key: CommandKey): Act<unknown>['first'] {
  const [client, , user] = nameArgs(store, key);
  return (keyOf, partition) => [
    ...liveReads(keyOf(partition, 'client', client), key),
    ['ZRANGE', keyOf(partition, 'spans', user), 0, -1],
  ];
}

// Admission.

/** Admits a command. If Redis has registered the caller's wait, this process keeps the wait as well. */
async function admit(deps: CommandDeps, request: AdmitRequest): Promise<AdmitResult> {
  const { waits, retentionMs } = deps;
  const wait = waits.begin(request, request.waiter);
  const { rpcId, waitFor } = request.waiter;
  try {
    const { answer, at } = await admitAs(deps, request, wait.number);
    const command = 'command' in answer ? answer.command : null;
    if (command && !satisfied(waitFor, command)) waits.register(wait, { command, at });
    else if (!wait.listed || command) waits.drop(rpcId);
    return answer.kind === 'attached'
      ? { ...answer, command: retained(answer.command, { now: at, retentionMs }) }
      : answer;
  } catch (error) {
    if (!wait.listed) waits.drop(rpcId);
    throw error;
  }
}

async function admitAs(deps: CommandDeps, request: AdmitRequest, wait: string): Promise<ActResult<AdmitResult>> {
  const { store, transactions, held } = deps;
  const { userId, params, seen = null, waiter, kept, contextId = null } = request;
  const text = requestText(store, request);
  const partition = store.partitionOfUser(userId);
  const nodeId = store.callerOf(partition)?.nodeId;
  // With a context, the act must read anyway, so it does not use the expected client.
  const isExpected = seen !== null && contextId === null && waiter.callerNodeId === nodeId;
  const client = isExpected ? expectedClient(store, seen) : null;
  const done = await transactions.run<AdmitResult>({
    key: request,
    given: { text, wait, seen: seen ? seenText(store, seen) : undefined },
    known(failed) {
      // If only the number of waiting commands was different, the other expectations are still valid.
      const waiting = failed?.reason === 'differs' ? Number(failed.value) : NaN;
      if (failed && !(waiting > 0)) return null;
      if (failed) transactions.remembered.waiting.set(clientKeyText(request), waiting);
      return client && { client };
    },
    first: admissionReads(deps, request),
    run: (rules) => rules.admit(request),
    grows: true,
    chars: text.length + 2 * (params?.length ?? 0),
    rowChars: (kept.payload?.length ?? 0) + ROW_CHARS,
    refused: (failure) => refusalOf(failure, request),
  });
  const { answer, entries } = done;
  const [entry] = entries;
  // The mailbox row of a command that is queued on this node contains only its name, so the record is cached here.
  if (answer.kind === 'admitted' && entry && entry.command.nodeId === nodeId)
    held.put(request, entry.remembered(done.place));
  else if (answer.kind === 'attached') remember(deps, done);
  return done;
}

/** Returns what this process expects of a client, according to the connection that the caller has seen. */
function expectedClient(store: Store, seen: Connection): ExpectedClient {
  const { nodeId, epoch, instanceId } = seen;
  return { binding: { nodeId, instanceId, epoch }, link: [seenText(store, seen), '', ''].join('\0') };
}

/** Returns the beginning of the text of this connection's link in the HASH of its client (see link-transaction.ts). */
function seenText(store: Store, { nodeId, epoch, instanceId, actions }: Connection): string {
  return [nodeId, epoch, instanceId, revisionOf(store, actions), ''].join('\0');
}

function admissionReads(
  deps: CommandDeps,
  question: AdmitQuestion & Pick<AdmitRequest, 'repeated'>,
): Act<unknown>['first'] {
  const { store } = deps;
  const [client] = nameArgs(store, question);
  const { contextId = null, chosenId, repeated = false } = question;
  const ofCommand = chosenId || repeated ? commandReads(deps, question) : () => [];
  return (keyOf, partition) => [
    clientRead(keyOf(partition, 'client', client)),
    ...ofCommand(keyOf, partition),
    ...(contextId === null ? [] : contextReads((kind) => keyOf(partition, kind, client), contextId)),
  ];
}

/** Returns the refusal for a guard that failed in Redis; null if the act must be decided again. */
function refusalOf({ reason, value }: Failure, { chosenId }: AdmitQuestion): AdmitResult | null {
  const code = reason as AdmitRefusal;
  if (reason === 'capacity_exceeded' || reason === 'queue_full') return { kind: 'refused', code };
  if (reason === 'rate_limited') return { kind: 'refused', code, retryAfterMs: Number(value) };
  if (reason !== 'share_exceeded' && reason !== 'store_full') return null;
  if (value === 'scope') return { kind: 'refused', code, share: 'scope' };
  if (value === 'q') return { kind: 'refused', code, share: 'queued_bytes' satisfies RefusedShare };
  return value === 'm' && chosenId ? { kind: 'refused', code } : null;
}

async function preview(deps: CommandDeps, question: AdmitQuestion): Promise<AdmitPreview> {
  const { store, transactions, retentionMs } = deps;
  const [user, scope] = [store.hash(question.userId), store.hash(question.scopeId)];
  const ofAdmission = admissionReads(deps, question);
  const { answer: found, at } = await transactions.run<AdmitPreview>({
    key: question,
    given: { asks: true },
    known: () => null,
    first: (keyOf, partition) => [
      ...ofAdmission(keyOf, partition),
      ['ZCARD', keyOf(partition, 'reserved', scope)],
      ...['m', 'q'].map((letter) => amountsRead(keyOf(partition, 'meta'), letter, user)),
      ['HGET', keyOf(partition, 'members', scope), user],
    ],
    run: (rules) => rules.preview(question),
    grows: true,
    chars: 0,
  });
  const { answer } = found;
  if (answer.kind !== 'attached') return found;
  return { ...found, answer: { ...answer, command: retained(answer.command, { now: at, retentionMs }) } };
}

// Dispatch, reports and ends.

async function dispatch(deps: CommandDeps, key: CommandKey, { binding, attempt }: Attempt): Promise<DispatchResult> {
  const { store, held } = deps;
  const client = { binding, link: `${binding.nodeId}\0${binding.epoch}\0` };
  const known = (failed: Failure | null): TransactionInput['known'] => {
    const command = failed ? undefined : held.get(key);
    return command?.command.stage === 'queued' && command.command.contextId === undefined ? { client, command } : null;
  };
  const [hash] = nameArgs(store, key);
  const partition = store.partitionOfUser(key.userId);
  const ofCommand = commandReads(deps, key);
  const { answer } = await changeCommand<DispatchResult>(deps, {
    key,
    given: {},
    known,
    besides: ({ command }) => (command?.params === null ? [paramsRead(store.key(partition, 'client', hash), key)] : []),
    first: (keyOf) => [
      ...ofCommand(keyOf, partition),
      clientRead(keyOf(partition, 'client', hash)),
      paramsRead(keyOf(partition, 'client', hash), key),
    ],
    run: (rules) => rules.dispatch(key, { binding, attempt }),
    grows: false,
    chars: 1_000,
  });
  return answer;
}

async function report(deps: CommandDeps, key: CommandKey, reported: Report): Promise<ReportResult> {
  const { answer } = await changeCommand<ReportResult>(deps, {
    key,
    given: {},
    known: (failed) => knownCommand(deps, key, failed),
    first: commandReads(deps, key),
    run: (rules) => rules.report(key, reported),
    grows: false,
    chars: 1_000,
    rowChars: (reported.kept?.payload?.length ?? 0) + ROW_CHARS,
  });
  return answer;
}

/**
 * Returns what this process remembers of a command. Null if its waiters are unknown, or if the last attempt failed
 * because Redis had other data.
 */
export function knownCommand(
  { held }: CommandDeps,
  key: CommandKey,
  failed: Failure | null,
): TransactionInput['known'] {
  if (failed) return null;
  const command = held.get(key);
  return command && command.waits !== null ? { command } : null;
}

/**
 * Records an end, and replies to the callers of this node, to which Redis posts no row. If the end is reported again
 * because an answer was lost, the record has ended already; then the result is read for the callers.
 */
async function finish(deps: CommandDeps, key: CommandKey, end: End): Promise<FinishResult> {
  const { waits } = deps;
  const { payload, kept } = end;
  const { answer } = await changeCommand<FinishResult>(deps, {
    key,
    given: { replies: true },
    known: (failed) => knownCommand(deps, key, failed),
    first: commandReads(deps, key),
    run: (rules) => rules.finish(key, end),
    grows: false,
    chars: 1_000 + 2 * (payload?.length ?? 0),
    rowChars: (kept.payload?.length ?? 0) + ROW_CHARS,
  });
  if (answer.kind === 'unknown' || !isTerminal(answer.command) || !waits.awaits(key)) return answer;
  const { kind, command } = answer;
  waits.end({ command, result: kind === 'finished' ? payload : await readResult(deps, key) });
  return answer;
}

async function settle(deps: CommandDeps, key: CommandKey, settlement: Settlement): Promise<SettleResult> {
  const { answer } = await changeCommand<SettleResult>(deps, {
    key,
    given: {},
    known: (failed) => knownCommand(deps, key, failed),
    first: commandReads(deps, key),
    run: (rules) => rules.settle(key, settlement),
    grows: false,
    chars: 1_000,
    rowChars: ROW_CHARS,
  });
  return answer;
}

/** Reads the result of an ended command; null if there is none, or if it is no longer shown. */
function readResult(deps: CommandDeps, key: CommandKey): Promise<JsonText | null> {
  return readCommand(deps, key, (tx) => {
    const entry = tx.find(key);
    return entry && tx.result(entry);
  });
}

/** Reads the mark of an ended command; null if the command still has a record, or is unknown. */
function readMark(deps: CommandDeps, key: CommandKey): Promise<CommandMark | null> {
  return readCommand(deps, key, (tx) => {
    const mark = tx.find(key) ? null : tx.markOf(key, null);
    return mark === 'conflict' ? null : mark;
  });
}

/** Runs a transaction that only reads a command. */
async function readCommand<T>(
  deps: CommandDeps,
  key: CommandKey,
  find: (tx: RedisTransaction) => T | null,
): Promise<T | null> {
  const { answer } = await deps.transactions.run<T | null>({
    key,
    given: {},
    known: () => null,
    first: commandReads(deps, key),
    run: (_rules, tx) => find(tx),
    grows: false,
    chars: 0,
  });
  return answer;
}

/**
 * Moves a client's queue in parts, one act for each part, so that a long queue does not block other calls. If a part
 * fails, the rest is moved when the client gets its next link, or by the cleanup after the node.
 */
export async function moveQueue(deps: CommandDeps, key: ClientKey, move: Move): Promise<RebindResult> {
  const { transactions } = deps;
  const reader = createQueueReader(deps, key, move.link);
  let requeued = 0;
  for (let begun = false; ; begun = true) {
    const done = await transactions.run({
      key: { ...key, commandId: '' },
      given: {},
      known: async (failed) => ({ queue: await reader.next(begun, failed !== null) }),
      first: () => [],
      run: (rules, tx) => {
        const part = rules.rebind(key, { ...move, begun });
        return { ...part, more: tx.leavesMore };
      },
      moves: true,
      grows: false,
      chars: 1_000,
      rowChars: ROW_CHARS,
    });
    remember(deps, done);
    const { more, ...part } = done.answer;
    requeued += part.requeued;
    if (!more) return { ...part, requeued };
  }
}

function createQueueReader({ store, transactions }: CommandDeps, key: ClientKey, link: Move['link']): QueueReader {
  const { seen } = transactions.remembered;
  const [name, hash] = [clientKeyText(key), store.hash(key.userId, key.clientId)];
  const partition = store.partitionOfUser(key.userId);
  const reader = new QueueReader({
    read: store.read,
    client: store.key(partition, 'client', hash),
    connection: store.key(partition, 'conn', hash),
    isUp: link !== 'down',
    seen: seen.get(name) ?? null,
  });
  seen.delete(name);
  return reader;
}

/** Encodes the request of a new record, including the hashes that its keys are made of. */
function requestText(store: Store, request: AdmitRequest): string {
  const { userId, clientId, commandId, action, digest, scopeId, namedInstanceId, contextId, owedBy } = request;
  const { traceId, parentSpanId, traceFlags, traceState, callSpan, clientType } = request;
  const hashes = {
    ch: store.hash(userId, clientId),
    uh: store.hash(userId),
    sh: store.hash(scopeId),
    sth: store.hash(userId, clientStream(clientId)),
  };
  const named = {
    userId,
    clientId,
    commandId,
    action,
    digest,
    scopeId,
    namedInstanceId,
    clientType,
    contextId,
    owedBy,
  };
  const traced = { traceId, parentSpanId, traceFlags, traceState, callSpan };
  return encodeRequest({ ...hashes, ...named, ...traced, ...callerFields(request.caller) });
}
