/**
 * Pauses and resumes this client: sends the person's requests to the relay, and tracks the pauses that the relay
 * reports.
 */
import type { Welcome } from '../link/link-status.ts';
import { deferred, type Clock } from '../link/platform.ts';
import { PauseRefusedError } from './action-errors.ts';
import { retryMs, type Refused } from './deliverer.ts';
import type { Paused, PauseOptions } from './types.ts';

/** The person's request: to pause the client, or to resume it (null). */
type PauseRequest = (PauseOptions & { readonly reason: string }) | null;

type Waiting = { resolve(): void; reject(error: Error): void };

/** The members of `welcome` and of the frame `paused` that describe a pause. */
type PausedMembers = Pick<Welcome, 'paused_by' | 'paused_reason' | 'paused_until'>;

type ClientPauseOptions = {
  readonly clock: Clock;
  /** Called when `paused` changes. */
  onPaused(paused: Paused | null): void;
  /** Sends a `pause` frame. Returns false if there is no link. */
  send(frame: { readonly ref: string; readonly request: PauseRequest }): boolean;
};

/**
 * Holds the person's latest request, and sends it until the relay has answered it: one frame at a time, and again on
 * each new link. From a request to pause until the relay holds back calls, the client refuses commands itself. `paused`
 * is the pause that the relay last reported, which may have been set by others.
 */
export class ClientPause {
  /** The pause that covers all calls of this client, as the relay last reported; null if there is none. */
  paused: Paused | null = null;
  readonly #options: ClientPauseOptions;
  /** The latest request, until the relay has answered it; undefined if there is none. */
  #request: PauseRequest | undefined;
  #waiting: Waiting[] = [];
  /** The ref of the `pause` frame that was sent over this link and is not answered; null if there is none. */
  #sent: string | null = null;
  /** The request in that frame. */
  #sentRequest: PauseRequest | undefined;
  #refs = 0;
  #ended: Error | null = null;

  constructor(options: ClientPauseOptions) {
    this.#options = options;
  }

  /** Whether the client must refuse commands itself, because the relay may not know yet that the client is paused. */
  get holds(): boolean {
    return this.#request != null;
  }

  /** Sends a request. Resolves when the relay has carried out this request or a later one. */
  want(request: PauseRequest): Promise<void> {
    if (this.#ended) return Promise.reject(this.#ended);
    this.#request = request;
    const { promise, resolve, reject } = deferred<void>();
    this.#waiting.push({ resolve, reject });
    this.#send();
    return promise;
  }

  /**
   * Called for each new link. A frame that was sent over an earlier link may not have arrived, so the request is sent
   * again.
   */
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
      // Until then the frame still counts as unanswered, so that no other frame is sent earlier.
      this.#options.clock.after(ms, () => {
        if (this.#sent === sent && sent !== null) this.#again();
      });
    } else if (this.#answered(ref)) {
      const error = new PauseRefusedError(code, message);
      this.#settle((waiting) => waiting.reject(error));
    }
  }

  /** Called when the link is closed permanently. Rejects all requests. */
  close(error: Error): void {
    this.#ended = error;
    this.#settle((waiting) => waiting.reject(error));
  }

  #again(): void {
    this.#sent = null;
    this.#send();
  }

  #send(): void {
    if (this.#request === undefined || this.#sent !== null) return;
    const ref = `p-${++this.#refs}`;
    if (!this.#options.send({ ref, request: this.#request })) return;
    this.#sent = ref;
    this.#sentRequest = this.#request;
  }

  /** Whether this answers the latest request. If it answers an earlier one, sends the latest. */
  #answered(ref: string): boolean {
    if (ref !== this.#sent) return false;
    this.#sent = null;
    if (this.#sentRequest === this.#request) return true;
    this.#send();
    return false;
  }

  #settle(end: (waiting: Waiting) => void): void {
    this.#request = undefined;
    for (const waiting of this.#waiting.splice(0)) end(waiting);
  }
}
