/** The queue of commands of each client link of this node, and its in-flight window. Writes nothing to sockets. */
import { ByClient, ChurnMap } from '../collections.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import { BACK_PRESSURE_BYTES, IN_FLIGHT, LEAVING_LINKS } from '../limits.ts';
import type { Span } from '../ports.ts';
import type { ClientLink } from './client-link.ts';
import type { Binding, CommandLoad, DispatchClaim, DispatchResult, MarkedDispatch } from './command-store.ts';

/** A recorded dispatch that is not yet written to its link. */
export type Held = {
  readonly result: Extract<DispatchResult, { kind: 'dispatch' }>;
  readonly at: number;
  /** A cancel that was requested while the dispatch was held. */
  cancel: { readonly reason: string | null } | null;
  /** Whether the command was written to an earlier link, on which it never arrived. */
  readonly again?: true;
  /** The attempt that dispatched it, and what allows to write it. Absent for `again`. */
  readonly asked?: Asked;
};

/**
 * An attempt to dispatch a command. What it allows is written soon and before the next pause, or asked for again.
 * `permits`: how many pauses had begun on this node when it was asked for; `at`: when that was, by the monotonic clock.
 */
export type Asked = { readonly attempt: string; readonly permits: number; readonly at: number };

/** The span of a command that is written. `progressed`: its first progress was noted. */
type OpenSpan = { readonly span: Span; progressed: boolean };

/** A reservation of room in a link's window for a command that is not admitted yet. It counts as a pending dispatch. */
export type Claim = DispatchClaim & {
  readonly linkQueue: LinkQueue;
  readonly key: CommandKey;
  readonly asked: Asked;
};

/** Code that waits for a change of a link's queue. `wake` is called as soon as `over` returns true. */
type LinkQueueWait = { readonly over: (linkQueue: LinkQueue) => boolean; readonly wake: () => void };

/**
 * The queue and the window of one link on this node. Queue and window are created at their first use, because each of
 * thousands of idle links has such an object.
 */
export class LinkQueue {
  readonly client: ClientKey;
  readonly binding: Binding;
  readonly link: ClientLink;
  /** The commands in the window whose admission is not answered yet, by id; created with the first one. */
  claims: Map<string, Claim> | null = null;
  /** Whether commands may be dispatched on the link. False until the client is welcomed. */
  open = false;
  /** Whether dispatching has ended for good on this link. Queued commands then wait for the client's next link. */
  quiet = false;
  /**
   * Commands that are dispatched but not written yet, because the socket had back-pressure when the store answered. In
   * the order of dispatch; created with the first one.
   */
  held: Map<string, Held> | null = null;
  /**
   * The cancels, with their reasons, that were requested before the client was welcomed: they are sent then. Created with
   * the first one.
   */
  cancels: Map<string, string | null> | null = null;
  /** The number of dispatches that the store has not answered yet. */
  pendingDispatches = 0;
  /**
   * The number of dispatches that are retried because the store was unavailable. No other dispatch begins until the
   * store has answered these, so that the order holds.
   */
  retriedDispatches = 0;
  /** The code that waits for a change of this queue; null while none does. */
  waits: LinkQueueWait[] | null = null;
  /** The spans of commands that are written and have not ended; created with the first one. */
  spans: Map<string, OpenSpan> | null = null;
  #queue: ChurnMap<string, CommandKey> | null = null;
  #window: ChurnMap<string, CommandKey> | null = null;

  constructor(client: ClientKey, binding: Binding, link: ClientLink) {
    this.client = client;
    this.binding = binding;
    this.link = link;
  }

