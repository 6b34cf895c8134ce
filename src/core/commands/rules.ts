/**
 * The rules by which commands change: admission, dispatch, reports, ends, moves between links, and waits. Rules read
 * and change state only through a transaction, which each backend implements.
 */
import type { Code } from '../errors.ts';
import { keyOf, type ClientKey, type CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import { PROGRESS_ROW_MS, QUEUE_PER_CLIENT, SIGHTINGS_PER_COMMAND, WAITERS_PER_COMMAND } from '../limits.ts';
import { BORROWED_PART, SCOPE_SHARE } from '../shares/share-bounds.ts';
import { isOfAnswer, settleAnswer } from './answers.ts';
import { END_MESSAGES } from './end-messages.ts';
import {
  changed,
  dispatched,
  endMessageId,
  isTerminal,
  newCommand,
  nextTime,
  proofOf,
  recoveredFrom,
  see,
  seeAgain,
  wasDispatched,
  type Command,
  type ContextRefusal,
  type Outcome,
} from './command.ts';
import { satisfied, waiterOf, type NewWaiter } from './waiter.ts';
import type { OfAnswer, Settlement, SettleResult } from './settlement.ts';
import type {
  AdmitPreview,
  AdmitQuestion,
  AdmitRequest,
  AdmitResult,
  Binding,
  DispatchClaim,
  DispatchResult,
  End,
  FinishResult,
  MarkedDispatch,
  RebindResult,
  Report,
  ReportResult,
} from './command-store.ts';
import type { AttachResult } from './waiter-store.ts';
import type { ClientView, CommandMessage, HeldCommand, Move, RefusedAdmission, Transaction } from './transaction.ts';

const SCOPE_FULL: RefusedAdmission = { kind: 'refused', code: 'capacity_exceeded' };
const MEMBER_FULL: RefusedAdmission = { kind: 'refused', code: 'share_exceeded', share: SCOPE_SHARE };
const QUEUE_FULL: RefusedAdmission = { kind: 'refused', code: 'queue_full' };
const CONFLICT: RefusedAdmission = { kind: 'refused', code: 'command_conflict' };
const CONTEXT_GONE: RefusedAdmission = { kind: 'refused', code: 'context_gone' };
const NO_PLACES: RefusedAdmission = { kind: 'refused', code: 'context_unsupported' };
const WAITS_FULL: RefusedAdmission = { kind: 'refused', code: 'capacity_exceeded' };

type KnownId<E> = {
  readonly answer: Exclude<AdmitPreview['answer'], { readonly kind: 'admitted' }>;
  /** The existing command to which the caller may attach; null if it may not. */
  readonly entry: E | null;
};

/** The link to write a command to, and the name of the attempt; an attempt without a name is never repeated. */
export type Attempt = DispatchClaim;

const SKIP: DispatchResult = { kind: 'skip' };
const PAUSED: DispatchResult = { kind: 'paused' };

const OUTCOME: Readonly<Record<End['kind'], Outcome>> = {
  result: 'completed',
  error: 'failed',
  cancelled: 'cancelled',
};
const ROW_KIND = { result: 'result', error: 'error', cancelled: 'cancel' } as const;

type LateEnd = { readonly end: End; readonly messageId: string };

/** The members of a record that change when a command ends. */
type EndOfRecord = Pick<Command, 'outcome' | 'execution' | 'error' | 'reason'> &
  Partial<Pick<Command, 'cancelRequestedAt' | 'sightings'>>;

/**
 * The rules, over one transaction. `E` is a command and `C` a client, as the store holds them. Each public method is
 * one act, with the guarantees of the method of the same name of CommandStore or WaiterStore.
 */
export class CommandRules<E extends HeldCommand, C extends ClientView> {
  readonly tx: Transaction<E, C>;

  constructor(tx: Transaction<E, C>) {
    this.tx = tx;
  }

  // Admission.

  /** Admits a command, or attaches the caller to the existing one with its id. A refusal writes nothing. */
  admit(request: AdmitRequest): AdmitResult {
    if (!request.repeated && this.tx.isOutdated(request)) return { kind: 'outdated' };
    // If the caller chose no id, the relay made it just now, so it can be known only if this request is a repetition.
    const known = request.chosenId || request.repeated ? this.#answerOfKnown(request) : null;
    if (request.repeated && !known && this.tx.isOutdated(request)) return { kind: 'outdated' };
    if (known && request.owedBy !== undefined && known.entry?.command.owedBy !== request.owedBy) return CONFLICT;
    if (known) return known.entry ? this.#attachTo(known.entry, request) : known.answer;
    const client = this.tx.client(request);
    const refusal = this.#refuseNew(request, client);
    if (refusal) return refusal;
    const { binding } = client;
    const queued = this.#named(newCommand(request, binding, this.tx.now), request, client);
    const claim = request.claim && mayMark(client, request) ? request.claim : null;
    const command = claim ? dispatched(queued, claim.binding, this.tx.now) : queued;
    const entry = this.tx.add(client, request, command, claim && attemptOf(claim));
    if (request.rate) this.tx.takeToken(request.rate);
    this.tx.retain(entry, { kind: 'command', kept: request.kept, instanceId: queued.expectedInstanceId });
    if (!satisfied(request.waiter.waitFor, command)) this.tx.wait(entry, request.waiter);
    if (!claim) {
      if (binding) this.tx.offer(entry, binding.nodeId);
      return { kind: 'admitted', command };
    }
    const remainingMs = command.deadline - this.tx.now;
    return {
      kind: 'admitted',
      command: queued,
      dispatch: { kind: 'dispatch', command, params: request.params, remainingMs },
    };
  }

  /** Returns what `admit` would answer now. Writes nothing. */
  preview(question: AdmitQuestion): AdmitPreview {
    const client = this.tx.client(question);
    const known = question.chosenId ? this.#answerOfKnown(question) : null;
    return {
      answer: known?.answer ?? this.#refuseNew(question, client) ?? { kind: 'admitted' },
      known: known !== null,
      boundInstanceId: client.binding?.instanceId ?? null,
      reserved: this.tx.reserved(question.scopeId),
      queued: client.waiting.size,
    };
  }

  /** Returns the answer if a command or a mark with the id exists; null if the id is unknown. */
  #answerOfKnown(question: AdmitQuestion): KnownId<E> | null {
    const entry = this.tx.find(question);
    if (entry) {
      const refusal = this.#refuseAttach(entry, question);
      if (refusal) return { answer: refusal, entry: null };
      return { answer: { kind: 'attached', command: entry.command, result: this.tx.result(entry) }, entry };
    }
    const mark = this.tx.markOf(question, question.digest);
    if (mark === null) return null;
    return { answer: mark === 'conflict' ? CONFLICT : { kind: 'ended', mark }, entry: null };
  }

  /** Returns why an invocation may not attach to the existing command; null if it may. */
  #refuseAttach(entry: E, { digest, waiter }: AdmitQuestion): RefusedAdmission | null {
    if (entry.command.digest !== digest) return CONFLICT;
    if (satisfied(waiter.waitFor, entry.command)) return null;
    return this.tx.canWait(entry, waiter, WAITERS_PER_COMMAND) ? null : WAITS_FULL;
  }

  #attachTo(entry: E, request: AdmitRequest): AdmitResult {
    const { command } = entry;
    const { waiter, claim = null, chosenId, repeated = false } = request;
    if (chosenId) this.tx.reserveMark(entry);
    if (!satisfied(waiter.waitFor, command)) this.tx.wait(entry, waiter);
    // If the claim is the attempt that marked the command, this request is a repetition of the one that admitted it.
    if (repeated && claim && isMarkedBy(entry, claim)) {
      const dispatch = this.dispatch(request, claim);
      if (dispatch.kind === 'dispatch' || dispatch.kind === 'paused') return { kind: 'admitted', command, dispatch };
    }
    return { kind: 'attached', command: entry.command, result: this.tx.result(entry) };
  }

  /** Returns why a command with an unknown id may not be admitted; null if it may. */
  #refuseNew(question: AdmitQuestion, client: C): RefusedAdmission | null {
    const { binding } = client;
    const pause = this.tx.pauseOf(question);
    if (pause) return { kind: 'refused', code: 'paused', pause };
    const { connectWithinMs, namedInstanceId, scopeId, scopeLimit, memberLimit, params } = question;
    if (!binding && connectWithinMs === 0) return { kind: 'refused', code: 'not_connected' };
    if (binding && namedInstanceId !== null && namedInstanceId !== binding.instanceId)
      return { kind: 'refused', code: 'instance_mismatch' };
    const ofContext = this.#refuseContext(question, client);
    if (ofContext) return ofContext;
    const full =
      this.tx.scopeFull(scopeId, scopeLimit, SCOPE_FULL) ??
      (memberLimit === null
        ? null
        : this.tx.memberFull(question, { above: scopeLimit * BORROWED_PART - 1, most: memberLimit }, MEMBER_FULL)) ??
      this.tx.queueFull(client, QUEUE_PER_CLIENT, QUEUE_FULL);
    if (full) return full;
    const noMark = question.chosenId ? this.tx.noMark(client, question.commandId) : null;
    if (noMark) return { kind: 'refused', code: noMark };
    const noRoom = params === null ? null : this.tx.noRoom(client, params);
    if (noRoom) return { kind: 'refused', code: noRoom, share: 'queued_bytes' };
    const retryAfterMs = question.rate ? this.tx.waitForToken(question.rate) : 0;
    return retryAfterMs === 0 ? null : { kind: 'refused', code: 'rate_limited', retryAfterMs };
  }

  /** Returns why a new call may not have the context that it names; null if it may, or if it names none. */
  #refuseContext(question: AdmitQuestion, client: C): RefusedAdmission | null {
    const { contextId = null, knowsPlaces = null } = question;
    if (contextId === null) return null;
    if (client.binding && knowsPlaces === false) return NO_PLACES;
    const seen = this.tx.context(question, contextId);
    return seen.kind === 'reported' && seen.instanceId === this.#instanceFor(question, client) ? null : CONTEXT_GONE;
  }

  /** Adds to a new command the context that its call names, and the request that owes its answer, if there are any. */
  #named(made: Command, request: AdmitRequest, client: C): Command {
    const { contextId = null, owedBy } = request;
    const command = owedBy === undefined ? made : { ...made, owedBy };
    if (contextId === null) return command;
    return { ...command, contextId, expectedInstanceId: this.#instanceFor(request, client) };
  }

  /**
   * Returns the instance that a new command waits for; null: any. A named context needs the instance that reports it.
   */
  #instanceFor(question: AdmitQuestion, { binding }: C): string | null {
    const { namedInstanceId, contextId = null } = question;
    const instanceId = namedInstanceId ?? binding?.instanceId ?? null;
    if (instanceId !== null || contextId === null) return instanceId;
    const seen = this.tx.context(question, contextId);
    return seen.kind === 'reported' ? seen.instanceId : null;
  }

  // Dispatch and reports.

  /** Records the dispatch of a command, at most once. If the same attempt calls again, it gets the same answer. */
  dispatch(key: CommandKey, made: Attempt): DispatchResult {
    const { binding } = made;
    const entry = this.tx.find(key);
    if (!entry || this.tx.isOver(entry.command.deadline)) return SKIP;
    const before = entry.command;
    const isRepeated = isMarkedBy(entry, made);
    if (before.stage !== 'queued' && !isRepeated) return SKIP;
    const bound = this.tx.client(key).binding;
    if (!bound || !isSameLink(bound, binding)) return SKIP;
    // Only the link's node knows whether it wrote the command after an earlier call, so the node decides.
    if (this.tx.pauseOf(before)) return isRepeated ? PAUSED : SKIP;
    const refusal = isRepeated ? null : this.#refuseDispatch(before, binding);
    if (refusal) return { kind: 'refuse', code: refusal };
    const command = isRepeated ? before : dispatched(before, binding, this.tx.now);
    const params = isRepeated ? this.tx.params(entry) : this.tx.run(entry, command, attemptOf(made));
    return { kind: 'dispatch', command, params, remainingMs: command.deadline - this.tx.now };
  }

  /**
   * Returns why a command must not be written to a link because of its context; null if it may be written. If the
   * client has not reported its contexts yet, as after a restart of the relay, the command is written, and the client
   * decides.
   */
  #refuseDispatch(command: Command, { places }: Binding): ContextRefusal | null {
    const { contextId } = command;
    if (contextId === undefined) return null;
    if (places !== true) return 'context_unsupported';
    return this.tx.context(command, contextId).kind === 'gone' ? 'context_gone' : null;
  }

  /** Records an acknowledgement or a progress report of the bound instance. */
  report(key: CommandKey, reported: Report): ReportResult {
    const entry = this.tx.find(key);
    if (!entry) return { kind: 'ignored', command: null };
    const { command } = entry;
    const { instanceId, kind, kept } = reported;
    if (isTerminal(command) || command.boundInstanceId !== instanceId) return { kind: 'ignored', command };
    if (command.stage === 'dispatched') {
      const acknowledgedAt = nextTime(command, this.tx.now);
      this.#move(entry, { stage: 'acknowledged', lastProvenStage: 'acknowledged', acknowledgedAt });
      this.tx.reply(entry);
    } else if (kind === 'ack') return { kind: 'ignored', command };
    if (kind === 'progress' && kept) this.#progressRow(entry, { instanceId, kept });
    return { kind: 'recorded', command: entry.command };
  }

  #progressRow(entry: E, row: Pick<CommandMessage, 'instanceId' | 'kept'>): void {
    const { progress, command } = entry;
    if (progress && this.tx.now - progress.at < PROGRESS_ROW_MS) return;
    const rows = (progress?.rows ?? 0) + 1;
    this.tx.noteProgress(entry, { rows, at: this.tx.now });
    this.tx.retain(entry, { ...row, id: `${command.commandId}:progress:${rows}`, kind: 'progress' });
  }

  /** Replaces a command's record by one with these changes and the next version. */
  #move(entry: E, change: Partial<Command>): Command {
    const command = changed(entry.command, change);
    this.tx.move(entry, command);
    return command;
  }

  // Ends that clients report.

  /**
   * Handles an end that a client reported. The first end from the bound instance is recorded. Every other report is
   * counted, or kept as evidence.
   */
  finish(key: CommandKey, end: End): FinishResult {
    const entry = this.tx.find(key);
    if (!entry) return { kind: 'unknown' };
    const before = entry.command;
    const { sightings } = before;
    const messageId = endMessageId(before.commandId, end);
    const seen = sightings.length === 0 ? undefined : sightings.find((sighting) => sighting.messageId === messageId);
    // An end without room for a sighting counts as a duplicate, because nothing would recognise it later.
    this.tx.countEnd(!seen && sightings.length < SIGHTINGS_PER_COMMAND);
    const at = nextTime(before, this.tx.now);
    if (seen) return { kind: 'duplicate', command: this.#move(entry, { sightings: seeAgain(before, seen, at) }) };
    if (isTerminal(before)) return { kind: 'late', command: this.#keepLate(entry, { end, messageId }) };
    const { instanceId, kept, error } = end;
    if (before.boundInstanceId !== instanceId)
      return { kind: 'fenced', command: this.#keepLate(entry, { end, messageId }) };
    this.tx.retain(entry, { id: messageId, kind: ROW_KIND[end.kind], instanceId, kept, error });
    const recorded: EndOfRecord = {
      outcome: OUTCOME[end.kind],
      execution: end.refused ? 'refused_by_client' : 'reported_by_client',
      error,
      reason: error?.code ?? null,
      sightings: see(before, messageId, at),
    };
    return { kind: 'finished', command: this.#conclude(entry, recorded, end.payload) };
  }

  /**
   * Keeps an end as evidence that came too late, or from another instance. The record describes only the first such
   * end. History gets a row for each such end, until the record has SIGHTINGS_PER_COMMAND sightings.
   */
  #keepLate(entry: E, { end, messageId }: LateEnd): Command {
    const { command } = entry;
    const { instanceId, kind, kept, error } = end;
    if (command.sightings.length < SIGHTINGS_PER_COMMAND)
      this.tx.retain(entry, { id: `${messageId}:late`, kind: 'late_result', instanceId, kept, error });
    const digest = this.tx.sha256(`${kind}\n${end.payload ?? ''}\n${error?.code ?? ''}`);
    const at = nextTime(command, this.tx.now);
    return this.#move(entry, {
      lateResults: command.lateResults + 1,
      firstLate: command.firstLate ?? { at, instanceId, kind, digest },
      sightings: see(command, messageId, at),
    });
  }

  /** Ends a command. Commands become terminal only here. */
  #conclude(entry: E, end: EndOfRecord, result: JsonText | null = null): Command {
    const before = entry.command;
    const command: Command = {
      ...before,
      version: before.version + 1,
      stage: 'terminal',
      terminalAt: nextTime(before, this.tx.now),
      outcome: end.outcome,
      execution: end.execution,
      error: end.error,
      reason: end.reason,
      cancelRequestedAt: end.cancelRequestedAt ?? before.cancelRequestedAt,
      sightings: end.sightings ?? before.sightings,
    };
    this.tx.end(entry, command, result);
    return command;
  }

  // Ends without a report, and cancels.

  /** Ends a command without its client's report, or records a requested cancel or what happened to its answer. */
  settle(key: CommandKey, settlement: Settlement): SettleResult {
    const entry = this.tx.find(key);
    if (!entry) return { kind: 'unknown' };
    const { command } = entry;
    if (isOfAnswer(settlement)) {
      const after = settleAnswer(command, settlement, this.tx.now);
      if (after !== command) this.tx.move(entry, after);
      return { kind: 'unchanged', command: after };
    }
    if (isTerminal(command)) return { kind: 'unchanged', command };
    if (settlement.kind === 'cancel') return this.#cancel(entry, settlement);
    const code = this.#codeOf(entry, settlement);
    return code ? { kind: 'settled', command: this.#endUnreported(entry, code) } : { kind: 'unchanged', command };
  }

  #codeOf(entry: E, settlement: Exclude<Settlement, { kind: 'cancel' } | OfAnswer>): Code | null {
    const { command } = entry;
    if (settlement.kind === 'expire') return this.#dueCode(command);
    if (settlement.kind === 'refuse') return wasDispatched(command) ? null : settlement.code;
    if (settlement.kind === 'unwritten') return this.#isDispatchedBy(entry, settlement) ? 'paused' : null;
    return giveUpCode(command, settlement);
  }

  /** Whether this attempt dispatched the command on the bound link. If attempts are not stored, any attempt did. */
  #isDispatchedBy({ command, markedBy }: E, made: Extract<Settlement, { kind: 'unwritten' }>): boolean {
    const bound = this.tx.client(command).binding;
    if (command.stage !== 'dispatched' || !bound || !isSameLink(bound, made)) return false;
    return markedBy === null || markedBy === nameOf(made);
  }

  /**
   * Ends a command without a report: as `expired` if it was certainly not written to the client, as `failed` if the
   * client reported that it never received it, and as `outcome_unknown` if it was dispatched or the store lost data.
   */
  #endUnreported(entry: E, code: Code): Command {
    const error = { code, message: END_MESSAGES[code] ?? code };
    const before = entry.command;
    const { commandId, boundInstanceId: instanceId } = before;
    this.tx.retain(entry, { id: `${commandId}:end`, kind: 'error', instanceId, error });
    const command = this.#conclude(entry, { ...proofOf(before, code), error, reason: code });
    if (wasDispatched(command) && command.nodeId !== null)
      this.tx.post(command.nodeId, { kind: 'ended', key: keyOf(command) });
    return command;
  }

  #cancel(entry: E, { reason, by }: Extract<Settlement, { kind: 'cancel' }>): SettleResult {
    const before = entry.command;
    const isFirst = before.cancelRequestedAt === null;
    if (isFirst) {
      const error = reason === null ? null : { code: 'cancelled', message: reason };
      this.tx.retain(entry, { kind: 'cancel', instanceId: before.boundInstanceId, error });
    }
    const cancelRequestedAt = before.cancelRequestedAt ?? nextTime(before, this.tx.now);
    if (!wasDispatched(before)) {
      const command = this.#conclude(entry, {
        outcome: 'cancelled',
        execution: 'not_written',
        error: before.error,
        reason: `cancelled by ${by}`,
        cancelRequestedAt,
      });
      return { kind: 'settled', command };
    }
    const command = isFirst ? this.#move(entry, { cancelRequestedAt, reason: `cancel requested by ${by}` }) : before;
    if (command.nodeId !== null) this.tx.post(command.nodeId, { kind: 'cancel', key: keyOf(command), reason });
    return { kind: 'requested', command };
  }

  #dueCode(command: Command): Code | null {
    if (wasDispatched(command)) return this.tx.isOver(command.deadline) ? 'response_timeout' : null;
    if (command.queuedAt === null) return this.tx.isOver(command.connectDeadline) ? 'connect_timeout' : null;
    return this.tx.isOver(command.deadline) ? 'queue_timeout' : null;
  }

  // Links that come up and go down.

  /**
   * Moves a client's waiting commands, or a part of them: queues them when the client's link opens, and parks them when
   * it closes. With the last part, divides the running commands into those of the connected instance and those of an
   * earlier one. Among links that open and close at the same time the highest epoch wins.
   */
  rebind(key: ClientKey, move: Move): RebindResult {
    const { binding: reported, link } = move;
    const queue = this.tx.moving(key, move);
    const unfinished: Command[] = [];
    const orphaned: Command[] = [];
    const again: MarkedDispatch[] = [];
    const ended: Command[] = [];
    if (!mayMove(queue.binding, move)) return { requeued: 0, unfinished, orphaned };
    if (link === 'down') {
      for (const entry of queue.waiting) this.#park(entry);
      if (queue.isLast && queue.binding) this.tx.bind(key, null);
      return { requeued: 0, unfinished, orphaned };
    }
    this.tx.bind(key, reported);
    let requeued = 0;
    for (const entry of [...queue.waiting]) {
      const queuedBefore = entry.command.queuedAt !== null;
      if (this.#queue(entry, reported) && queuedBefore) requeued++;
    }
    for (const entry of queue.arrived) this.tx.offer(entry, reported.nodeId);
    for (const entry of queue.running) {
      if (entry.command.boundInstanceId !== reported.instanceId) orphaned.push(entry.command);
      else if (!isLost(entry, move)) unfinished.push(this.#reattach(entry, move));
      else {
        const marked = this.#writeAgain(entry, reported);
        if (marked) again.push(marked);
        else ended.push(entry.command);
      }
    }
    return { requeued, unfinished, orphaned, ...(move.received && { unreceived: { again, ended } }) };
  }

  /**
   * Records that a command which never arrived will be written to the client's next link. Ends the command instead, and
   * returns null, if its params are no longer stored, if it is due or paused, or if someone requested a cancel.
   */
  #writeAgain(entry: E, { nodeId }: Binding): MarkedDispatch | null {
    const { command: before } = entry;
    const params = this.tx.keptParams(entry);
    const isStopped = before.cancelRequestedAt !== null || this.tx.pauseOf(before) !== null;
    if (params === null || isStopped || this.tx.isOver(before.deadline)) {
      this.#endUnreported(entry, 'not_received');
      return null;
    }
    const recoveredFromNodeId = recoveredFrom(before, before.nodeId, nodeId);
    const command = this.#move(entry, { nodeId, recoveredFromNodeId, attempts: before.attempts + 1 });
    return { kind: 'dispatch', command, params, remainingMs: command.deadline - this.tx.now };
  }

  /**
   * Queues a command on the client's link. Returns false if the command names another instance: it ends if it was
   * queued before, and otherwise keeps waiting. A command with a context of another instance ends, because the context
   * never returns.
   */
  #queue(entry: E, { instanceId, nodeId }: Binding): boolean {
    const { command } = entry;
    const { namedInstanceId, queuedAt, contextId, expectedInstanceId } = command;
    if (contextId !== undefined && expectedInstanceId !== instanceId) {
      this.#endUnreported(entry, 'context_gone');
      return false;
    }
    if (namedInstanceId !== null && namedInstanceId !== instanceId) {
      if (queuedAt !== null) this.#endUnreported(entry, 'instance_replaced');
      return false;
    }
    const change = {
      stage: 'queued',
      lastProvenStage: 'queued',
      expectedInstanceId: instanceId,
      nodeId,
      recoveredFromNodeId: recoveredFrom(command, entry.queuedOn, nodeId),
      queuedAt: queuedAt ?? nextTime(command, this.tx.now),
    } as const;
    this.tx.queue(entry, changed(command, change));
    this.tx.offer(entry, nodeId);
    return true;
  }

  #reattach(entry: E, { binding: { nodeId }, received }: Move): Command {
    const { command } = entry;
    if (received) this.tx.arrived(entry);
    return this.#move(entry, { nodeId, recoveredFromNodeId: recoveredFrom(command, command.nodeId, nodeId) });
  }

  /** Parks a queued command. It was queued within its connect budget, so from now on only its deadline counts. */
  #park(entry: E): void {
    if (entry.command.stage === 'queued') this.#move(entry, { stage: 'admitted', nodeId: null });
  }

  // Waits for existing commands.

  /** Registers a wait. Reading the record and registering are one act, so no end is missed in between. */
  attach(key: CommandKey, request: NewWaiter): AttachResult {
    const entry = this.tx.find(key);
    if (!entry) {
      const mark = this.tx.markOf(key, null);
      return mark === null || mark === 'conflict' ? { kind: 'unknown' } : { kind: 'ended', mark };
    }
    const { command } = entry;
    if (satisfied(request.waitFor, command)) return { kind: 'satisfied', command, result: this.tx.result(entry) };
    if (!this.tx.canWait(entry, request, WAITERS_PER_COMMAND)) return { kind: 'full' };
    this.tx.wait(entry, request);
    return { kind: 'waiting', waiter: waiterOf(command, request, this.tx.now), command };
  }
}

