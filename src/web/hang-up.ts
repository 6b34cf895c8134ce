/** Notifies listeners when a requester hangs up before the response to its request is complete. */
import { requestDone } from './request-count.ts';
import type { HttpResponse } from './request.ts';

/**
 * A cheap replacement for AbortSignal with only the members used here. It aborts when the requester hangs up before the
 * response is complete.
 */
export class HangUpSignal {
  readonly #res: HttpResponse;
  #listeners: Set<() => void> | null = null;

  constructor(res: HttpResponse) {
    this.#res = res;
    // This object is created for an operation that may wait. From now on the share `waits` bounds that operation,
    // instead of the share `requests`.
    requestDone(res);
  }

  get aborted(): boolean {
    return this.#res.destroyed && !this.#res.writableFinished;
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    if (!this.#listeners) this.#res.once('close', () => this.#closed());
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners?.delete(listener);
  }

  #closed(): void {
    if (this.#res.writableFinished) return;
    for (const listener of this.#listeners ?? []) listener();
  }
}
