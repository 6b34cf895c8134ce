import type { AdmitRefusal, AdmitRequest, AdmitResult, CommandStore } from '../../../core/delivery/commands.ts';
import { clientStream } from '../../../core/history/message.ts';
import { QUEUE_PER_CLIENT, WAITERS_PER_COMMAND } from '../../../core/limits.ts';
import type { RedisParts } from '../parts.ts';
import { dispatch, finish, rebind, report, settle } from './acts.ts';
import { getCommands, getLive } from './get.ts';
import { commandParts, keptArgs, nameArgs, type CommandParts } from './parts.ts';
import { decodeCommand, encodeAsked, retained } from './record.ts';
import { jsonOr, listOf } from '../replies.ts';
import type { Store } from '../store/store.ts';

/** core's CommandStore over Redis: one act of the program for each of its own. */
export function createRedisCommands(redis: RedisParts): CommandStore {
  const parts = commandParts(redis);
  const { store } = parts;
  return {
    windowMs: parts.windowMs,
    admit: (request) => admit({ ...parts, retentionMs: redis.retentionMs }, request),
    dispatch: (key, binding, attempt) => dispatch(parts, key, { ...binding, attempt: attempt ?? null }),
    report: (key, told) => report(parts, key, told),
    finish: (key, end) => finish(parts, key, end),
    settle: (key, settlement) => settle(parts, key, settlement),
    rebind: (client, binding, link) => rebind(parts, client, { binding, link }),
    live: (client) => getLive(store, client),
    get: (keys) => getCommands(redis, keys),
    // Records are kept whole for the window.
    mark: () => null,
    async result(key) {
      const args = [...nameArgs(store, key), redis.retentionMs];
      return jsonOr(await store.act(store.partitionOfUser(key.userId), 'commands-result', args));
    },
  };
}

type Admitting = CommandParts & Pick<RedisParts, 'retentionMs'>;

async function admit(parts: Admitting, request: AdmitRequest): Promise<AdmitResult> {
  const { store, settings, retentionMs } = parts;
  const { rpcId, callerNodeId, waitFor, withinMs } = request.waiter;
  const limits = [request.scopeLimit, QUEUE_PER_CLIENT, WAITERS_PER_COMMAND];
  const budgets = [request.connectWithinMs, request.respondWithinMs];
  const reply = await store.act(store.partitionOfUser(request.userId), 'commands-admit', [
    ...[...limits, ...budgets, request.params, ...keptArgs(request.kept)],
    ...[rpcId, callerNodeId, waitFor, withinMs, settings.rows, askedOf(store, request)],
    ...nameArgs(store, request),
    ...askedArgs(store, request),
  ]);
  const [kind, record, result, now] = listOf(reply);
  if (kind === 'refused') return { kind, code: record as AdmitRefusal };
  const command = decodeCommand(record ?? null);
  if (kind === 'admitted') return { kind, command };
  return { kind: 'attached', command: retained(command, { now, retentionMs }), result: jsonOr(result) };
}

/** What of it the act looks into. */
function askedArgs(store: Store, request: AdmitRequest): readonly (string | null)[] {
  const { userId, clientId, digest, scopeId, namedInstanceId, traceId, parentSpanId } = request;
  const stream = store.hash(userId, clientStream(clientId));
  return [store.hash(scopeId), stream, userId, clientId, digest, scopeId, namedInstanceId, traceId, parentSpanId];
}

/** What a record holds from the first: what was asked for, and the hashes that its keys have. */
function askedOf(store: Store, request: AdmitRequest): string {
  const { userId, clientId, commandId, action, digest, scopeId, namedInstanceId, caller } = request;
  const { traceId, parentSpanId, traceFlags, traceState } = request;
  const hashes = {
    ch: store.hash(userId, clientId),
    uh: store.hash(userId),
    sh: store.hash(scopeId),
    sth: store.hash(userId, clientStream(clientId)),
  };
  const asked = { userId, clientId, commandId, action, digest, scopeId, namedInstanceId };
  const traced = { traceId, parentSpanId, traceFlags, traceState };
  return encodeAsked({ ...hashes, ...asked, ...traced, callerKind: caller.kind, callerName: caller.name });
}
