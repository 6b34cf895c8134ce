/** Dispatches queued commands on the client links of this node. */
import type { Deps } from '../deps.ts';
import { isStoreUnavailable } from '../errors.ts';
import { clientKeyText, commandKeyText, keyOf, type ClientKey, type CommandKey } from '../ids.ts';
import { BACK_PRESSURE_BYTES } from '../limits.ts';
import { ENTRY_BYTES, type StoreRetryQueue } from './retry-queue.ts';
import { beginDispatchSpan, endDispatchSpan, endLinkSpans } from './dispatch-spans.ts';
import { publishHint } from './command-hints.ts';
import type { CommandRecorder } from './command-recorder.ts';
import type { PausedCall } from '../pauses/pause.ts';
import type { Command } from './command.ts';
import {
  LinkQueue,
  LinkQueues,
  endWaits,
  isAnswered,
  isBusy,
  isHolding,
  mayDispatch,
  waitFor,
  wakeWaits,
  type DispatchAttempt,
  type Claim,
  type HeldDispatch,
} from './link-queue.ts';
import type { ClientLink } from './client-link.ts';
import type { Binding, DispatchResult } from './command-store.ts';

/**
 * Writes queued commands to the links of this node, in the order of admission. A link has at most IN_FLIGHT unended
 * commands, and gets none while its socket has back-pressure. A command is written only after its dispatch is recorded.
 */
export class Dispatcher {
  readonly #deps: Deps;
  readonly #retryQueue: StoreRetryQueue;
  readonly #recorder: Pick<CommandRecorder, 'settle'>;
  readonly #linkQueues = new LinkQueues();
  #attempts = 0;
  /** How many pauses have begun since this node started. An attempt remembers the number at which it was made. */
  #permits = 0;

  constructor(deps: Deps, retryQueue: StoreRetryQueue, recorder: Pick<CommandRecorder, 'settle'>) {
    this.#deps = deps;
    this.#retryQueue = retryQueue;
    this.#recorder = recorder;
  }

