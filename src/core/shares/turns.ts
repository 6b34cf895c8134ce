/** Limits the bytes per second that a user sends, and lets users take turns with large reads and documents. */
import type { Principal, Requester } from '../auth/principal.ts';
import { fail } from '../errors.ts';
import { DOCUMENT_SMALL_COST, DOCUMENT_TURN_COST, MESSAGE_TURN_BYTES, READ_TURNS } from '../limits.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Clock, EventLoop } from '../ports.ts';
import { TokenBucket } from '../rates.ts';
import type { DocumentReading } from '../document-reading.ts';
import { holderOf } from './holder.ts';
import { SHARE_MESSAGE } from './share-bounds.ts';
import type { Holdings, Shares } from './shares.ts';

/**
 * The byte rate of one user: a token bucket that holds the bytes of one second. Bytes that have arrived are always
 * charged, so the balance may become negative; the sender must then wait until it is not negative. In any `t` seconds
 * at most `(t + 2) * perSecond` bytes pass, plus the bytes that had arrived when the balance became negative.
 */
export type ByteRate = Pick<TokenBucket, 'charge' | 'admit' | 'full'>;

/** The byte rate of one user, and the number of links that hold it. All links of a user share one object. */
export class HeldRate {
  readonly rate: ByteRate;
  #links = 0;

  constructor(rate: ByteRate) {
    this.rate = rate;
  }

  get held(): boolean {
    return this.#links > 0;
  }

  hold(): void {
    this.#links++;
  }

  /** Call this once for each call of `hold`, when the link has ended. */
  release(): void {
    this.#links--;
  }
}

/** The number of rates at which unused ones are removed for the first time. */
const KEPT = 1_000;

/**
 * The byte rates of all users of this process: one per user, for all transports together. Rates without links are
 * removed when they are full again.
 */