/**
 * Returns the name under which a dispatch attempt is stored; null if the attempt has no name. The name is unique for
 * the client, because attempts are unique for a link, and epochs are unique for a client.
 */
export function attemptOf({ binding: { epoch }, attempt }: Attempt): string | null {
  return attempt === undefined ? null : nameOf({ epoch, attempt });
}

function nameOf({ epoch, attempt }: { readonly epoch: number; readonly attempt: string }): string {
  return `${epoch}:${attempt}`;
}

/** Whether this attempt recorded the dispatch of the command, and the client has not reported on the command yet. */
function isMarkedBy({ command, markedBy }: HeldCommand, made: Attempt): boolean {
  return command.stage === 'dispatched' && markedBy !== null && markedBy === attemptOf(made);
}

/**
 * Whether the dispatch of a new command may be recorded together with its admission: the client is bound to the link of
 * the claim, and no other command waits, so that commands are dispatched in the order of admission.
 */
function mayMark({ binding, waiting }: ClientView, { claim, contextId = null }: AdmitRequest): boolean {
  if (!claim || binding === null || waiting.size > 0 || !isSameLink(binding, claim.binding)) return false;
  return contextId === null || claim.binding.places === true;
}

/**
 * Whether a move concerns a client that is bound to `bound`: an opening link that is not older, or any other move of
 * the bound link. After a `down` move has begun, `bound` is null, and the move goes on until a link opens.
 */
function mayMove(bound: Binding | null, { binding: { epoch }, link, begun = false }: Move): boolean {
  if (bound === null) return begun ? link === 'down' : link === 'up';
  return link === 'up' && !begun ? epoch >= bound.epoch : epoch === bound.epoch;
}

/**
 * Whether a dispatched command never arrived: the client did not list it as received, and has not reported on it. If it
 * was dispatched on the opening link itself, it is on its way, because this act repeats one whose answer was lost.
 */
function isLost({ command, markedBy }: HeldCommand, { received, binding }: Move): boolean {
  const { commandId, stage } = command;
  if (received === undefined || stage !== 'dispatched' || received.has(commandId)) return false;
  return markedBy === null || !markedBy.startsWith(`${binding.epoch}:`);
}

function isSameLink(bound: Binding, { nodeId, epoch }: Pick<Binding, 'nodeId' | 'epoch'>): boolean {
  return bound.nodeId === nodeId && bound.epoch === epoch;
}

function giveUpCode(command: Command, { code, instanceId }: Extract<Settlement, { kind: 'give_up' }>): Code | null {
  return instanceId === null || instanceId === (command.boundInstanceId ?? command.expectedInstanceId) ? code : null;
}
