/** Core's CommandStore in one process: each method is one synchronous act. Its larger acts are in commands-*.ts. */
import { isTerminal, type Command } from '../../core/delivery/command.ts';
import type {
  AdmitRefusal,
  AdmitRequest,
  AdmitResult,
  Binding,
  CommandStore,
  Report,
} from '../../core/delivery/commands.ts';
import { satisfied } from '../../core/delivery/waiter.ts';
import { PROGRESS_ROW_MS, QUEUE_PER_CLIENT, WAITERS_PER_COMMAND } from '../../core/limits.ts';
import { move, type Acts } from './commands-acts.ts';
import { createFinish } from './commands-finish.ts';
import { giveUpParams, holdParams, paramsRefusal } from './commands-params.ts';
import { rebind } from './commands-rebind.ts';
import { settle } from './commands-settle.ts';
import { NO_TRACE, type TraceIds } from './history-command-row.ts';
import { Entry, keyOf } from './ledger.ts';

/** Core's CommandStore in one process. */
export function createMemoryCommands(acts: Acts): CommandStore {
  const { ledger } = acts;
  return {
    windowMs: ledger.windowMs,
    admit: (request) => admit(acts, request),
    dispatch: (key, binding) => dispatch(acts, ledger.find(key), binding),
    report: (key, report) => {
      const entry = ledger.find(key);
      return entry && reports(acts, entry, report)
        ? { kind: 'recorded', command: entry.command }
        : { kind: 'ignored', command: entry?.command ?? null };
    },
    finish: createFinish(acts),
    settle: (key, settlement) => settle(acts, ledger.find(key), settlement),
    rebind: (client, binding, link) => rebind(acts, client, { binding, link }),
    live(client) {
      const { waiting, running } = ledger.peekClient(client) ?? { waiting: [], running: [] };
      return [...waiting, ...running].map(keyOf);
    },
    get: (keys) => keys.map((key) => ledger.find(key)?.command ?? null),
    mark(key) {
      const mark = ledger.find(key) ? null : ledger.mark(key, null);
      return mark === 'conflict' ? null : mark;
    },
    result: (key) => ledger.find(key)?.result ?? null,
  };
}

function admit(acts: Acts, request: AdmitRequest): AdmitResult {
  // Nobody can have used an id that the relay has just made.
  const known = request.chosenId ? acts.ledger.find(request) : undefined;
  if (known) return attach(acts, known, request);
  const mark = request.chosenId ? acts.ledger.mark(request, request.digest) : null;
  if (mark !== null)
    return mark === 'conflict' ? { kind: 'refused', code: 'command_conflict' } : { kind: 'ended', mark };
  const client = acts.ledger.client(request);
  const refusal = refuse(acts, request, client);
  if (refusal) {
    acts.ledger.dropIdle(request);
    return { kind: 'refused', code: refusal };
  }
  const shortage = paramsRefusal(client, request.params);
  if (shortage) {
    acts.ledger.dropIdle(request);
    return { kind: 'refused', code: shortage, share: 'queued_bytes' };
  }
  const { binding } = client;
  const now = acts.clock.now();
  const command = newCommand(request, binding, now);
  const entry = new Entry({ command, trace: traceOf(request), client, params: request.params });
  holdParams(entry);
  acts.keep(entry, { kind: 'command', kept: request.kept, instanceId: command.expectedInstanceId }, now);
  acts.ledger.reserveMark(entry, request.chosenId);
  acts.ledger.add(entry, binding ? command.deadline : command.connectDeadline);
  if (!satisfied(request.waiter.waitFor, command)) acts.waiters.add(entry, request.waiter, now);
  if (binding) acts.mailboxes.post(binding.nodeId, { kind: 'command', key: keyOf(command) });
  return { kind: 'admitted', command };
}

function traceOf({ traceId, parentSpanId, traceFlags, traceState }: TraceIds): TraceIds {
  const hasNone = traceId === null && parentSpanId === null && traceFlags === null && traceState === null;
  return hasNone ? NO_TRACE : { traceId, parentSpanId, traceFlags, traceState };
}

