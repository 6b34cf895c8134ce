/** The pauses of this client: what the person at it wants, and what the relay says of them. */
import type { Welcome } from '../link/link-status.ts';
import { deferred, type Clock } from '../link/platform.ts';
import { PauseRefusedError } from './action-errors.ts';
import { retryMs, type Refused } from './deliverer.ts';
import type { Paused, PauseOptions } from './types.ts';

/** What the person wants; null: the calls go on. */
type Wish = (PauseOptions & { readonly reason: string }) | null;

type Waiting = { resolve(): void; reject(error: Error): void };

/** What `welcome` and the frame `paused` say. */
type PausedMembers = Pick<Welcome, 'paused_by' | 'paused_reason' | 'paused_until'>;

type ClientPauseOptions = {
  readonly clock: Clock;
  /** Called when `paused` changes. */
  onPaused(paused: Paused | null): void;
  /** Returns false when there is no link. */
  send(frame: { readonly ref: string; readonly wish: Wish }): boolean;
};

/**
 * The latest wish of the person, which is sent until the relay has answered it: one frame at a time, again on each new
 * link. From the wish on until the relay holds the calls back, the client itself refuses them.
 * `paused` is what the relay last said about pauses of this client, including those that others set.
 */
export class ClientPause {
  /** The pause that covers all calls, as the relay last said. */
  paused: Paused | null = null;
  readonly #options: ClientPauseOptions;
  /** The wish that the relay has not answered; undefined: it has answered all. */
  #wish: Wish | undefined;
  #waiting: Waiting[] = [];
  /** The ref of the frame that was sent over this link and has not been answered; null: there is none. */
  #sent: string | null = null;
  /** The wish of that frame. */
  #sentWish: Wish | undefined;
  #refs = 0;
  #ended: Error | null = null;

  constructor(options: ClientPauseOptions) {
    this.#options = options;
  }

  /** Whether the client refuses commands itself, because the relay may not know yet that it is paused. */
  get holds(): boolean {
    return this.#wish != null;
  }

  /** Resolves when the relay has carried out this wish or a later one. */
  want(wish: Wish): Promise<void> {
    if (this.#ended) return Promise.reject(this.#ended);
    this.#wish = wish;
    const { promise, resolve, reject } = deferred<void>();
    this.#waiting.push({ resolve, reject });
    this.#send();
    return promise;
  }

  /** Called for each new link. What was sent over an earlier one may not have arrived. */
  welcomed(welcome: PausedMembers): void {
    this.#again();
    this.told(welcome);
  }

  told({ paused_by: by, paused_reason: reason = '', paused_until: until }: PausedMembers): void {
    if (!by && !this.paused) return;
    this.paused = by ? { by, reason, until: until ?? null } : null;
    this.#options.onPaused(this.paused);
  }

  taken(ref: string): void {
    if (this.#answered(ref)) this.#settle((waiting) => waiting.resolve());
  }

  /** Handles the refusal of a `pause` frame. Ignores refusals of other frames. */
  refused(refusal: Refused): void {
    const { code, message, frame, ref } = refusal;
    if (frame !== 'pause' || ref !== this.#sent) return;
    const ms = retryMs(refusal);
    if (ms !== null) {
      const sent = this.#sent;
      // The frame counts as not answered until then, so that no other is sent earlier.
      this.#options.clock.after(ms, () => {
        if (this.#sent === sent && sent !== null) this.#again();
      });
    } else if (this.#answered(ref)) {
      const error = new PauseRefusedError(code, message);
      this.#settle((waiting) => waiting.reject(error));
    }
  }

  /** Called when the link is closed permanently. */
  close(error: Error): void {
    this.#ended = error;
    this.#settle((waiting) => waiting.reject(error));
  }

  #again(): void {
    this.#sent = null;
    this.#send();
  }

  #send(): void {
    if (this.#wish === undefined || this.#sent !== null) return;
    const ref = `p-${++this.#refs}`;
    if (!this.#options.send({ ref, wish: this.#wish })) return;
    this.#sent = ref;
    this.#sentWish = this.#wish;
  }

  /** Whether the answer is to the latest wish. An answer to an earlier one makes way for the latest. */
  #answered(ref: string): boolean {
    if (ref !== this.#sent) return false;
    this.#sent = null;
    if (this.#sentWish === this.#wish) return true;
    this.#send();
    return false;
  }

  #settle(end: (waiting: Waiting) => void): void {
    this.#wish = undefined;
    for (const waiting of this.#waiting.splice(0)) end(waiting);
  }
}
