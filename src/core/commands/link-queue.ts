/**
 * Registers the client links of this node, with the queue of each link and its window of commands in flight. It sends no
 * commands.
 */
import { ByClient, ChurnMap } from '../collections.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import { BACK_PRESSURE_BYTES, IN_FLIGHT, LEAVING_LINKS } from '../limits.ts';
import type { Span } from '../ports.ts';
import type { ClientLink } from './client-link.ts';
import type { Binding, CommandLoad, DispatchClaim, DispatchResult, MarkedDispatch } from './command-store.ts';

/** A dispatch that is recorded and not yet written to its link. */
export type HeldDispatch = {
  readonly result: Extract<DispatchResult, { kind: 'dispatch' }>;
  readonly at: number;
  /** The cancel that was requested while the dispatch was held; null if none was. */
  cancel: { readonly reason: string | null } | null;
  /** True if the command was written to an earlier link on which it never arrived. Absent otherwise. */
  readonly again?: true;
  /** The attempt that recorded the dispatch. Absent if `again` is true. */
  readonly asked?: DispatchAttempt;
};

/**
 * An attempt to record a dispatch. `attempt`: its name. `permits`: how many pauses had begun on this node when the
 * attempt was made. `at`: when it was made, by the monotonic clock. If a pause begins, or the attempt grows too old,
 * before the command is written, the attempt must be repeated.
 */
export type DispatchAttempt = { readonly attempt: string; readonly permits: number; readonly at: number };

/** The open span of a written command. `progressed`: whether the span has an event for the first progress report. */
type OpenSpan = { readonly span: Span; progressed: boolean };

/** A reservation of room in a link's window for a command that is not admitted yet. It counts as a pending dispatch. */
export type Claim = DispatchClaim & {
  readonly linkQueue: LinkQueue;
  readonly key: CommandKey;
  readonly asked: DispatchAttempt;
};

/** Code that waits for a link's queue to change. `wake` is called as soon as `over` returns true. */
type LinkQueueWait = { readonly over: (linkQueue: LinkQueue) => boolean; readonly wake: () => void };

/**
 * The queue and the window of one link of this node. Both are created at first use, because each of thousands of idle
 * links has such an object.
 */
export class LinkQueue {
  readonly client: ClientKey;
  readonly binding: Binding;
  readonly link: ClientLink;
  /**
   * The claims of commands in the window whose admission the store has not answered yet, by command id. Created with
   * the first one.
   */
  claims: Map<string, Claim> | null = null;
  /** Whether commands may be dispatched on the link. False until the client was welcomed. */
  open = false;
  /** Whether dispatching on this link has ended for good. Queued commands then wait for the client's next link. */
  quiet = false;
  /**
   * Commands whose dispatch is recorded, but which are not written yet, because the socket had back-pressure. In the
   * order of dispatch. Created with the first one.
   */
  held: Map<string, HeldDispatch> | null = null;
  /**
   * The reasons of cancels that were requested before the client was welcomed, by command id. They are sent after the
   * welcome. Created with the first one.
   */
  cancels: Map<string, string | null> | null = null;
  /** The number of dispatches that the store has not answered yet. */
  pendingDispatches = 0;
  /**
   * The number of dispatches that are repeated because the store was unavailable. To keep the order, no other dispatch
   * begins until the store has answered these.
   */
  retriedDispatches = 0;
  /** The code that waits for this queue to change; null if none waits. */
  waits: LinkQueueWait[] | null = null;
  /** The spans of commands that were written and have not ended. Created with the first one. */
  spans: Map<string, OpenSpan> | null = null;
  #queue: ChurnMap<string, CommandKey> | null = null;
  #window: ChurnMap<string, CommandKey> | null = null;

  constructor(client: ClientKey, binding: Binding, link: ClientLink) {
    this.client = client;
    this.binding = binding;
    this.link = link;
  }

  /** The queued commands by id, in the order of admission. A mailbox row that arrives twice queues its command once. */
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
 * Whether the link still has commands to finish. The commands in flight count; the queued ones count only if the link
 * is not quiet.
 */
export function isBusy({ quiet, queued, inFlight }: LinkQueue): boolean {
  return inFlight > 0 || (!quiet && queued > 0);
}

export function isHolding({ held }: LinkQueue): boolean {
  return held !== null && held.size > 0;
}

/**
 * Whether one more dispatch may begin on this link now. Calls `backlog` last, because this call also tells the link
 * that a dispatch waits for the socket.
 */
export function mayDispatch(linkQueue: LinkQueue): boolean {
  const { open, quiet, retriedDispatches, inFlight, link } = linkQueue;
  if (!open || quiet || retriedDispatches > 0 || inFlight >= IN_FLIGHT || isHolding(linkQueue)) return false;
  return link.backlog() < BACK_PRESSURE_BYTES;
}

/**
 * Closes a link that is replaced by a link of `instanceId`. If both links belong to the same instance and the client
 * numbers its attempts, the client is told that it may connect again, because the numbers tell the relay which link is
 * the later one.
 */
export function closeReplaced({ binding, link }: LinkQueue, instanceId: string | null): void {
  link.close('replaced', instanceId, binding.tellsReceived === true && binding.instanceId === instanceId);
}

/** Holds dispatches that never arrived over an earlier link. They are written before all others. */
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

/** Resolves when `over` returns true for the link, or when the link is gone. */
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

/** Ends all waits for changes of this queue, because the link is gone. */
export function endWaits(linkQueue: LinkQueue): void {
  const { waits } = linkQueue;
  linkQueue.waits = null;
  for (const { wake } of waits ?? []) wake();
}

/**
 * The client links of this node. Each client has at most one bound link, on which its commands are dispatched. A
 * leaving link is no longer bound. It stays listed until its socket is gone, because some of its commands still run.
 */
export class LinkQueues {
  readonly #bound = new ByClient<LinkQueue>();
  readonly #leaving = new ByClient<readonly LinkQueue[]>();

  /**
   * Binds the link. Returns the link that it replaces: the client's bound link or, if there is none, a leaving link of
   * the same instance.
   */
  bind(linkQueue: LinkQueue): LinkQueue | undefined {
    const { client, binding } = linkQueue;
    const sameInstance = (other: LinkQueue): boolean => other.binding.instanceId === binding.instanceId;
    const previous = this.#bound.get(client) ?? this.leaving(client).find(sameInstance);
    this.#bound.set(client, linkQueue);
    return previous;
  }

  /**
   * Turns the client's bound link into a leaving one. Does nothing if the link is not bound. If the client now has too
   * many leaving links, returns the one that must be closed.
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