function attach(acts: Acts, entry: Entry, request: AdmitRequest): AdmitResult {
  const { command, result } = entry;
  if (command.digest !== request.digest) return { kind: 'refused', code: 'command_conflict' };
  if (request.chosenId && !entry.marked) acts.ledger.reserveMark(entry, false);
  if (!satisfied(request.waiter.waitFor, command)) {
    if (entry.waiters.length >= WAITERS_PER_COMMAND) return { kind: 'refused', code: 'capacity_exceeded' };
    acts.waiters.add(entry, request.waiter, acts.clock.now());
  }
  return { kind: 'attached', command, result };
}

function refuse(acts: Acts, request: AdmitRequest, client: Entry['client']): AdmitRefusal | null {
  const { binding } = client;
  const { namedInstanceId } = request;
  if (!binding && request.connectWithinMs === 0) return 'not_connected';
  if (binding && namedInstanceId !== null && namedInstanceId !== binding.instanceId) return 'instance_mismatch';
  if (acts.ledger.reserved(request.scopeId) >= request.scopeLimit) return 'capacity_exceeded';
  if (client.waiting.size >= QUEUE_PER_CLIENT) return 'queue_full';
  return request.chosenId ? acts.ledger.refuseChosen(client, request.commandId) : null;
}

function newCommand(request: AdmitRequest, binding: Binding | null, now: number): Command {
  const { userId, clientId, commandId, action, digest, scopeId, namedInstanceId } = request;
  const { caller, traceId, parentSpanId, traceFlags, traceState } = request;
  const connectDeadline = now + request.connectWithinMs;
  return {
    userId,
    clientId,
    commandId,
    action,
    digest,
    scopeId,
    namedInstanceId,
    caller,
    traceId,
    parentSpanId,
    traceFlags,
    traceState,
    version: 1,
    stage: binding ? 'queued' : 'admitted',
    lastProvenStage: binding ? 'queued' : 'admitted',
    outcome: null,
    execution: 'not_written',
    error: null,
    reason: null,
    attempts: 0,
    expectedInstanceId: namedInstanceId ?? binding?.instanceId ?? null,
    boundInstanceId: null,
    nodeId: binding?.nodeId ?? null,
    recoveredFromNodeId: null,
    admittedAt: now,
    queuedAt: binding ? now : null,
    dispatchedAt: null,
    acknowledgedAt: null,
    terminalAt: null,
    cancelRequestedAt: null,
    connectDeadline,
    deadline: connectDeadline + request.respondWithinMs,
    lateResults: 0,
    firstLate: null,
    resultExpired: false,
    sightings: [],
  };
}

function dispatch(acts: Acts, entry: Entry | undefined, binding: Binding): ReturnType<CommandStore['dispatch']> {
  const now = acts.clock.now();
  const bound = entry?.client.binding;
  const mine = bound?.nodeId === binding.nodeId && bound.epoch === binding.epoch;
  if (!entry || !mine || entry.command.stage !== 'queued' || now >= entry.command.deadline) return { kind: 'skip' };
  const before = entry.command;
  // `move`, written as one literal, because every command is dispatched.
  const command: Command = {
    ...before,
    version: before.version + 1,
    stage: 'dispatched',
    lastProvenStage: 'dispatched',
    execution: 'may_have_run',
    attempts: before.attempts + 1,
    boundInstanceId: binding.instanceId,
    dispatchedAt: now,
  };
  entry.command = command;
  acts.ledger.run(entry);
  return { kind: 'dispatch', command, params: giveUpParams(entry), remainingMs: command.deadline - now };
}

const NO_PROGRESS = { rows: 0, at: -Infinity } as const;

function reports(acts: Acts, entry: Entry, { instanceId, kind, kept }: Report): boolean {
  const { command } = entry;
  const now = acts.clock.now();
  if (isTerminal(command) || command.boundInstanceId !== instanceId) return false;
  if (command.stage === 'dispatched') {
    move(entry, { stage: 'acknowledged', lastProvenStage: 'acknowledged', acknowledgedAt: now });
    acts.waiters.reply(entry);
  } else if (kind === 'ack') return false;
  const { rows, at } = entry.progress ?? NO_PROGRESS;
  if (kind === 'progress' && kept && now - at >= PROGRESS_ROW_MS) {
    entry.progress = { rows: rows + 1, at: now };
    acts.keep(entry, { id: `${command.commandId}:progress:${rows + 1}`, kind: 'progress', instanceId, kept }, now);
  }
  return true;
}
