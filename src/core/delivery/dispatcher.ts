import type { Deps } from '../deps.ts';
import { isAway } from '../errors.ts';
import { clientKeyText, commandKeyText, type ClientKey, type CommandKey } from '../ids.ts';
import { BACK_PRESSURE_BYTES, DISPATCHING, IN_FLIGHT } from '../limits.ts';
import { andThen, type Maybe } from '../maybe.ts';
import type { Binding, DispatchResult } from './commands.ts';
import type { ClientLink } from './link.ts';
import { ENTRY_BYTES, type Outbox } from './outbox.ts';

/** One link's queue and window on this node. */
export type Outlet = {
  readonly client: ClientKey;
  readonly binding: Binding;
  readonly link: ClientLink;
  /** Queued commands in the order admitted; a Map, so that a row seen twice stands once. */
  readonly queue: Map<string, CommandKey>;
  /** Dispatched, or being dispatched, and not ended. */
  readonly window: Set<string>;
  /** False until the client was welcomed. */
  open: boolean;
  /** True: nothing more is dispatched on it, and what is queued waits for the client's next link. */
  quiet: boolean;
  /** Dispatches that the store was asked for and has not answered: each may bring a frame that the socket does not know of yet. */
  asked: number;
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
  readonly #outlets = new Map<string, Outlet>();
  #attempts = 0;

  constructor(deps: Deps, outbox: Outbox) {
    this.#deps = deps;
    this.#outbox = outbox;
  }

  /** The link that was bound before on this node, if any, is no longer written to. */
  attach(client: ClientKey, binding: Binding, link: ClientLink): { outlet: Outlet; previous: Outlet | undefined } {
    const text = clientKeyText(client);
    const previous = this.#outlets.get(text);
    const own = { queue: new Map(), window: new Set<string>(), idle: [] };
    const outlet: Outlet = { client, binding, link, ...own, open: false, quiet: false, asked: 0, unanswered: 0 };
    this.#outlets.set(text, outlet);
    return { outlet, previous };
  }

  detach(outlet: Outlet): void {
    const text = clientKeyText(outlet.client);
    if (this.#outlets.get(text) === outlet) this.#outlets.delete(text);
    for (const resolve of outlet.idle.splice(0)) resolve();
  }

  find(client: ClientKey): Outlet | undefined {
    return this.#outlets.get(clientKeyText(client));
  }

  outlets(): Iterable<Outlet> {
    return this.#outlets.values();
  }

  enqueue(key: CommandKey): void {
    const outlet = this.find(key);
    if (!outlet) return;
    outlet.queue.set(commandKeyText(key), key);
    this.pump(outlet);
  }

  /** The command ended: its place in the window is free. */
  free(key: CommandKey): void {
    const outlet = this.find(key);
    if (!outlet) return;
    outlet.window.delete(commandKeyText(key));
    this.pump(outlet);
    settleIdle(outlet);
  }

  pump(outlet: Outlet): void {
    if (!outlet.open || outlet.quiet || outlet.unanswered > 0 || outlet.queue.size === 0) return;
    for (const [text, key] of outlet.queue) {
      if (outlet.window.size >= IN_FLIGHT || outlet.asked >= DISPATCHING) return;
      if (outlet.link.backlog() >= BACK_PRESSURE_BYTES) return;
      outlet.queue.delete(text);
      outlet.window.add(text);
      this.#dispatch(outlet, text, key);
    }
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

  #dispatch(outlet: Outlet, text: string, key: CommandKey): void {
    const { commands } = this.#deps.backend;
    const attempt = String(++this.#attempts);
    const ask = () => commands.dispatch(key, outlet.binding, attempt);
    const failed = (error: unknown): void => {
      if (isAway(error)) this.#insist(outlet, text, ask);
      else this.#lost(outlet, text, error);
    };
    try {
      const pending = andThen(ask(), (result) => this.#answered(outlet, text, result));
      if (pending instanceof Promise) this.#follow(outlet, pending.catch(failed));
    } catch (error) {
      failed(error);
    }
  }

  #follow(outlet: Outlet, answer: Promise<void>): void {
    outlet.asked++;
    void answer.finally(() => {
      outlet.asked--;
      this.pump(outlet);
    });
  }

  /** Whether the mark was set is not known, so nothing was written: the same attempt is asked for until the store answers. */
  #insist(outlet: Outlet, text: string, ask: () => Maybe<DispatchResult>): void {
    const current = () => outlet.open && this.find(outlet.client) === outlet;
    const run = async (): Promise<DispatchResult> => (current() ? ask() : { kind: 'skip' });
    outlet.unanswered++;
    this.#outbox
      .take({ lane: clientKeyText(outlet.client), bytes: ENTRY_BYTES, run })
      .then((result) => this.#answered(outlet, text, current() ? result : { kind: 'skip' }))
      .catch((error: unknown) => this.#lost(outlet, text, error))
      .finally(() => {
        outlet.unanswered--;
        this.pump(outlet);
      });
  }

  #answered(outlet: Outlet, text: string, result: DispatchResult): void {
    if (result.kind === 'skip') {
      outlet.window.delete(text);
      return settleIdle(outlet);
    }
    const { command, params, remainingMs } = result;
    const { userId, clientId, commandId, cancelRequestedAt } = command;
    this.#deps.metrics.count('commands_dispatched');
    this.#deps.backend.bus.publish(`command:${text}`, { key: { userId, clientId, commandId }, progress: null });
    outlet.link.sendCommand(command, params, remainingMs);
    // Asked for between the mark and its answer: what was sent to the client then was of a command that it did not know.
    if (cancelRequestedAt !== null) outlet.link.sendCancel(commandId, null);
  }

  /** Nothing is written: reconciliation ends the command by its deadline. */
  #lost(outlet: Outlet, text: string, error: unknown): void {
    this.#deps.log.error({ err: error, command: text }, 'dispatch failed');
    outlet.window.delete(text);
    settleIdle(outlet);
  }
}

/** Whether it has commands to see to the end of: those in flight, and, unless it is quiet, those queued. */
export function isBusy({ quiet, queue, window }: Outlet): boolean {
  return window.size > 0 || (!quiet && queue.size > 0);
}

function settleIdle(outlet: Outlet): void {
  const { idle } = outlet;
  if (idle.length > 0 && !isBusy(outlet)) for (const resolve of idle.splice(0)) resolve();
}
