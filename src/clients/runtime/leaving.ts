export type LeavingOptions = {
  /** Sends `closing`; it goes nowhere while there is no link. */
  ask(): void;
  /** Whether the relay may count this client as connected: a hello was sent over a socket that is still up. */
  mayBeBound(): boolean;
  /** Commands that run, and ends that the relay has not taken. */
  owed(): number;
  /** From now on each command that comes is refused. */
  shut(): void;
};

/**
 * How a runtime leaves: it asks the relay to dispatch nothing more, runs what was dispatched before the answer, and is done once nothing is owed.
 * A relay that refuses the question is an older one: what it still sends is refused.
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

  /** Resolves when nothing is owed any more and nothing more will come, or the link is closed. */
  begin(): Promise<void> {
    this.#state = 'asking';
    this.#options.ask();
    this.check();
    return this.#done.promise;
  }

  /** The link is up, perhaps again. */
  welcomed(): void {
    if (this.#state === 'asking') this.#options.ask();
  }

  /** The relay answered: `closed`, or that it does not know the question. */
  answered(): void {
    if (this.#state !== 'asking') return;
    this.#state = 'answered';
    this.#options.shut();
    this.check();
  }

  /** The link broke. After the answer it is not made again: it would take the place of a successor that may be connected by now. */
  lost(): void {
    if (this.#state === 'answered') this.closed();
    else this.check();
  }

  closed(): void {
    this.#done.resolve();
  }

  /** To be called whenever less may be owed. */
  check(): void {
    const { mayBeBound, owed } = this.#options;
    const quiet = this.#state === 'answered' || (this.#state === 'asking' && !mayBeBound());
    if (quiet && owed() === 0) this.#done.resolve();
  }
}
