/**
 * Core's CommandStore in memory: admits, dispatches and ends commands. Each method is one synchronous act. The larger
 * acts are in the files commands-*.ts.
 */
import { isTerminal, type Command, satisfied } from '../../core/commands/command.ts';
import type { AdmitRequest, AdmitResult, Binding, CommandStore, Report } from '../../core/commands/stores.ts';
import { PROGRESS_ROW_MS } from '../../core/limits.ts';
import { move, type Acts } from './commands-acts.ts';
import { previewAdmission, refuseAttach, refuseNew } from './commands-admission.ts';
import { createFinish } from './commands-finish.ts';
import { giveUpParams, holdParams } from './commands-params.ts';
import { rebind } from './commands-rebind.ts';
import { settle } from './commands-settle.ts';
import { DECLINED } from '../../core/trace-context.ts';
import { NO_TRACE, type TraceIds } from './history-rows.ts';
import { Entry, keyOf } from './ledger.ts';

/** Creates core's CommandStore in memory. */
export function createMemoryCommands(acts: Acts): CommandStore {
  const { ledger } = acts;
  return {
    windowMs: ledger.windowMs,
    admit: (request) => admit(acts, request),
    preview: (question) => previewAdmission(acts, question),
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
    loads: (clients) =>
      clients.map((client) => {
        const { waiting, running } = ledger.peekClient(client) ?? NO_COMMANDS;
        return { inFlight: running.size, queued: waiting.size };
      }),
    get: (keys) => keys.map((key) => ledger.find(key)?.command ?? null),
    mark(key) {
      const mark = ledger.find(key) ? null : ledger.mark(key, null);
      return mark === 'conflict' ? null : mark;
    },
    result: (key) => ledger.find(key)?.result ?? null,
  };
}

/** The queues of a client that has none in the ledger: no commands wait, and none run. */
const NO_COMMANDS = { waiting: { size: 0 }, running: { size: 0 } };

function admit(acts: Acts, request: AdmitRequest): AdmitResult {
  // If the caller chose no id, the relay has just made one, so no command can have it.
  const known = request.chosenId ? acts.ledger.find(request) : undefined;
  if (known) return attach(acts, known, request);
  const mark = request.chosenId ? acts.ledger.mark(request, request.digest) : null;
  if (mark !== null)
    return mark === 'conflict' ? { kind: 'refused', code: 'command_conflict' } : { kind: 'ended', mark };
  const client = acts.ledger.client(request);
  const refusal = refuseNew(acts, request, client);
  if (refusal) {
    acts.ledger.dropIdle(request);
    return refusal;
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

/**
 * Returns the trace of a new command. Most commands have no trace, or one that the tracer declined to record. All of
 * these use the same two objects.
 */
function traceOf({ traceId, parentSpanId, traceFlags, traceState, callSpan }: TraceIds): TraceIds {
  const given = traceId ?? parentSpanId ?? traceFlags ?? traceState;
  if (given === null && callSpan === null) return NO_TRACE;
  if (given === null && callSpan === DECLINED) return DECLINED_TRACE;
  return { traceId, parentSpanId, traceFlags, traceState, callSpan };
}

const DECLINED_TRACE: TraceIds = { ...NO_TRACE, callSpan: DECLINED };

function attach(acts: Acts, entry: Entry, request: AdmitRequest): AdmitResult {
  const refusal = refuseAttach(entry, request);
  if (refusal) return refusal;
  const { command, result } = entry;
  if (request.chosenId && !entry.marked) acts.ledger.reserveMark(entry, false);
  if (!satisfied(request.waiter.waitFor, command)) acts.waiters.add(entry, request.waiter, acts.clock.now());
  return { kind: 'attached', command, result };
}

function newCommand(request: AdmitRequest, binding: Binding | null, now: number): Command {
  const { userId, clientId, commandId, action, digest, scopeId, namedInstanceId } = request;
  const { clientType, caller, traceId, parentSpanId, traceFlags, traceState, callSpan } = request;
  const connectDeadline = now + request.connectWithinMs;
  return {
    userId,
    clientId,
    commandId,
    action,
    digest,
    scopeId,
    namedInstanceId,
    clientType,
    caller,
    traceId,
    parentSpanId,
    traceFlags,
    traceState,
    callSpan,
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
  // This does what `move` does, but writes one literal, because every command is dispatched and a literal is faster.
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
