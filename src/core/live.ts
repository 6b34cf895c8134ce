import type { Cancel } from './clock.ts';
import type { CallboardError } from './errors.ts';
import { SUBSCRIPTION_QUEUE } from './limits.ts';

/** One event of a subscription, with how many were dropped since the one before. */
export type Live<T> = { readonly event: T; readonly missed: number };

/** A live sequence with a bounded queue. `return()` (leaving a `for await`) ends it and frees what it holds. */
export interface Subscription<T> extends AsyncIterableIterator<Live<T>> {
  return(): Promise<IteratorResult<Live<T>>>;
}

/** How long one asker may listen. */
export interface Tenure {
  /** Fails `heir` once, when it is over for a reason of its own: at once, when it is over already. To be called once. */
  endWith(heir: { fail(error: CallboardError): void }): void;
  /** Gives it up and frees what it holds. Nothing is called from then on. */
  close(): void;
}

/** A live sequence that many askers may be given alike, and how long this one may have it. Its tenure runs already: close it. */
export type Shared<T> = {
  /** Equal for those, and only for those, who may be given the very same events. */
  readonly key: string;
  /** Hands on each event from now on, as it comes, until cancelled. It belongs to no asker and outlives them. */
  readonly hear: (push: (event: T) => void) => Cancel;
  readonly tenure: Tenure;
};

/** The writing end. `push` never waits: a full queue drops its oldest event and counts it. */
export type Feed<T> = {
  readonly subscription: Subscription<T>;
  push(event: T): void;
  /** Ends the sequence after what is queued. */
  end(): void;
  /** Ends the sequence at once with an error. */
  fail(error: unknown): void;
};

/** `onEnd` is called once, when either side ends it. */
export function createFeed<T>(onEnd: () => void, bound: number = SUBSCRIPTION_QUEUE): Feed<T> {
  const queue: T[] = [];
  let missed = 0;
  let ended = false;
  let failure: { error: unknown } | null = null;
  let waiting: PromiseWithResolvers<IteratorResult<Live<T>>> | null = null;

  const finish = (): void => {
    if (ended) return;
    ended = true;
    onEnd();
  };
  const take = (): Live<T> => {
    const live = { event: queue.shift() as T, missed };
    missed = 0;
    return live;
  };
  const over: IteratorResult<Live<T>> = { value: undefined, done: true };
  const wake = (): void => {
    if (!waiting) return;
    const { resolve, reject } = waiting;
    if (queue.length > 0) resolve({ value: take(), done: false });
    else if (failure) reject(failure.error);
    else if (ended) resolve(over);
    else return;
    waiting = null;
  };
  const subscription: Subscription<T> = {
    next() {
      if (queue.length > 0) return Promise.resolve({ value: take(), done: false });
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
    push(event) {
      if (ended) return;
      if (queue.length === bound) (queue.shift(), missed++);
      queue.push(event);
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
