/** Notices that the requester hung up before its response was complete. */
import type { ServerResponse } from 'node:http';
import { requestDone } from './requests-in-progress.ts';

/**
 * A signal that is aborted when the requester hangs up before the response is complete. Implements as much of
 * AbortSignal as a wait needs, at a lower cost.
 */
export class HangUpSignal {
  readonly #res: ServerResponse;
  #listeners: Set<() => void> | null = null;

  constructor(res: ServerResponse) {
    this.#res = res;
    // An operation that may wait begins: the share `waits` bounds it from now on.
    requestDone(res);
  }

  get aborted(): boolean {
    return this.#res.destroyed && !this.#res.writableFinished;
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    if (!this.#listeners) this.#res.once('close', this.#closed);
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners?.delete(listener);
  }

  readonly #closed = (): void => {
    if (this.#res.writableFinished) return;
    for (const listener of this.#listeners ?? []) listener();
  };
}