export class ByteRates {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #rates = new Map<string, HeldRate>();
  #sweepAt = KEPT;

  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
  }

  /** Returns a user's rate for one immediate use. Do not keep it; use `hold` for that. */
  of(userId: string): ByteRate {
    return this.#held(userId).rate;
  }

  /** Returns a user's rate for a link. It stays valid until it is released, so that no frame needs a look-up. */
  hold(userId: string): HeldRate {
    const held = this.#held(userId);
    held.hold();
    return held;
  }

  get size(): number {
    return this.#rates.size;
  }

  #held(userId: string): HeldRate {
    const known = this.#rates.get(userId);
    if (known) return known;
    if (this.#rates.size >= this.#sweepAt) this.#sweep();
    const made = new HeldRate(new TokenBucket(this.#clock, { perSecond: this.#perSecond, burst: this.#perSecond }));
    this.#rates.set(userId, made);
    return made;
  }

  /**
   * Removes full rates without links, because a new rate would be equal. The next sweep comes when there are twice as
   * many rates as now, but at least KEPT.
   */
  #sweep(): void {
    for (const [userId, { rate, held }] of this.#rates) if (!held && rate.full) this.#rates.delete(userId);
    this.#sweepAt = Math.max(KEPT, 2 * this.#rates.size);
  }
}

// Lets users take turns with expensive reads, so that no user waits behind all reads of another.

type ReadTurnsOptions = {
  /** The most reads in progress, of all holders together. */
  readonly atOnce: number;
  /** The most reads in progress of one holder. */
  readonly perHolder: number;
  /** Limits what begins in one turn of the event loop. Absent: a read that answers in the same tick is not limited. */
  readonly paced?: Pacing;
};

type Pacing = {
  readonly loop: EventLoop;
  /** The most cost of the reads that begin in one turn of the event loop. A more expensive read begins alone. */
  readonly costPerTurn: number;
  /** A read of at most this cost does not count in `atOnce` and `perHolder`. */
  readonly small: number;
};

type Waiting = { readonly cost: number; readonly start: () => void };
/** The reads of one holder: those in progress and those that wait. Removed when the holder has none. */
type Line = { running: number; readonly waiting: Waiting[] };

/**
 * Limits how many large reads are in progress at once, and serves the holders in turn. So a user who requests much at
 * once delays only its own reads. The reads of one holder begin in the order of their requests. With `paced`, reads
 * that answer in the same tick take turns too: when the reads that began in this turn of the event loop have cost
 * enough, the next one waits until the loop has done other work, and the holders that were already served in this turn
 * come last.
 */
export class ReadTurns {
  readonly #options: ReadTurnsOptions;
  /** The reads of each holder. The order of the holders is the order in which they are served next. */
  readonly #lines = new Map<string, Line>();
  #running = 0;
  /** The cost of the reads that began since `#turnIsOver` ran last. */
  #spent = 0;
  /** Whether `#turnIsOver` is scheduled. It is not scheduled for a turn with only cheap reads. */
  #awaitsTurn = false;
  /** The holders that were served in this turn of the event loop. */
  readonly #served = new Set<string>();

  constructor(options: ReadTurnsOptions) {
    this.#options = options;
  }

  /** The number of waiting reads. */
  get waiting(): number {
    return this.#lines.values().reduce((sum, line) => sum + line.waiting.length, 0);
  }

  /**
   * Runs `read`, at once if the limits permit. Passes on its value and its error. `cost`: the cost of the read, in the
   * unit of `costPerTurn`; used only with `paced`. Absent: the read costs as much as a whole turn.
   */
  run<T>(holder: string, read: () => MaybePromise<T>, cost = this.#options.paced?.costPerTurn ?? 1): MaybePromise<T> {
    const line = this.#lines.get(holder) ?? { running: 0, waiting: [] };
    if (line.waiting.length === 0 && this.#mayRun(line, cost)) return this.#begin(holder, line, { read, cost });
    this.#lines.set(holder, line);
    const { paced } = this.#options;
    if (paced && this.#spent > 0) this.#awaitTurn(paced);
    return new Promise<T>((resolve, reject) => {
      const start = (): void => {
        try {
          resolve(this.#begin(holder, line, { read, cost }));
        } catch (error) {
          reject(error);
        }
      };
      line.waiting.push({ cost, start });
    });
  }

  #mayRun({ running }: Line, cost: number): boolean {
    const { paced, perHolder, atOnce } = this.#options;
    if (paced && this.#spent > 0 && this.#spent + cost > paced.costPerTurn) return false;
    return this.#isSmall(cost) || (running < perHolder && this.#running < atOnce);
  }

  #isSmall(cost: number): boolean {
    return this.#options.paced !== undefined && cost <= this.#options.paced.small;
  }

  #begin<T>(
    holder: string,
    line: Line,
    { read, cost }: { read: () => MaybePromise<T>; cost: number },
  ): MaybePromise<T> {
    this.#spend(holder, cost);
    const value = read();
    if (!(value instanceof Promise) || this.#isSmall(cost)) return value;
    this.#lines.set(holder, line);
    line.running++;
    this.#running++;
    return value.finally(() => {
      line.running--;
      this.#running--;
      this.#next();
    });
  }

  #spend(holder: string, cost: number): void {
    const { paced } = this.#options;
    if (!paced) return;
    this.#spent += Math.max(1, cost);
    this.#served.add(holder);
    if (this.#spent > paced.costPerTurn / 2) this.#awaitTurn(paced);
  }

  #awaitTurn({ loop }: Pacing): void {
    if (this.#awaitsTurn) return;
    this.#awaitsTurn = true;
    loop.afterOthers(() => this.#turnIsOver());
  }

  #turnIsOver(): void {
    this.#awaitsTurn = false;
    this.#spent = 0;
    for (const holder of this.#served) this.#toTheEnd(holder);
    this.#served.clear();
    this.#next();
  }

  #toTheEnd(holder: string): void {
    const line = this.#lines.get(holder);
    if (!line) return;
    this.#lines.delete(holder);
    this.#lines.set(holder, line);
  }

  /** Starts the reads that may begin now. If one must wait for the next turn of the event loop, schedules that turn. */
  #next(): void {
    while (this.#startOne());
    const { paced } = this.#options;
    if (paced && this.#spent > 0 && this.waiting > 0) this.#awaitTurn(paced);
  }

  /**
   * Starts the next read, and moves its holder to the end of the order. Removes holders without reads on the way.
   * Returns whether a read was started.
   */
  #startOne(): boolean {
    for (const [holder, line] of this.#lines) {
      const [first] = line.waiting;
      if (!first && line.running === 0) this.#lines.delete(holder);
      if (!first || !this.#mayRun(line, first.cost)) continue;
      this.#toTheEnd(holder);
      line.waiting.shift();
      first.start();
      return true;
    }
    return false;
  }
}

/**
 * Creates the turns in which the large link messages of users are handled. The cost of a message is its length. So the
 * work in one turn of the event loop is limited, and users who sent little are served first.
 */
export function createMessageTurns(loop: EventLoop): Pick<ReadTurns, 'run'> {
  const paced = { loop, costPerTurn: MESSAGE_TURN_BYTES, small: Infinity };
  return new ReadTurns({ atOnce: Infinity, perHolder: Infinity, paced });
}

// Runs documents that only read: limits how many of them a user has in progress, and lets users take turns.

/** The estimated cost of a document (graphql/execute/cost.ts), and its store reads. */
type DocumentRun = { readonly cost: number; readonly reading: DocumentReading };

/** A document that is answered in steps. It counts as one of the requester's documents until `end` is called. */
type SteppedDocument = {
  /**
   * Runs a step when it is the user's turn; at once if it already is. `cost`: as for `run`. A step must not wait for
   * anything.
   */
  step<T>(cost: number, work: () => T): MaybePromise<T>;
  /** Ends the document, which then no longer counts. Idempotent. */
  end(): void;
};

/** The smallest cost of executing a subscription for one event, in the unit of DOCUMENT_TURN_COST. */
const EVENT_COST = 20;
/** How long a requester with too many documents in progress should wait before it retries, in milliseconds. */
const RETRY_AFTER_MS = 1000;

/**
 * Creates the runner of queries and REST reads. Mutations are not run here, because they wait for clients, and the
 * share `waits` limits them.
 */
export function createDocumentTurns({ shares, loop }: { readonly shares: Shares; readonly loop: EventLoop }) {
  const paced = { loop, costPerTurn: DOCUMENT_TURN_COST, small: DOCUMENT_SMALL_COST };
  const turns = new ReadTurns({ ...READ_TURNS, paced });
  // While a token is cached, all its requests have the same principal object.
  const known = new WeakMap<Principal, Holdings>();
  const holdingsOf = (requester: Requester): Holdings => {
    const before = requester && known.get(requester);
    if (before) return before;
    const holdings = shares.of(holderOf(requester));
    if (requester) known.set(requester, holdings);
    return holdings;
  };
  const refuseTooMany = (holdings: Holdings): void => {
    const refusal = holdings.refusal('documents', 1);
    if (refusal) fail(refusal, SHARE_MESSAGE[refusal], { share: 'documents', retryAfterMs: RETRY_AFTER_MS });
  };
  return {
    /** Begins a document that is answered in steps. Throws `share_exceeded`, like `run`. */
    open(requester: Requester): SteppedDocument {
      const holdings = holdingsOf(requester);
      refuseTooMany(holdings);
      holdings.take('documents', 1);
      let ended = false;
      return {
        step: (cost, work) => turns.run(holdings.userId, work, cost),
        end() {
          if (!ended) holdings.release('documents', 1);
          ended = true;
        },
      };
    },
    /**
     * Runs `work`: at once if no other document of the user waits, and if there is room in this turn of the event loop
     * and in READ_TURNS; otherwise when it is the user's turn. Passes on its value and its error. Throws
     * `share_exceeded` if the user has too many documents in progress. Rejects with `store_unavailable` if the
     * requester hung up before its turn.
     */
    run<T>(requester: Requester, { cost, reading }: DocumentRun, work: () => MaybePromise<T>): MaybePromise<T> {
      const holdings = holdingsOf(requester);
      refuseTooMany(holdings);
      const begin = (): MaybePromise<T> => {
        reading.check();
        return work();
      };
      const answer = turns.run(holdings.userId, begin, cost);
      // If the answer came in the same tick, the document has already ended and is not counted.
      if (!(answer instanceof Promise)) return answer;
      holdings.take('documents', 1);
      return answer.finally(() => holdings.release('documents', 1));
    },
    /**
     * Executes a subscription for one event, when it is the user's turn. The user's documents do not wait for its
     * events. It does not count as a document in progress, because a subscription executes one event after another, and
     * drops events that do not fit into its queue.
     */
    event<T>(requester: Requester, cost: number, work: () => MaybePromise<T>): MaybePromise<T> {
      return turns.run(`events of ${holdingsOf(requester).userId}`, work, Math.max(EVENT_COST, cost));
    },
  };
}