  /**
   * Binds the client to this link. Returns as `previous` the link on this node that it replaces; nothing more is
   * written to that one. A leaving link of another instance is not replaced.
   */
  attach(
    client: ClientKey,
    binding: Binding,
    link: ClientLink,
  ): { linkQueue: LinkQueue; previous: LinkQueue | undefined } {
    const linkQueue = new LinkQueue(client, binding, link);
    return { linkQueue, previous: this.#linkQueues.bind(linkQueue) };
  }

  detach(linkQueue: LinkQueue): void {
    this.#linkQueues.remove(linkQueue);
    linkQueue.held = null;
    endLinkSpans(this.#deps, linkQueue);
    endWaits(linkQueue);
  }

  /**
   * Handles a client that leaves: its link is no longer bound, and no further dispatch begins on it. Resolves when the
   * store has answered all dispatches that were begun.
   */
  async retire(linkQueue: LinkQueue): Promise<void> {
    linkQueue.quiet = true;
    linkQueue.queue.clear();
    this.#linkQueues.retire(linkQueue)?.link.close('replaced', null);
    if (this.has(linkQueue)) await waitFor(linkQueue, isAnswered);
  }

  /** Resolves when all dispatches that were begun on the link are written or given up, or when the link is gone. */
  async written(linkQueue: LinkQueue): Promise<void> {
    if (this.has(linkQueue)) await waitFor(linkQueue, (now) => isAnswered(now) && !isHolding(now));
  }

  /** Whether this command still runs on a link whose client is leaving. */
  isLeaving(key: CommandKey): boolean {
    return this.#linkQueues.leaving(key).some(({ window }) => window.has(key.commandId));
  }

  /** Returns the bound link of this client. */
  find(client: ClientKey): LinkQueue | undefined {
    return this.#linkQueues.find(client);
  }

  /** Returns all links of clients, bound and leaving. */
  linkQueues(): Iterable<LinkQueue> {
    return this.#linkQueues.values();
  }

  /** Whether the link is bound to its client, or is leaving and its socket is still open. */
  has(linkQueue: LinkQueue): boolean {
    return this.#linkQueues.has(linkQueue);
  }

  enqueue(key: CommandKey): void {
    const linkQueue = this.find(key);
    if (!linkQueue) return;
    // The store posts no mailbox row for a command whose admission also recorded the dispatch. So this command's claim
    // was not used.
    const claim = linkQueue.claims?.get(key.commandId);
    if (claim) this.settle(claim, { kind: 'skip' });
    // A mailbox row may arrive twice. A command that was dispatched, or is being dispatched, is not queued again.
    if (linkQueue.window.has(key.commandId)) return;
    // If no other command waits, the dispatch usually begins at once, without a place in the queue.
    if (linkQueue.queued === 0 && mayDispatch(linkQueue)) return this.#begin(linkQueue, key);
    linkQueue.queue.set(key.commandId, key);
    this.pump(linkQueue);
  }

  /**
   * Reserves room on the client's link for a command that is about to be admitted. Call `settle` after the admission.
   * Null if the link has no room, or is not on this node.
   */
  claim(key: CommandKey): Claim | null {
    const linkQueue = this.find(key);
    return linkQueue ? takeClaim(linkQueue, key, this.#ask()) : null;
  }

  /**
   * Writes the command if its admission recorded the dispatch, and frees the reserved room otherwise. `unanswered`: the
   * store did not answer the admission, so the store is asked to record the dispatch. Does nothing if the claim was
   * settled before.
   */
  settle(claim: Claim, answer: DispatchResult | 'unanswered'): void {
    if (!endClaim(claim)) return;
    const { linkQueue, key, asked } = claim;
    if (answer === 'unanswered') this.#retryDispatch(linkQueue, key, asked.attempt);
    else this.#writeOrHold(linkQueue, key, answer, asked);
    this.#dispatchAnswered(linkQueue);
  }

  /** Removes an ended command from its link's window. `command`: its record, if the caller has it. */
  free(key: CommandKey, command: Command | null = null): void {
    const linkQueue = this.find(key);
    if (linkQueue) this.#freeOn(linkQueue, key, command);
    for (const leaving of this.#linkQueues.leaving(key)) this.#freeOn(leaving, key, command);
  }

  pump(linkQueue: LinkQueue): void {
    if (!linkQueue.open) return;
    if (linkQueue.held) this.#writeHeld(linkQueue, linkQueue.held);
    if (linkQueue.quiet) wakeWaits(linkQueue);
    while (linkQueue.queued > 0 && mayDispatch(linkQueue)) {
      const [commandId, key] = linkQueue.queue.first() ?? [];
      if (commandId === undefined || key === undefined) return;
      linkQueue.queue.delete(commandId);
      this.#begin(linkQueue, key);
    }
  }

  #begin(linkQueue: LinkQueue, key: CommandKey): void {
    linkQueue.window.set(key.commandId, key);
    this.#dispatch(linkQueue, key);
  }

  /**
   * Asks the client to stop a command. If the command is held, the cancel is sent after the command. If the client was
   * not welcomed yet, the cancel is sent after the welcome.
   */
  cancel(key: CommandKey, reason: string | null): void {
    const linkQueue = this.#linkQueues.runningOn(key) ?? this.find(key);
    const held = linkQueue?.held?.get(key.commandId);
    if (held) held.cancel = { reason };
    else if (linkQueue?.open) linkQueue.link.sendCancel(key.commandId, reason);
    else if (linkQueue) (linkQueue.cancels ??= new Map()).set(key.commandId, reason);
  }

  /** The number of client links. */
  get links(): number {
    return this.#linkQueues.size;
  }

  /** The numbers of queued commands and of commands in flight on this node's links. */
  get load(): LinkQueues['load'] {
    return this.#linkQueues.load;
  }

  /** The number of links with queued commands. */
  get draining(): number {
    return [...this.#linkQueues.values()].filter(({ queued }) => queued > 0).length;
  }

  /**
   * Resolves when the link has no more commands to finish, or no longer belongs to this node. On a quiet link only the
   * commands in flight count.
   */
  async idle(linkQueue: LinkQueue): Promise<void> {
    if (this.has(linkQueue)) await waitFor(linkQueue, (now) => !isBusy(now));
  }

  #freeOn(linkQueue: LinkQueue, key: CommandKey, command: Command | null): void {
    const { commandId } = key;
    if (linkQueue.spans !== null) endDispatchSpan(this.#deps, linkQueue, key, command);
    linkQueue.window.delete(commandId);
    linkQueue.held?.delete(commandId);
    this.pump(linkQueue);
    wakeWaits(linkQueue);
  }

  /** Makes an attempt to dispatch: with a new name, or with the name of an attempt that is repeated. */
  #ask(attempt = String(++this.#attempts)): DispatchAttempt {
    return { attempt, permits: this.#permits, at: this.#deps.clock.monotonic() };
  }

  /**
   * Whether a command may still be written by the dispatch that this attempt recorded: no pause has begun since the
   * attempt was made, and the attempt is at most `permitMs` old. If the store is in this process (`permitMs` is
   * Infinity), always true: the store answers in the same turn of the event loop, before any later pause can be
   * answered.
   */
  #mayWrite({ permits, at }: DispatchAttempt): boolean {
    const { permitMs } = this.#deps.backend.pauses;
    return permitMs === Infinity || (permits === this.#permits && this.#deps.clock.monotonic() - at <= permitMs);
  }

  /**
   * Called when a pause begins, after the store has recorded it. Commands that were dispatched earlier and not written
   * yet must be dispatched again. If the store is in this process, the held commands that the pause covers are ended
   * instead. If a link holds a covered command that is to be written a second time because it never arrived, the link
   * is closed: its client connects again, and the store decides about the command.
   */
  renewPermits(covers: (call: PausedCall) => boolean): void {
    this.#permits++;
    const isLocal = this.#deps.backend.pauses.permitMs === Infinity;
    for (const linkQueue of this.#linkQueues.values()) {
      const { held, link } = linkQueue;
      const covered =
        held
          ?.values()
          .filter(({ result }) => covers(result.command))
          .toArray() ?? [];
      if (covered.some(({ again }) => again)) link.close('operator', null);
      if (!isLocal) continue;
      for (const { result, asked } of covered) if (asked) this.#endUnwritten(linkQueue, keyOf(result.command), asked);
    }
  }

  /** Ends a command that this attempt dispatched before a pause began, and that was not written. */
  #endUnwritten({ held, binding }: LinkQueue, key: CommandKey, { attempt }: DispatchAttempt): void {
    held?.delete(key.commandId);
    this.#recorder
      .settle(key, { kind: 'unwritten', nodeId: binding.nodeId, epoch: binding.epoch, attempt })
      .catch((error: unknown) =>
        this.#deps.log.warn({ err: error, command: commandKeyText(key) }, 'could not end a paused command'),
      );
  }

  #dispatch(linkQueue: LinkQueue, key: CommandKey): void {
    const { commands } = this.#deps.backend;
    const asked = this.#ask();
    const failed = (error: unknown): void => {
      if (isStoreUnavailable(error)) this.#retryDispatch(linkQueue, key, asked.attempt);
      else this.#dropDispatch(linkQueue, key, error);
    };
    try {
      const answer = commands.dispatch(key, linkQueue.binding, asked.attempt);
      // The answer came in the same tick, so the socket's backlog has not changed since it was checked.
      if (!(answer instanceof Promise)) return this.#write(linkQueue, key, answer, asked);
      linkQueue.pendingDispatches++;
      void answer
        .then((result) => this.#writeOrHold(linkQueue, key, result, asked))
        .catch(failed)
        .finally(() => this.#dispatchAnswered(linkQueue));
    } catch (error) {
      failed(error);
    }
  }

  /** Repeats an attempt to record a dispatch until the store answers. The command is not written before. */
  #retryDispatch(linkQueue: LinkQueue, key: CommandKey, attempt: string): void {
    const { commands } = this.#deps.backend;
    const current = () => linkQueue.open && this.has(linkQueue);
    let asked = this.#ask(attempt);
    const run = async (): Promise<DispatchResult> => {
      asked = this.#ask(attempt);
      return current() ? commands.dispatch(key, linkQueue.binding, attempt) : { kind: 'skip' };
    };
    linkQueue.pendingDispatches++;
    linkQueue.retriedDispatches++;
    this.#retryQueue
      .take({ lane: clientKeyText(linkQueue.client), bytes: ENTRY_BYTES, run })
      .then((result) => this.#writeOrHold(linkQueue, key, current() ? result : { kind: 'skip' }, asked))
      .catch((error: unknown) => this.#dropDispatch(linkQueue, key, error))
      .finally(() => {
        linkQueue.retriedDispatches--;
        this.#dispatchAnswered(linkQueue);
      });
  }

  #dispatchAnswered(linkQueue: LinkQueue): void {
    linkQueue.pendingDispatches--;
    this.pump(linkQueue);
    wakeWaits(linkQueue);
  }

  /**
   * Writes the command, or holds it while the socket has back-pressure. Many dispatches may be under way when the
   * back-pressure begins, but at most one window of commands.
   */
  #writeOrHold(linkQueue: LinkQueue, key: CommandKey, result: DispatchResult, asked: DispatchAttempt): void {
    // The command may have ended before the answer arrived. Then it is not written.
    const answer: DispatchResult = linkQueue.window.has(key.commandId) ? result : { kind: 'skip' };
    if (answer.kind === 'dispatch' && !this.#mayWrite(asked)) return this.#retryDispatch(linkQueue, key, asked.attempt);
    const behind = isHolding(linkQueue) || linkQueue.link.backlog() >= BACK_PRESSURE_BYTES;
    if (answer.kind !== 'dispatch' || !behind || !this.has(linkQueue))
      return this.#write(linkQueue, key, answer, asked);
    linkQueue.held ??= new Map();
    linkQueue.held.set(key.commandId, { result: answer, at: this.#deps.clock.now(), cancel: null, asked });
  }

  /** Writes the command, or removes it from the window of its link if it must not be written. */
  #write(linkQueue: LinkQueue, key: CommandKey, result: DispatchResult, asked: DispatchAttempt): void {
    if (result.kind === 'dispatch') {
      noteDispatched(this.#deps, result.command);
      return writeDispatch(this.#deps, linkQueue, result);
    }
    linkQueue.window.delete(key.commandId);
    wakeWaits(linkQueue);
    if (result.kind === 'paused') this.#endUnwritten(linkQueue, key, asked);
    if (result.kind !== 'refuse') return;
    this.#recorder
      .settle(key, result)
      .catch((error: unknown) =>
        this.#deps.log.warn(
          { err: error, command: commandKeyText(key) },
          'could not refuse a command for its context; it ends at its deadline',
        ),
      );
  }

  /** Writes the held commands until the socket has back-pressure again. */
  #writeHeld(linkQueue: LinkQueue, held: Map<string, HeldDispatch>): void {
    const { link } = linkQueue;
    for (const [commandId, { result, at, cancel, again, asked }] of held) {
      if (link.backlog() >= BACK_PRESSURE_BYTES) return;
      held.delete(commandId);
      if (asked && !this.#mayWrite(asked)) {
        this.#retryDispatch(linkQueue, keyOf(result.command), asked.attempt);
        continue;
      }
      const waited = Math.max(0, this.#deps.clock.now() - at);
      if (!again) noteDispatched(this.#deps, result.command);
      writeDispatch(this.#deps, linkQueue, { ...result, remainingMs: result.remainingMs - waited });
      if (cancel) link.sendCancel(commandId, cancel.reason);
    }
  }

  /** Gives up a dispatch that failed. The command is not written, and reconciliation ends it at its deadline. */
  #dropDispatch(linkQueue: LinkQueue, key: CommandKey, error: unknown): void {
    this.#deps.log.error({ err: error, command: commandKeyText(key) }, 'dispatch failed');
    linkQueue.window.delete(key.commandId);
    wakeWaits(linkQueue);
  }
}

// Reserves room in a link's window for commands that are not admitted yet, so that one act of the store can admit and
// dispatch a command.

/** Reserves room in the link's window. Null if the link has no room, or if other commands wait for it. */
function takeClaim(linkQueue: LinkQueue, key: CommandKey, asked: DispatchAttempt): Claim | null {
  const { queued, window, binding } = linkQueue;
  if (queued > 0 || window.has(key.commandId) || !mayDispatch(linkQueue)) return null;
  const claim = { linkQueue, key, binding, attempt: asked.attempt, asked };
  window.set(key.commandId, key);
  (linkQueue.claims ??= new Map()).set(key.commandId, claim);
  linkQueue.pendingDispatches++;
  return claim;
}

/** Ends the claim. The command stays in the window. Returns false if the claim had already ended. */
function endClaim({ linkQueue, key: { commandId } }: Claim): boolean {
  return linkQueue.claims?.delete(commandId) ?? false;
}

// Writes dispatched commands to the link of their client.

function writeDispatch(
  deps: Deps,
  linkQueue: LinkQueue,
  { command, params, remainingMs }: HeldDispatch['result'],
): void {
  const trace = beginDispatchSpan(deps, linkQueue, command);
  linkQueue.link.sendCommand(command, params, remainingMs, trace);
  // A cancel was requested after the store recorded the dispatch and before its answer arrived here. It could not be
  // sent before the command, so it is sent now.
  if (command.cancelRequestedAt !== null) linkQueue.link.sendCancel(command.commandId, null);
}

/**
 * Counts, measures and publishes the dispatch of a command. Call it once for each command, even if the command is
 * written to more than one link.
 */
function noteDispatched({ metrics, backend: { bus }, events }: Deps, command: Command): void {
  const { queuedAt, dispatchedAt } = command;
  metrics.count('commands_dispatched');
  if (queuedAt !== null && dispatchedAt !== null)
    metrics.observe('dispatch_seconds', dispatchedAt - queuedAt, undefined, command);
  events.emit('dispatched', command);
  publishHint(bus, command);
}
