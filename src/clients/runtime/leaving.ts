/** Shuts a runtime down gracefully: announces `closing`, and waits for running commands and their ends. */

export type LeavingOptions = {
  /** Sends `closing`. Does nothing while there is no link. */
  ask(): void;
  /** Whether the relay may count this client as connected: a hello was sent over a socket that is still open. */
  mayBeBound(): boolean;
  /** Returns the number of running commands plus the number of ends that the relay has not acknowledged. */
  owed(): number;
  /** Refuses all later commands. */
  shut(): void;
};

/**
 * The graceful shutdown of a runtime. It sends `closing`, so that the relay dispatches nothing more. Commands that were
 * dispatched before the relay's answer still run. The shutdown is complete when all commands have ended and the relay
 * has acknowledged their ends. A relay that refuses `closing` is an older one; commands that it still sends are
 * refused.
 */
export class Leaving {
  readonly #options: LeavingOptions;
  readonly #done = Promise.withResolvers<void>();
  #state: 'no' | 'asking' | 'answered' = 'no';

  constructor(options: LeavingOptions) {
    this.#options = options;
  }

  get begun(): boolean {
    return this.#state !== 'no';
  }

  /** Begins the shutdown. Resolves when `owed` is 0 and no further command can arrive, or when the link is closed. */
  begin(): Promise<void> {
    this.#state = 'asking';
    this.#options.ask();
    this.check();
    return this.#done.promise;
  }

  /** Called when the link is up, also after a reconnect. */
  welcomed(): void {
    if (this.#state === 'asking') this.#options.ask();
  }

  /** Called when the relay answers `closed`, or refuses `closing`. */
  answered(): void {
    if (this.#state !== 'asking') return;
    this.#state = 'answered';
    this.#options.shut();
    this.check();
  }

  /**
   * Called when the link breaks. If the relay has answered, the shutdown is complete. This client does not reconnect,
   * because it could replace a successor that is connected by now.
   */
  lost(): void {
    if (this.#state === 'answered') this.closed();
    else this.check();
  }

  closed(): void {
    this.#done.resolve();
  }

  /**
   * Completes the shutdown if `owed` is 0 and no further command can arrive. Must be called whenever `owed` may have
   * decreased.
   */
  check(): void {
    const { mayBeBound, owed } = this.#options;
    const quiet = this.#state === 'answered' || (this.#state === 'asking' && !mayBeBound());
    if (quiet && owed() === 0) this.#done.resolve();
  }
}
