import { ByClient } from '../by-client.ts';
import type { Deps } from '../deps.ts';
import { isAway } from '../errors.ts';
import { clientKeyText, commandKeyText, type ClientKey, type CommandKey } from '../ids.ts';
import { LazyMap, LazySet } from '../lazy.ts';
import { BACK_PRESSURE_BYTES, IN_FLIGHT } from '../limits.ts';
import type { Maybe } from '../maybe.ts';
import type { Binding, DispatchResult } from './commands.ts';
import type { ClientLink } from './link.ts';
import { ENTRY_BYTES, type Outbox } from './outbox.ts';

/** A dispatch that its link has not been told of yet. */
type Held = {
  readonly key: CommandKey;
  readonly result: Extract<DispatchResult, { kind: 'dispatch' }>;
  readonly at: number;
  /** Asked for meanwhile. */
  cancel: { readonly reason: string | null } | null;
};

/** One link's queue and window on this node. */
export type Outlet = {
  readonly client: ClientKey;
  readonly binding: Binding;
  readonly link: ClientLink;
  /** Queued commands in the order admitted, by their ids; a Map, so that a row seen twice stands once. */
  readonly queue: LazyMap<string, CommandKey>;
  /** Ids of those dispatched, or being dispatched, and not ended. */
  readonly window: LazySet<string>;
  /** False until the client was welcomed. */
  open: boolean;
  /** True: nothing more is dispatched on it, and what is queued waits for the client's next link. */
  quiet: boolean;
  /** Dispatched, and not written yet: the socket was behind when the store answered. In the order dispatched; made with the first one. */
  held: Map<string, Held> | null;
  /** Dispatches that the store has not answered yet for being away: until it has, none is begun, so that the order holds. */
  unanswered: number;
  /** Who waits until it has nothing left to do. */
  readonly idle: (() => void)[];
};

/**
 * Writes queued commands to the links of this node: at most IN_FLIGHT unended per link, none while the socket is behind, in the order
 * admitted. A socket write begins only after the dispatch is on record.
 */
export class Dispatcher {
  readonly #deps: Deps;
  readonly #outbox: Outbox;
  readonly #outlets = new ByClient<Outlet>();
  #attempts = 0;

  constructor(deps: Deps, outbox: Outbox) {
    this.#deps = deps;
    this.#outbox = outbox;
  }

  /** The link that was bound before on this node, if any, is no longer written to. */
  attach(client: ClientKey, binding: Binding, link: ClientLink): { outlet: Outlet; previous: Outlet | undefined } {
    const previous = this.#outlets.get(client);
    const own = { queue: new LazyMap<string, CommandKey>(), window: new LazySet<string>(), idle: [] };
    const outlet: Outlet = { client, binding, link, ...own, held: null, open: false, quiet: false, unanswered: 0 };
    this.#outlets.set(client, outlet);
    return { outlet, previous };
  }

  detach(outlet: Outlet): void {
    if (this.find(outlet.client) === outlet) this.#outlets.delete(outlet.client);
    outlet.held = null;
    for (const resolve of outlet.idle.splice(0)) resolve();
  }

  find(client: ClientKey): Outlet | undefined {
    return this.#outlets.get(client);
  }

  outlets(): Iterable<Outlet> {
    return this.#outlets.values();
  }

  enqueue(key: CommandKey): void {
    const outlet = this.find(key);
    // A row may come twice; what is being dispatched, or was, is not to be looked at again.
    if (!outlet || outlet.window.has(key.commandId)) return;
    outlet.queue.set(key.commandId, key);
    this.pump(outlet);
  }

  /** The command ended: its place in the window is free. */
  free(key: CommandKey): void {
    const outlet = this.find(key);
    if (!outlet) return;
    outlet.window.delete(key.commandId);
    outlet.held?.delete(key.commandId);
    this.pump(outlet);
    settleIdle(outlet);
  }

  pump(outlet: Outlet): void {
    if (!outlet.open) return;
    if (outlet.held) this.#writeHeld(outlet, outlet.held);
    if (outlet.quiet || outlet.unanswered > 0 || outlet.queue.size === 0) return;
    for (const [commandId, key] of outlet.queue) {
      if (outlet.window.size >= IN_FLIGHT || isHolding(outlet)) return;
      if (outlet.link.backlog() >= BACK_PRESSURE_BYTES) return;
      outlet.queue.delete(commandId);
      outlet.window.add(commandId);
      this.#dispatch(outlet, key);
    }
  }