  /** The queued commands by id, in the order of admission. A Map, so that a row that arrives twice is queued once. */
  get queue(): ChurnMap<string, CommandKey> {
    return (this.#queue ??= new ChurnMap());
  }

  /** The commands that are dispatched, or being dispatched, and have not ended, by id. */
  get window(): ChurnMap<string, CommandKey> {
    return (this.#window ??= new ChurnMap());
  }

  get queued(): number {
    return this.#queue?.size ?? 0;
  }

  get inFlight(): number {
    return this.#window?.size ?? 0;
  }
}

/**
 * Whether the link still has commands to finish: those in flight, and on a link that is not quiet also those queued.
 */
export function isBusy({ quiet, queued, inFlight }: LinkQueue): boolean {
  return inFlight > 0 || (!quiet && queued > 0);
}

export function isHolding({ held }: LinkQueue): boolean {
  return held !== null && held.size > 0;
}

/**
 * Whether one more dispatch may begin on this link now. Calls `backlog` last, because that call tells the link that a
 * dispatch waits for it.
 */
export function mayDispatch(linkQueue: LinkQueue): boolean {
  const { open, quiet, retriedDispatches, inFlight, link } = linkQueue;
  if (!open || quiet || retriedDispatches > 0 || inFlight >= IN_FLIGHT || isHolding(linkQueue)) return false;
  return link.backlog() < BACK_PRESSURE_BYTES;
}

/**
 * Closes a link that a link of `instanceId` replaces. If that is the same instance, a client that counts its attempts
 * may connect again: the relay can tell which of its links is the later one.
 */
export function closeReplaced({ binding, link }: LinkQueue, instanceId: string | null): void {
  link.close('replaced', instanceId, binding.tellsReceived === true && binding.instanceId === instanceId);
}

/** Holds dispatches that never arrived over an earlier link: they are written before all others. */
export function holdAgain(linkQueue: LinkQueue, again: readonly MarkedDispatch[], now: number): void {
  for (const result of again) {
    const { userId, clientId, commandId } = result.command;
    linkQueue.window.set(commandId, { userId, clientId, commandId });
    (linkQueue.held ??= new Map()).set(commandId, { result, at: now, cancel: null, again: true });
  }
}

/** Whether the store has answered every dispatch that was begun. */
export function isAnswered({ pendingDispatches }: LinkQueue): boolean {
  return pendingDispatches === 0;
}

/** Resolves once `over` returns true for the link, or once the link is gone and all its waits are ended. */
export function waitFor(linkQueue: LinkQueue, over: LinkQueueWait['over']): Promise<void> {
  return new Promise((wake) => {
    (linkQueue.waits ??= []).push({ over, wake });
    wakeWaits(linkQueue);
  });
}

export function wakeWaits(linkQueue: LinkQueue): void {
  const { waits } = linkQueue;
  if (waits === null) return;
  linkQueue.waits = null;
  for (const wait of waits) {
    if (wait.over(linkQueue)) wait.wake();
    else (linkQueue.waits ??= []).push(wait);
  }
}

/** Ends all waits, because the link is gone. */
export function endWaits(linkQueue: LinkQueue): void {
  const { waits } = linkQueue;
  linkQueue.waits = null;
  for (const { wake } of waits ?? []) wake();
}

/**
 * The client links of this node. At most one link of each client is bound: the client's commands are dispatched on it.
 * A leaving link is no longer bound, but some of its commands still run, so it is kept until its socket is gone.
 */
export class LinkQueues {
  readonly #bound = new ByClient<LinkQueue>();
  readonly #leaving = new ByClient<readonly LinkQueue[]>();

  /**
   * Binds the link. Returns the link that it replaces: the one that was bound, or else a leaving link of the same
   * instance.
   */
  bind(linkQueue: LinkQueue): LinkQueue | undefined {
    const { client, binding } = linkQueue;
    const sameInstance = (other: LinkQueue): boolean => other.binding.instanceId === binding.instanceId;
    const previous = this.#bound.get(client) ?? this.leaving(client).find(sameInstance);
    this.#bound.set(client, linkQueue);
    return previous;
  }

  /**
   * Turns the bound link into a leaving one; does nothing to any other link. Returns the leaving link that exceeds the
   * limit and must be closed.
   */
  retire(linkQueue: LinkQueue): LinkQueue | undefined {
    const { client } = linkQueue;
    if (this.find(client) !== linkQueue) return undefined;
    this.#bound.delete(client);
    const leaving = [...this.leaving(client), linkQueue];
    this.#leaving.set(client, leaving);
    return leaving.length > LEAVING_LINKS ? leaving[0] : undefined;
  }

  remove(linkQueue: LinkQueue): void {
    const { client } = linkQueue;
    if (this.find(client) === linkQueue) this.#bound.delete(client);
    const left = this.leaving(client).filter((other) => other !== linkQueue);
    if (left.length > 0) this.#leaving.set(client, left);
    else this.#leaving.delete(client);
  }

  /** Returns the bound link of this client. */
  find(client: ClientKey): LinkQueue | undefined {
    return this.#bound.get(client);
  }

  leaving(client: ClientKey): readonly LinkQueue[] {
    return this.#leaving.size === 0 ? NONE : (this.#leaving.get(client) ?? NONE);
  }

  /** Returns the link that this command was dispatched on, or is being dispatched on. */
  runningOn(key: CommandKey): LinkQueue | undefined {
    const runsIt = ({ window }: LinkQueue): boolean => window.has(key.commandId);
    const bound = this.find(key);
    return bound && runsIt(bound) ? bound : this.leaving(key).find(runsIt);
  }

  /** Whether the link is registered, bound or leaving. */
  has(linkQueue: LinkQueue): boolean {
    return this.find(linkQueue.client) === linkQueue || this.leaving(linkQueue.client).includes(linkQueue);
  }

  get size(): number {
    let leaving = 0;
    for (const linkQueues of this.#leaving.values()) leaving += linkQueues.length;
    return this.#bound.size + leaving;
  }

  /** The numbers of queued commands and of commands in flight on all links. */
  get load(): CommandLoad {
    const load = { inFlight: 0, queued: 0 };
    for (const { inFlight, queued } of this.values()) {
      load.inFlight += inFlight;
      load.queued += queued;
    }
    return load;
  }

  /** Yields all links, bound and leaving. */
  *values(): Generator<LinkQueue> {
    yield* this.#bound.values();
    for (const linkQueues of this.#leaving.values()) yield* linkQueues;
  }
}

const NONE: readonly LinkQueue[] = [];
