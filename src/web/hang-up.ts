import type { ServerResponse } from 'node:http';

/**
 * Whether the requester hung up before the response was complete. Implements as much of AbortSignal as a wait needs, at
 * a lower cost.
 */
export class HangUpSignal {
  readonly #res: ServerResponse;
  #heard: Set<() => void> | null = null;

  constructor(res: ServerResponse) {
    this.#res = res;
  }

  get aborted(): boolean {
    return this.#res.destroyed && !this.#res.writableFinished;
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    if (!this.#heard) this.#res.once('close', this.#closed);
    this.#heard ??= new Set();
    this.#heard.add(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#heard?.delete(listener);
  }

  readonly #closed = (): void => {
    if (this.#res.writableFinished) return;
    for (const listener of this.#heard ?? []) listener();
  };
}
