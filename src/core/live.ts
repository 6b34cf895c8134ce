/**
 * Live event sequences: a subscription with its bounded queue, sequences that several requesters share, and tables of
 * listeners.
 */
import type { Cancel, Log } from './ports.ts';
import type { CallboardError } from './errors.ts';
import { SUBSCRIPTION_QUEUE } from './limits.ts';

/**
 * One event of a subscription. `missed`: how many events the subscriber did not get since the previous one. This is a
 * lower bound, because an interruption between nodes counts as one event: the number of events it lost is unknown.
 */
export type LiveEvent<T> = { readonly event: T; readonly missed: number };

/**
 * A live sequence of events with a bounded queue. Calling `return()`, or leaving a `for await` loop, ends it and frees
 * its resources.
 */
export interface Subscription<T> extends AsyncIterableIterator<LiveEvent<T>> {
  return(): Promise<IteratorResult<LiveEvent<T>>>;
}

/** The time for which one requester may listen. */
export interface Lifetime {
  /**
   * Calls `target.fail` once when the permission ends, because its session, grant or token ends; at once if it has
   * already ended. Call this at most once.
   */
  endWith(target: { fail(error: CallboardError): void }): void;
  /** Frees the resources. `target` is not called afterwards. */
  close(): void;
}

/**
 * A live sequence that several requesters share, with this requester's lifetime. The lifetime has already started, so
 * the receiver must close it.
 */
export type SharedSubscription<T> = {
  /** The key of the sequence. Two requesters have the same key exactly if they receive the same events. */
  readonly key: string;
  /**
   * Calls `push` with each event from now on, until cancelled, and with the number of events that were lost before it
   * (default 0). This subscription belongs to no single requester, and may last longer than any of them.
   */
  readonly listen: (push: (event: T, missed?: number) => void) => Cancel;
  readonly lifetime: Lifetime;
};

/**
 * The writing end of a subscription. `push` never waits: if the queue is full, the oldest event is dropped and counted
 * as missed.
 */
export type Feed<T> = {
  readonly subscription: Subscription<T>;
  /** Adds an event. `missed`: the number of events that were lost before this one; default 0. */
  push(event: T, missed?: number): void;
  /** Ends the sequence after its queued events were read. */
  end(): void;
  /** Drops the queued events and ends the sequence with an error. */
  fail(error: unknown): void;
};

/**
 * Creates a feed. `onEnd`: called once, when the writer or the reader ends the sequence. `bound`: the most events in
 * the queue.
 */
export function createFeed<T>(onEnd: () => void, bound: number = SUBSCRIPTION_QUEUE): Feed<T> {
  const queue: LiveEvent<T>[] = [];
  let missed = 0;
  let ended = false;
  let failure: { error: unknown } | null = null;
  let waiting: PromiseWithResolvers<IteratorResult<LiveEvent<T>>> | null = null;

  const finish = (): void => {
    if (ended) return;
    ended = true;
    onEnd();
  };
  const take = (): IteratorResult<LiveEvent<T>> => {
    const first = queue.shift();
    if (!first) return over;
    const value = missed === 0 ? first : { event: first.event, missed: first.missed + missed };
    missed = 0;
    return { value, done: false };
  };
  const over: IteratorResult<LiveEvent<T>> = { value: undefined, done: true };
  const wake = (): void => {
    if (!waiting) return;
    const { resolve, reject } = waiting;
    if (queue.length > 0) resolve(take());
    else if (failure) reject(failure.error);
    else if (ended) resolve(over);
    else return;
    waiting = null;
  };
  const subscription: Subscription<T> = {
    next() {
      if (queue.length > 0) return Promise.resolve(take());
      if (failure) return Promise.reject(failure.error as Error);
      if (ended) return Promise.resolve(over);
      waiting ??= Promise.withResolvers();
      return waiting.promise;
    },
    return() {
      queue.length = 0;
      finish();
      wake();
      return Promise.resolve(over);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
  return {
    subscription,
    push(event, lost = 0) {
      if (ended) return;
      if (queue.length === bound) missed += 1 + (queue.shift()?.missed ?? 0);
      queue.push({ event, missed: lost });
      wake();
    },
    end() {
      finish();
      wake();
    },
    fail(error) {
      queue.length = 0;
      failure ??= { error };
      finish();
      wake();
    },
  };
}

/** Subscribes one requester to a shared sequence, with its own queue. */
export function subscribeTo<T>({ listen, lifetime }: SharedSubscription<T>): Subscription<T> {
  const feed = createFeed<T>(() => {
    stop();
    lifetime.close();
  });
  const stop = listen(feed.push);
  lifetime.endWith(feed);
  return feed.subscription;
}

type Listener = (event: never) => void;

export type Listeners = ReturnType<typeof createListeners>;

/**
 * Creates a table of listeners by topic. `changed` is called with a topic when its first listener is added, and when
 * its last one is removed.
 */
export function createListeners(log: Log, changed: (topic: string) => void) {
  const topics = new Map<string, Set<Listener>>();
  const toInterrupt = new Map<Listener, () => void>();
  return {
    has: (topic: string) => topics.has(topic),
    /**
     * Passes an event to the listeners of its topic. `event` must have the type that `Topics` in `backend.ts` gives the
     * topic. If a listener throws, the others still get the event.
     */
    deliver(topic: string, event: unknown): void {
      for (const listener of topics.get(topic) ?? []) {
        try {
          (listener as (event: unknown) => void)(event);
        } catch (error) {
          log.error({ err: error, topic }, 'a listener failed');
        }
      }
    },
    /** Calls the `interrupted` functions of all listeners, because events of other nodes may have been lost. */
    interrupted(): void {
      for (const tell of toInterrupt.values()) tell();
    },
    /** Adds a listener. `interrupted` is called when events of other nodes may have been lost. */
    add(topic: string, listener: Listener, interrupted?: () => void): Cancel {
      const known = topics.get(topic);
      const listeners = known ?? new Set<Listener>();
      // A new function object for each call, so that the same listener can be added twice.
      const own: Listener = (event) => listener(event);
      listeners.add(own);
      topics.set(topic, listeners);
      if (interrupted) toInterrupt.set(own, interrupted);
      if (!known) changed(topic);
      return () => {
        toInterrupt.delete(own);
        if (!listeners.delete(own) || listeners.size > 0) return;
        topics.delete(topic);
        changed(topic);
      };
    },
  };
}
