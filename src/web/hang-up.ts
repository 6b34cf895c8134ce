/** Tells whoever works on a request when its requester hangs up before the response is complete. */
import { requestDone } from './request-count.ts';
import type { HttpResponse } from './request.ts';

/** A cheap part of AbortSignal: aborted when the requester hangs up before the response is complete. */
export class HangUpSignal {
  readonly #res: HttpResponse;
  #listeners: Set<() => void> | null = null;

  constructor(res: HttpResponse) {
    this.#res = res;
    // An operation that may wait begins: the share `waits` bounds it from now on.
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
