import type { Deps } from '../deps.ts';
import { isStoreUnavailable } from '../errors.ts';
import { clientKeyText, commandKeyText, type ClientKey, type CommandKey } from '../ids.ts';
import { BACK_PRESSURE_BYTES, IN_FLIGHT } from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Binding, DispatchResult } from './commands.ts';
import type { ClientLink } from './link.ts';
import { ENTRY_BYTES, type StoreRetryQueue } from './store-retry-queue.ts';
import { createOutlet, isBusy, isAnswered, isHolding, LinkQueues, settleWaits, waitFor } from './link-queues.ts';
import type { Held, LinkQueue } from './link-queues.ts';

/**
 * Writes queued commands to the links of this node, in the order of admission: at most IN_FLIGHT unended commands per
 * link, and none while the socket has back-pressure. A socket write begins only after the dispatch is recorded.
 */
export class Dispatcher {
  readonly #deps: Deps;
  readonly #outbox: StoreRetryQueue;
  readonly #outlets = new LinkQueues();
  #attempts = 0;

  constructor(deps: Deps, outbox: StoreRetryQueue) {
    this.#deps = deps;
    this.#outbox = outbox;
  }

  /**
   * Binds the client to this link. `previous`: the link of this node that it replaces, to which nothing more is
   * written. A leaving link of another instance is not replaced.
   */
  attach(
    client: ClientKey,
    binding: Binding,
    link: ClientLink,
  ): { outlet: LinkQueue; previous: LinkQueue | undefined } {
    const outlet = createOutlet(client, binding, link);
    return { outlet, previous: this.#outlets.bind(outlet) };
  }

  detach(outlet: LinkQueue): void {
    this.#outlets.remove(outlet);
    outlet.held = null;
    for (const { wake } of outlet.waits.splice(0)) wake();
  }

  /**
   * The client leaves: no further dispatch begins on this link, and it is no longer the client's bound link. Resolves
   * once the store has answered each dispatch that was begun.
   */
  async retire(outlet: LinkQueue): Promise<void> {
    outlet.quiet = true;
    outlet.queue.clear();
    this.#outlets.retire(outlet)?.link.close('replaced', null);
    if (this.has(outlet)) await waitFor(outlet, isAnswered);
  }

  /** Resolves once each dispatch that was begun on the link is written or given up, or the link is gone. */
  async written(outlet: LinkQueue): Promise<void> {
    if (this.has(outlet)) await waitFor(outlet, (now) => isAnswered(now) && !isHolding(now));
  }

  /** Whether this command still runs on a link whose client is leaving. */
  isLeaving(key: CommandKey): boolean {
    return this.#outlets.leaving(key).some(({ window }) => window.has(key.commandId));
  }

  /** The bound link of this client. */
  find(client: ClientKey): LinkQueue | undefined {
    return this.#outlets.find(client);
  }

  /** All links of clients, bound and leaving. */
  outlets(): Iterable<LinkQueue> {
    return this.#outlets.values();
  }

  /** Whether the link is bound, or leaving with its socket still open. */
  has(outlet: LinkQueue): boolean {
    return this.#outlets.has(outlet);
  }

  enqueue(key: CommandKey): void {
    const outlet = this.find(key);
    // A row may arrive twice. A command that is being dispatched, or was dispatched, is not queued again.
    if (!outlet || outlet.window.has(key.commandId)) return;
    outlet.queue.set(key.commandId, key);
    this.pump(outlet);
  }

  /** Frees the place in the window of a command that ended. */
  free(key: CommandKey): void {
    const outlet = this.find(key);
    if (outlet) this.#freeOn(outlet, key);
    for (const leaving of this.#outlets.leaving(key)) this.#freeOn(leaving, key);
  }

  pump(outlet: LinkQueue): void {
    if (!outlet.open) return;
    if (outlet.held) this.#writeHeld(outlet, outlet.held);
    if (outlet.quiet) settleWaits(outlet);
    if (outlet.quiet || outlet.unanswered > 0 || outlet.queue.size === 0) return;
    for (const [commandId, key] of outlet.queue) {
      if (outlet.window.size >= IN_FLIGHT || isHolding(outlet)) return;
      if (outlet.link.backlog() >= BACK_PRESSURE_BYTES) return;
      outlet.queue.delete(commandId);
      outlet.window.add(commandId);
      this.#dispatch(outlet, key);
    }
  }

  /** Asks the client to stop a command. The cancel of a held command is sent after the command itself. */
  cancel(key: CommandKey, reason: string | null): void {
    const outlet = this.#outlets.runningOn(key) ?? this.find(key);
    const held = outlet?.held?.get(key.commandId);
    if (held) held.cancel = { reason };
    else outlet?.link.sendCancel(key.commandId, reason);
  }

  /** Number of client links. */
  get links(): number {
    return this.#outlets.size;
  }

  /** Commands queued or in flight. */
  get unfinished(): number {
    let sum = 0;
    for (const { window, queue } of this.#outlets.values()) sum += window.size + queue.size;
    return sum;
  }

  /** Links with commands queued. */
  get draining(): number {
    return Iterator.from(this.#outlets.values())
      .filter(({ queue }) => queue.size > 0)
      .toArray().length;
  }

  /**
   * Resolves once the link has nothing left to do (a quiet link: nothing in flight), or no longer belongs to this node.
   */
  async idle(outlet: LinkQueue): Promise<void> {
    if (this.has(outlet)) await waitFor(outlet, (now) => !isBusy(now));
  }

  #freeOn(outlet: LinkQueue, { commandId }: CommandKey): void {
    outlet.window.delete(commandId);
    outlet.held?.delete(commandId);
    this.pump(outlet);
    settleWaits(outlet);
  }

  #dispatch(outlet: LinkQueue, key: CommandKey): void {
    const { commands } = this.#deps.backend;
    const attempt = String(++this.#attempts);
    const ask = () => commands.dispatch(key, outlet.binding, attempt);
    const failed = (error: unknown): void => {
      if (isStoreUnavailable(error)) this.#insist(outlet, key, ask);
      else this.#lost(outlet, key, error);
    };
    try {
      const answer = ask();
      // The answer came in the same tick, so the socket's backlog cannot have changed since it was checked.
      if (!(answer instanceof Promise)) return this.#answered(outlet, key, answer);
      outlet.asked++;
      void answer
        .then((result) => this.#arrived(outlet, key, result))
        .catch(failed)
        .finally(() => this.#answerCame(outlet));
    } catch (error) {
      failed(error);
    }
  }

  /**
   * It is unknown whether the mark was set, so nothing was written. Repeats the same attempt until the store answers.
   */
  #insist(outlet: LinkQueue, key: CommandKey, ask: () => MaybePromise<DispatchResult>): void {
    const current = () => outlet.open && this.has(outlet);
    const run = async (): Promise<DispatchResult> => (current() ? ask() : { kind: 'skip' });
    outlet.asked++;
    outlet.unanswered++;
    this.#outbox
      .take({ lane: clientKeyText(outlet.client), bytes: ENTRY_BYTES, run })
      .then((result) => this.#arrived(outlet, key, current() ? result : { kind: 'skip' }))
      .catch((error: unknown) => this.#lost(outlet, key, error))
      .finally(() => {
        outlet.unanswered--;
        this.#answerCame(outlet);
      });
  }

  #answerCame(outlet: LinkQueue): void {
    outlet.asked--;
    this.pump(outlet);
    settleWaits(outlet);
  }

  /**
   * Many dispatches may have been requested before the socket had back-pressure. Those that do not fit are held, at
   * most a window of them.
   */
  #arrived(outlet: LinkQueue, key: CommandKey, result: DispatchResult): void {
    // The command ended before the answer arrived, so it is not written.
    const answer: DispatchResult = outlet.window.has(key.commandId) ? result : { kind: 'skip' };
    const behind = isHolding(outlet) || outlet.link.backlog() >= BACK_PRESSURE_BYTES;
    if (answer.kind === 'skip' || !behind || !this.has(outlet)) return this.#answered(outlet, key, answer);
    outlet.held ??= new Map();
    outlet.held.set(key.commandId, { key, result: answer, at: this.#deps.clock.now(), cancel: null });
  }

  #writeHeld(outlet: LinkQueue, held: Map<string, Held>): void {
    const { link } = outlet;
    for (const [commandId, { key, result, at, cancel }] of held) {
      if (link.backlog() >= BACK_PRESSURE_BYTES) return;
      held.delete(commandId);
      const waited = Math.max(0, this.#deps.clock.now() - at);
      this.#answered(outlet, key, { ...result, remainingMs: result.remainingMs - waited });
      if (cancel) link.sendCancel(commandId, cancel.reason);
    }
  }

  #answered(outlet: LinkQueue, key: CommandKey, result: DispatchResult): void {
    if (result.kind === 'skip') {
      outlet.window.delete(key.commandId);
      return settleWaits(outlet);
    }
    const { command, params, remainingMs } = result;
    const { metrics, backend } = this.#deps;
    const { userId, clientId, commandId, cancelRequestedAt } = command;
    metrics.count('commands_dispatched');
    if (backend.bus.hears('command')) {
      const hint = { key: { userId, clientId, commandId }, progress: null };
      backend.bus.publish(`command:${commandKeyText(key)}`, hint);
    }
    outlet.link.sendCommand(command, params, remainingMs);
    // The cancel was requested between the mark and its answer. A cancel that was sent then named a command that the
    // client did not know, so it is sent again.
    if (cancelRequestedAt !== null) outlet.link.sendCancel(commandId, null);
  }

  /** Nothing is written. Reconciliation ends the command at its deadline. */
  #lost(outlet: LinkQueue, key: CommandKey, error: unknown): void {
    this.#deps.log.error({ err: error, command: commandKeyText(key) }, 'dispatch failed');
    outlet.window.delete(key.commandId);
    settleWaits(outlet);
  }
}
