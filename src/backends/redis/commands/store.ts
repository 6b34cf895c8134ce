/**
 * Core's CommandStore over Redis: admits and previews commands, and passes the other calls to the files beside this
 * one.
 */
import type {
  AdmitPreview,
  AdmitQuestion,
  AdmitRefusal,
  AdmitRequest,
  AdmitResult,
  CommandStore,
  DispatchClaim,
} from '../../../core/commands/stores.ts';
import type { CommandKey } from '../../../core/ids.ts';
import type { Connection } from '../../../core/connections/connection.ts';
import { satisfied } from '../../../core/commands/command.ts';
import { clientStream } from '../../../core/history/message.ts';
import { utf8Length } from '../../../core/json.ts';
import { QUEUE_PER_CLIENT, WAITERS_PER_COMMAND } from '../../../core/limits.ts';
import { type RefusedShare, paramsAreSmall } from '../../../core/shares/shares.ts';
import { revisionOf } from '../connections-rows.ts';
import type { RedisParts } from '../parts.ts';
import { dispatch, finish, readResult, rebind, report, settle } from './acts.ts';
import { getCommands, getLive, getLoads } from './get.ts';
import { heldCommand } from './held.ts';
import { commandParts, keptArgs, nameArgs, type CommandParts } from './parts.ts';
import { unmarked } from './predict.ts';
import { decodeCommand, encodeRequest, retained } from './record.ts';
import { jsonOr, listOf, type Reply } from '../types.ts';
import type { Store } from '../store.ts';

/** Creates Core's CommandStore over Redis. Each change of a command is one act in Redis. */
export function createRedisCommands(redis: RedisParts): CommandStore {
  const parts = commandParts(redis);
  const { store } = parts;
  const inTurn = createTurns();
  return {
    windowMs: parts.windowMs,
    admit: (request) => inTurn(request, () => admit(parts, request)),
    preview: (question) => preview(parts, question),
    dispatch: (key, binding, attempt) =>
      inTurn(key, () => dispatch(parts, key, { ...binding, attempt: attempt ?? null })),
    report: (key, reported) => inTurn(key, () => report(parts, key, reported)),
    finish: (key, end) => inTurn(key, () => finish(parts, key, end)),
    settle: (key, settlement) => inTurn(key, () => settle(parts, key, settlement)),
    rebind: (client, binding, link) => rebind(parts, client, { binding, link }),
    live: (client) => getLive(store, client),
    loads: (clients) => getLoads(store, clients),
    get: (keys) => getCommands(redis, keys),
    // Redis keeps every record for the whole idempotency window, so no ended command is reduced to a mark.
    mark: () => null,
    result: (key) => readResult(parts, key),
  };
}

/** Returns a function that runs the acts of a command one after the other, in the order in which they were asked for. */
function createTurns() {
  const last = new Map<string, Promise<unknown>>();
  return <T>({ userId, clientId, commandId }: CommandKey, act: () => Promise<T>): Promise<T> => {
    const name = `${userId}\0${clientId}\0${commandId}`;
    const running = last.get(name)?.then(act, act) ?? act();
    last.set(name, running);
    const over = (): void => void (last.get(name) === running && last.delete(name));
    running.then(over, over);
    return running;
  };
}

/** Admits a command. If Redis has registered the caller's wait, this process keeps the wait too. */
async function admit(parts: CommandParts, request: AdmitRequest): Promise<AdmitResult> {
  const { waits } = parts;
  const wait = waits.begin(request, request.waiter);
  const { rpcId, waitFor } = request.waiter;
  try {
    const { answer, at } = await admitAs(parts, request, wait.number);
    const command = 'command' in answer ? answer.command : null;
    if (command && !satisfied(waitFor, command)) waits.register(wait, { command, at });
    else if (!wait.listed || command) waits.drop(rpcId);
    return answer;
  } catch (error) {
    if (!wait.listed) waits.drop(rpcId);
    throw error;
  }
}

/** `at`: the time of Redis, milliseconds. */
type Admitted = { readonly answer: AdmitResult; readonly at: number };