  /** Tells the client to stop a command: never before it was told of the command itself. */
  cancel(key: CommandKey, reason: string | null): void {
    const outlet = this.find(key);
    const held = outlet?.held?.get(key.commandId);
    if (held) held.cancel = { reason };
    else outlet?.link.sendCancel(key.commandId, reason);
  }

  /** Links of clients. */
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

  /** Resolves once the link has nothing left to do (a quiet one: nothing in flight), or is not this node's any more. */
  idle(outlet: Outlet): Promise<void> {
    return new Promise((resolve) => {
      outlet.idle.push(resolve);
      if (this.find(outlet.client) === outlet) settleIdle(outlet);
      else outlet.idle.splice(0).forEach((wake) => wake());
    });
  }

  #dispatch(outlet: Outlet, key: CommandKey): void {
    const { commands } = this.#deps.backend;
    const attempt = String(++this.#attempts);
    const ask = () => commands.dispatch(key, outlet.binding, attempt);
    const failed = (error: unknown): void => {
      if (isAway(error)) this.#insist(outlet, key, ask);
      else this.#lost(outlet, key, error);
    };
    try {
      const answer = ask();
      // In this tick nothing came between the look at the socket and the mark.
      if (!(answer instanceof Promise)) return this.#answered(outlet, key, answer);
      void answer
        .then((result) => this.#arrived(outlet, key, result))
        .catch(failed)
        .finally(() => this.pump(outlet));
    } catch (error) {
      failed(error);
    }
  }

  /** Whether the mark was set is not known, so nothing was written: the same attempt is asked for until the store answers. */
  #insist(outlet: Outlet, key: CommandKey, ask: () => Maybe<DispatchResult>): void {
    const current = () => outlet.open && this.find(outlet.client) === outlet;
    const run = async (): Promise<DispatchResult> => (current() ? ask() : { kind: 'skip' });
    outlet.unanswered++;
    this.#outbox
      .take({ lane: clientKeyText(outlet.client), bytes: ENTRY_BYTES, run })
      .then((result) => this.#arrived(outlet, key, current() ? result : { kind: 'skip' }))
      .catch((error: unknown) => this.#lost(outlet, key, error))
      .finally(() => {
        outlet.unanswered--;
        this.pump(outlet);
      });
  }

  /** Many may have been asked for before the socket was behind: what does not fit is held, at most a window of it. */
  #arrived(outlet: Outlet, key: CommandKey, result: DispatchResult): void {
    // Ended meanwhile: nobody waits for it any more.
    const answer: DispatchResult = outlet.window.has(key.commandId) ? result : { kind: 'skip' };
    const behind = isHolding(outlet) || outlet.link.backlog() >= BACK_PRESSURE_BYTES;
    if (answer.kind === 'skip' || !behind || this.find(outlet.client) !== outlet)
      return this.#answered(outlet, key, answer);
    outlet.held ??= new Map();
    outlet.held.set(key.commandId, { key, result: answer, at: this.#deps.clock.now(), cancel: null });
  }

  #writeHeld(outlet: Outlet, held: Map<string, Held>): void {
    const { link } = outlet;
    for (const [commandId, { key, result, at, cancel }] of held) {
      if (link.backlog() >= BACK_PRESSURE_BYTES) return;
      held.delete(commandId);
      const waited = Math.max(0, this.#deps.clock.now() - at);
      this.#answered(outlet, key, { ...result, remainingMs: result.remainingMs - waited });
      if (cancel) link.sendCancel(commandId, cancel.reason);
    }
  }

  #answered(outlet: Outlet, key: CommandKey, result: DispatchResult): void {
    if (result.kind === 'skip') {
      outlet.window.delete(key.commandId);
      return settleIdle(outlet);
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
    // Asked for between the mark and its answer: what was sent to the client then was of a command that it did not know.
    if (cancelRequestedAt !== null) outlet.link.sendCancel(commandId, null);
  }

  /** Nothing is written: reconciliation ends the command by its deadline. */
  #lost(outlet: Outlet, key: CommandKey, error: unknown): void {
    this.#deps.log.error({ err: error, command: commandKeyText(key) }, 'dispatch failed');
    outlet.window.delete(key.commandId);
    settleIdle(outlet);
  }
}

/** Whether it has commands to see to the end of: those in flight, and, unless it is quiet, those queued. */
export function isBusy({ quiet, queue, window }: Outlet): boolean {
  return window.size > 0 || (!quiet && queue.size > 0);
}

function isHolding({ held }: Outlet): boolean {
  return held !== null && held.size > 0;
}

function settleIdle(outlet: Outlet): void {
  const { idle } = outlet;
  if (idle.length > 0 && !isBusy(outlet)) for (const resolve of idle.splice(0)) resolve();
}