async function admitAs(parts: CommandParts, request: AdmitRequest, wait: string): Promise<Admitted> {
  const { store, settings, retentionMs, held } = parts;
  const { callerNodeId, waitFor } = request.waiter;
  const text = requestText(store, request);
  const transaction = parts.transactions?.admit({ request, text, wait });
  const admitted = transaction && (await transaction);
  if (admitted) return admitted;
  const limits = [request.scopeLimit, QUEUE_PER_CLIENT, WAITERS_PER_COMMAND];
  const budgets = [request.connectWithinMs, request.respondWithinMs];
  const reply = await store.act(store.partitionOfUser(request.userId), 'commands-admit', [
    ...[...limits, ...budgets, request.params, ...keptArgs(request.kept)],
    ...[wait, callerNodeId, waitFor, settings.rows, text],
    ...nameArgs(store, request),
    ...requestArgs(store, request),
    seenText(store, request.seen ?? null),
    ...claimArgs(request.claim ?? null),
    ...roomArgs(request),
  ]);
  const [kind, record, more, last] = listOf(reply);
  if (kind === 'refused') return { answer: refusedFor(record, more), at: 0 };
  if (kind === 'outdated') return { answer: { kind }, at: 0 };
  const command = decodeCommand(record ?? null);
  if (kind === 'attached') {
    const attached = retained(command, { now: last, retentionMs });
    return { answer: { kind, command: attached, result: jsonOr(more) }, at: Number(last) };
  }
  const at = command.admittedAt;
  // If the command is queued on this node, its mailbox row only names it, so its record is cached here. If the row
  // arrives before this answer, a slower act follows.
  if (command.nodeId === callerNodeId) {
    const state = String(record).slice(0, -text.length);
    held.put(request, heldCommand({ state, request: text, waits: String(more), params: request.params }));
  }
  if (last !== '1') return { answer: { kind: 'admitted', command }, at };
  const remainingMs = command.deadline - Number(command.dispatchedAt);
  const dispatch = { kind: 'dispatch', command, params: request.params, remainingMs } as const;
  return { answer: { kind: 'admitted', command: unmarked(command), dispatch }, at };
}

async function preview({ store, settings, retentionMs }: CommandParts, question: AdmitQuestion): Promise<AdmitPreview> {
  const { userId, scopeId, scopeLimit, connectWithinMs, waiter, digest, namedInstanceId } = question;
  const reply = await store.act(store.partitionOfUser(userId), 'commands-preview', [
    ...[scopeLimit, QUEUE_PER_CLIENT, WAITERS_PER_COMMAND, connectWithinMs, waiter.waitFor],
    ...nameArgs(store, question),
    ...[store.hash(scopeId), digest, namedInstanceId, settings.rows],
    ...roomArgs(question),
  ]);
  const [kind, found, now, instanceId, reserved, queued, known, share] = listOf(reply);
  const state = {
    known: known === 1,
    boundInstanceId: typeof instanceId === 'string' ? instanceId : null,
    reserved: Number(reserved),
    queued: Number(queued),
  };
  if (kind === 'refused') return { ...state, answer: refusedFor(found, share) };
  if (kind === 'admitted') return { ...state, answer: { kind } };
  const command = retained(decodeCommand(found ?? null), { now, retentionMs });
  return { ...state, answer: { kind: 'attached', command, result: null } };
}

/**
 * Returns the arguments by which the act checks the user's shares: whether the caller chose the id, how large the
 * params are, and the user's part of its scope.
 */
function roomArgs({ chosenId, params, memberLimit }: AdmitQuestion): readonly (string | number | null)[] {
  const bytes = params === null ? 0 : utf8Length(params);
  return [chosenId ? '1' : null, bytes, paramsAreSmall(params) ? '1' : null, memberLimit];
}

type Refused = Extract<AdmitResult, { readonly kind: 'refused' }>;

/** Decodes a refusal. `share`: the share that is used up; '' if that is `marks`, or if no share is. */
function refusedFor(code: Reply | undefined, share: Reply | undefined): Refused {
  const refused = { kind: 'refused', code: code as AdmitRefusal } as const;
  return share === '' ? refused : { ...refused, share: share as RefusedShare };
}

function claimArgs(claim: DispatchClaim | null): readonly (string | number | null)[] {
  return claim ? [claim.binding.epoch, claim.attempt] : [null, null];
}

/** Returns how the text of this connection's link begins in the HASH of its client (see `commands_bind_to`). */
function seenText(store: Store, seen: Connection | null): string | null {
  return seen && [seen.nodeId, seen.epoch, seen.instanceId, revisionOf(store, seen.actions), ''].join('\0');
}

/** Returns those members of the request that the act itself reads, as arguments. */
function requestArgs(store: Store, request: AdmitRequest): readonly (string | null)[] {
  const { userId, clientId, digest, scopeId, namedInstanceId, traceId, parentSpanId } = request;
  const stream = store.hash(userId, clientStream(clientId));
  return [store.hash(scopeId), stream, userId, clientId, digest, scopeId, namedInstanceId, traceId, parentSpanId];
}

/** Encodes the request of a new record, with the hashes that its keys are made of. */
function requestText(store: Store, request: AdmitRequest): string {
  const { userId, clientId, commandId, action, digest, scopeId, namedInstanceId, caller } = request;
  const { traceId, parentSpanId, traceFlags, traceState, callSpan, clientType } = request;
  const hashes = {
    ch: store.hash(userId, clientId),
    uh: store.hash(userId),
    sh: store.hash(scopeId),
    sth: store.hash(userId, clientStream(clientId)),
  };
  const named = { userId, clientId, commandId, action, digest, scopeId, namedInstanceId, clientType };
  const traced = { traceId, parentSpanId, traceFlags, traceState, callSpan };
  return encodeRequest({ ...hashes, ...named, ...traced, callerKind: caller.kind, callerName: caller.name });
}
